// The hermes form (Qwen2.5, Qwen3): one JSON object with name and arguments in <tool_call> tags.
import {
  type Block,
  CALL_CLOSE,
  CALL_OPEN,
  type CallForm,
  emptyCall,
  FUNCTION_OPEN,
  refusedOrText,
  reopened,
  unclosed,
} from './block.ts'
import type { Refusal } from './draft.ts'
import { readJsonBody } from './json-body.ts'
import { callFromJson } from './json-call.ts'
import type { Leniencies } from './parser.ts'
import type { Reader, Source } from './source.ts'
import { readFunction } from './xml-function.ts'

const BODY_TAGS = [CALL_OPEN, CALL_CLOSE, FUNCTION_OPEN] as const

/** `isKnown` says whether there is a tool of that name. */
export function hermesForm(isKnown: (name: string) => boolean, lenient: Leniencies): CallForm {
  return {
    openers: [CALL_OPEN],
    closers: [CALL_CLOSE],
    *readBlock(source, start) {
      const body = yield* source.skipSpace(start + CALL_OPEN.length)
      const tag = yield* source.tagAt(body, BODY_TAGS)
      if (tag === CALL_CLOSE) return emptyCall(body)
      if (tag === CALL_OPEN) return reopened(body)
      if (tag === FUNCTION_OPEN) return yield* refuseFunction(source, body)
      if (source.endsAt(body, BODY_TAGS)) return unclosed(source, `a JSON object and ${CALL_CLOSE}`)
      const read = yield* readJsonBody(source, body, lenient)
      if (read.kind !== 'json') return read
      const result = callFromJson(read.json, isKnown)
      if ('refusal' in result) return { kind: 'refused', refusal: result.refusal, end: read.end }
      result.call.leniencies.push(...read.leniencies)
      return { kind: 'call', call: result.call, end: read.end }
    },
  }
}

/** The XML form where JSON is due. Read as a whole where it is whole, so that nothing quoted in a value becomes a call. */
function* refuseFunction(source: Source, body: number): Reader<Block> {
  const refusal: Refusal = {
    code: 'WRONG_FORMAT',
    message: `expected a JSON object {"name": "<tool>", "arguments": {…}}, came ${FUNCTION_OPEN}…>: this prompt asks for JSON`,
  }
  if (!source.isWornOut(body)) {
    const read = yield* readFunction(source, body, {})
    const end = read.kind === 'function' ? yield* source.skipSpace(read.end) : source.length
    if ((yield* source.tagAt(end, [CALL_CLOSE])) !== null)
      return { kind: 'refused', refusal, end: end + CALL_CLOSE.length }
    source.noteReread(body, read.kind === 'open' ? source.length : read.end)
  }
  return yield* refusedOrText(source, body, refusal, true)
}
