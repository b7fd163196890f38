// The XML-looking form (Qwen3-Coder, Qwen3.5 and later): <function=…> with <parameter=…> values in <tool_call> tags.

import type { Leniency } from '../../protocol/parse-codes.ts'
import {
  type Block,
  CALL_CLOSE,
  CALL_OPEN,
  type CallForm,
  emptyCall,
  FUNCTION_CLOSE,
  FUNCTION_OPEN,
  PARAMETER_CLOSE,
  PARAMETER_OPEN,
  refusedOrText,
  refusedToClose,
  reopened,
  unclosed,
} from './block.ts'
import type { Refusal } from './draft.ts'
import { beginsJson } from './json-body.ts'
import { readJson } from './json-reader.ts'
import type { Leniencies } from './parser.ts'
import type { Reader, Source } from './source.ts'
import type { Toolbox } from './toolbox.ts'
import { callFromFunction } from './xml-call.ts'
import { hasAttributes, readFunction, type XmlFunction } from './xml-function.ts'
import { type Malformed, type Open, readName } from './xml-value.ts'

const BODY_TAGS = [CALL_OPEN, CALL_CLOSE, FUNCTION_OPEN] as const

export function qwen3CoderForm(toolbox: Toolbox, lenient: Leniencies): CallForm {
  return {
    openers: [CALL_OPEN, FUNCTION_OPEN],
    closers: [CALL_CLOSE, FUNCTION_CLOSE, PARAMETER_CLOSE],
    *readBlock(source, start, runStart) {
      if ((yield* source.tagAt(start, [FUNCTION_OPEN])) !== null)
        return yield* readBareFunction(source, start, runStart, toolbox, lenient)
      const body = yield* source.skipSpace(start + CALL_OPEN.length)
      const tag = yield* source.tagAt(body, BODY_TAGS)
      if (tag === CALL_CLOSE) return emptyCall(body)
      if (tag === CALL_OPEN) return reopened(body)
      if (source.endsAt(body, BODY_TAGS)) return unclosed(source, `${FUNCTION_OPEN}…>`)
      if (tag === null) return yield* refuseOther(source, body)
      const read = yield* readFunction(source, body, lenient)
      if (read.kind !== 'function') return yield* refuseBroken(source, read)
      return yield* readAfterFunction(source, read, toolbox, lenient)
    },
  }
}

/** A body that is no function: JSON, a tag with attributes, or text (then the opening tag may be a mention). */
function* refuseOther(source: Source, body: number): Reader<Block> {
  const came = yield* source.quote(body)
  const message = `expected ${FUNCTION_OPEN}…> after ${CALL_OPEN}, came ${came}`
  if (beginsJson(source, body)) return yield* refuseJson(source, body, message)
  const code = (yield* hasAttributes(source, body)) ? 'MALFORMED_TAG' : 'UNEXPECTED_TEXT'
  return yield* refusedOrText(source, body, { code, message }, false)
}

/** JSON where a function is due. What its strings hold, as far as it is JSON, is never taken for a call. */
function* refuseJson(source: Source, body: number, message: string): Reader<Block> {
  const hint = `${message}: this prompt asks for <function=…> and <parameter=…>, not JSON`
  const read = yield* readJson(source, body)
  if (read.kind === 'incomplete' && source.finish === 'length')
    return unclosed(source, `${FUNCTION_OPEN}…>`)
  let from = read.kind === 'broken' ? read.at : body
  if (read.kind === 'complete') {
    from = yield* source.skipSpace(read.end)
    if ((yield* source.tagAt(from, [CALL_OPEN])) !== null) return reopened(from)
  }
  return yield* refusedToClose(source, from, { code: 'WRONG_FORMAT', message: hint })
}

/** A function that is no call; the block ends after the next closing tag. */
function* refuseBroken(source: Source, read: Malformed | Open): Reader<Block> {
  if (read.kind === 'open') return yield* refuseOpen(source, read)
  const goesBack = read.from < read.end && !source.isWornOut(read.from)
  if (goesBack) source.noteReread(read.from, read.end)
  return yield* refusedToClose(source, goesBack ? read.from : read.end, read.refusal)
}

/**
 * The message has ended inside the function. Inside a value of a turn that stopped, the first closing tag in it ends
 * the block, so that calls after it stand; where the token limit cut it, the rest may well be value.
 */
