// A JSON value in a block: the JSON decides where the block ends; where it is broken, the first closing tag does.

import type { Leniency } from '../../protocol/parse-codes.ts'
import {
  type Block,
  CALL_CLOSE,
  CALL_OPEN,
  refusedOrText,
  refusedToClose,
  reopened,
  unclosed,
} from './block.ts'
import type { Refusal } from './draft.ts'
import type { CompleteJson } from './json-automaton.ts'
import { type JsonRead, parseJson, readJson } from './json-reader.ts'
import { toStrictJson } from './json5.ts'
import type { Leniencies } from './parser.ts'
import type { Reader, Source } from './source.ts'

const OPEN_BRACE = 0x7b
const OPEN_BRACKET = 0x5b

/** A JSON value that fills its block up to `end`, the position after the closing tag. */
export interface JsonBody {
  kind: 'json'
  json: CompleteJson
  end: number
  leniencies: Leniency[]
}

/** Whether a body that begins at `at` is meant as JSON, so that without its end it is no mere mention of the tag. */
export function beginsJson(source: Source, at: number): boolean {
  return source.units[at] === OPEN_BRACE || source.units[at] === OPEN_BRACKET
}

/** Reads a block's body from `body`, its first unit that is no white space, to the end of the block. */
export function* readJsonBody(
  source: Source,
  body: number,
  lenient: Leniencies,
): Reader<JsonBody | Block> {
  const isCall = beginsJson(source, body)
  const read = yield* readJson(source, body)
  if (read.kind === 'incomplete' && isCall && source.finish === 'length')
    return unclosed(source, `the rest of the JSON and ${CALL_CLOSE}`)
  let from = body
  let refusal = invalidJson(read, body)
  if (read.kind === 'complete') {
    from = yield* source.skipSpace(read.end)
    const tag = yield* source.tagAt(from, [CALL_OPEN, CALL_CLOSE])
    if (tag === CALL_CLOSE)
      return { kind: 'json', json: read, end: from + CALL_CLOSE.length, leniencies: [] }
    if (tag === CALL_OPEN && isCall) return reopened(from)
    if (source.endsAt(from, [CALL_CLOSE]) && isCall) return endAtStop(source, read, lenient)
    refusal = yield* trailingData(source, from)
  }
  if (source.units[body] !== OPEN_BRACE) return yield* refusedOrText(source, from, refusal, isCall)
  const block = yield* refusedToClose(source, from, refusal)
  if (!lenient.json5 || block.kind !== 'refused' || block.refusal !== refusal) return block
  return asJson5(source.slice(body, block.end - CALL_CLOSE.length), block.end) ?? block
}

/** The message has ended after the value, without a closing tag. */
function endAtStop(source: Source, json: CompleteJson, lenient: Leniencies): JsonBody | Block {
  if (!lenient.closeAtStop || source.finish !== 'stop') return unclosed(source, CALL_CLOSE)
  return { kind: 'json', json, end: source.length, leniencies: ['closeAtStop'] }
}

function asJson5(text: string, end: number): JsonBody | null {
  const strict = toStrictJson(text)
  const json = strict === null ? null : parseJson(strict)
  return json?.kind === 'complete' ? { kind: 'json', json, end, leniencies: ['json5'] } : null
}

function invalidJson(read: JsonRead, body: number): Refusal {
  const message =
    read.kind === 'broken'
      ? `invalid JSON at character ${read.at - body} of the call: ${read.problem}`
      : 'expected the rest of the JSON, came the end of the turn'
  return { code: 'INVALID_JSON', message }
}

function* trailingData(source: Source, at: number): Reader<Refusal> {
  const message = `expected ${CALL_CLOSE} after the JSON, came ${yield* source.quote(at)}: write one object in each block`
  return { code: 'TRAILING_DATA', message }
}