function* refuseOpen(source: Source, { valueStart }: Open): Reader<Block> {
  const missing = `${PARAMETER_CLOSE}, ${FUNCTION_CLOSE} and ${CALL_CLOSE}`
  if (valueStart === null || source.finish === 'length' || source.isWornOut(valueStart))
    return unclosed(source, valueStart === null ? CALL_CLOSE : missing)
  source.noteReread(valueStart, source.length)
  const message = `expected ${PARAMETER_CLOSE} after the value, came the end of the turn: close each parameter`
  return yield* refusedToClose(source, valueStart, { code: 'UNCLOSED_PARAMETER', message })
}

/** What stands between `</function>` and the end of the block. */
function* readAfterFunction(
  source: Source,
  read: XmlFunction,
  toolbox: Toolbox,
  lenient: Leniencies,
): Reader<Block> {
  const at = yield* source.skipSpace(read.end)
  const tag = yield* source.tagAt(at, BODY_TAGS)
  if (tag === CALL_CLOSE) return take(read, toolbox, lenient, at + CALL_CLOSE.length, [])
  if (tag === CALL_OPEN) return reopened(at)
  if (source.endsAt(at, BODY_TAGS))
    return lenient.closeAtStop && source.finish === 'stop'
      ? take(read, toolbox, lenient, source.length, ['closeAtStop'])
      : unclosed(source, CALL_CLOSE)
  const message = `expected ${CALL_CLOSE} after ${FUNCTION_CLOSE}, came ${yield* source.quote(at)}`
  if (tag !== FUNCTION_OPEN)
    return yield* refusedOrText(source, at, { code: 'UNEXPECTED_TEXT', message }, true)
  const refusal: Refusal = {
    code: 'MULTIPLE_FUNCTIONS',
    message: `${message}: write each function in its own ${CALL_OPEN}`,
  }
  return yield* refusedToClose(source, at, refusal)
}

/**
 * `<function=…>` without its `<tool_call>`. At the start of a line and followed by structure it was meant as a call;
 * anywhere else it is text.
 */
function* readBareFunction(
  source: Source,
  start: number,
  runStart: number,
  toolbox: Toolbox,
  lenient: Leniencies,
): Reader<Block> {
  if (!source.isLineStart(start, runStart) || !(yield* isFollowedByStructure(source, start)))
    return { kind: 'text', mention: false }
  const refusal: Refusal = {
    code: 'MISSING_OPEN_TAG',
    message: `expected ${CALL_OPEN} before ${FUNCTION_OPEN}…>, came none: begin every call with ${CALL_OPEN}`,
  }
  const read = yield* readFunction(source, start, lenient)
  if (read.kind !== 'function') {
    const block = yield* refuseBroken(source, read)
    return lenient.acceptBareFunction || block.kind !== 'refused' ? block : { ...block, refusal }
  }
  const at = yield* source.skipSpace(read.end)
  const isClosed = (yield* source.tagAt(at, [CALL_CLOSE])) !== null
  const end = isClosed ? at + CALL_CLOSE.length : read.end
  return lenient.acceptBareFunction
    ? take(read, toolbox, lenient, end, ['acceptBareFunction'])
    : { kind: 'refused', refusal, end }
}

/** Whether the opening tag at `start` is whole and a parameter or the end of the function (or of the text) follows. */
function* isFollowedByStructure(source: Source, start: number): Reader<boolean> {
  const name = yield* readName(source, start, FUNCTION_OPEN)
  if (name.kind !== 'name') return false
  const next = yield* source.skipSpace(name.end)
  const tags = [PARAMETER_OPEN, FUNCTION_CLOSE]
  return (yield* source.tagAt(next, tags)) !== null || source.endsAt(next, tags)
}

function take(
  read: XmlFunction,
  toolbox: Toolbox,
  lenient: Leniencies,
  end: number,
  leniencies: Leniency[],
): Block {
  const result = callFromFunction(read, toolbox, lenient)
  if ('refusal' in result) return { kind: 'refused', refusal: result.refusal, end }
  if (read.repaired) result.call.leniencies.push('acceptUnclosedParameter')
  result.call.leniencies.push(...leniencies)
  return { kind: 'call', call: result.call, end }
}
