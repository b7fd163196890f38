// The tags of both Qwen forms, and how a block of either ends up.
import type { ReadCall, Refusal } from './draft.ts'
import type { Reader, Source } from './source.ts'

export const CALL_OPEN = '<tool_call>'
export const CALL_CLOSE = '</tool_call>'
export const FUNCTION_OPEN = '<function='
export const FUNCTION_CLOSE = '</function>'
export const PARAMETER_OPEN = '<parameter='
export const PARAMETER_CLOSE = '</parameter>'
export const THINK_OPEN = '<think>'
export const THINK_CLOSE = '</think>'

/** What a tag that may begin a block turned out to be. `end` is where content goes on. */
export type Block =
  /** No block: the tag is text, and `mention` says whether that is worth a LITERAL_TAG. */
  | { kind: 'text'; mention: boolean }
  | { kind: 'call'; call: ReadCall; end: number }
  | { kind: 'refused'; refusal: Refusal; end: number }

/** One form of tool calls, as content sees it. */
export interface CallForm {
  /** Tags that may begin a block. */
  openers: readonly string[]
  /** Tags that are reported where they close nothing. */
  closers: readonly string[]
  /** Reads the block whose opening tag stands at `start`, in a run of content that began at `runStart`. */
  readBlock(source: Source, start: number, runStart: number): Reader<Block>
}

function refused(code: Refusal['code'], message: string, end: number): Block {
  return { kind: 'refused', refusal: { code, message }, end }
}

/** A block that is still open at the end of the message. `missing`: what should have come. */
export function unclosed(source: Source, missing: string): Block {
  return source.finish === 'length'
    ? refused(
        'TRUNCATED_CALL',
        `expected ${missing}, came the token limit: the call was cut off and not run; make it shorter`,
        source.length,
      )
    : refused(
        'UNCLOSED_CALL',
        `expected ${missing}, came the end of the turn: close every call with ${CALL_CLOSE}`,
        source.length,
      )
}

/** A block that the opening tag of another one at `end` ends. */
export function reopened(end: number): Block {
  return refused(
    'UNCLOSED_CALL',
    `expected ${CALL_CLOSE}, came another ${CALL_OPEN}: close every call before the next`,
    end,
  )
}

/** A refused block that ends after the first closing tag from `from` on. */
export function* refusedToClose(source: Source, from: number, refusal: Refusal): Reader<Block> {
  const close = yield* source.nextTag(from, [CALL_CLOSE])
  if (close === null) return unclosed(source, CALL_CLOSE)
  return { kind: 'refused', refusal, end: close.at + CALL_CLOSE.length }
}

export function emptyCall(body: number): Block {
  const message = `expected a call between ${CALL_OPEN} and ${CALL_CLOSE}, came only white space`
  return refused('EMPTY_CALL', message, body + CALL_CLOSE.length)
}

/**
 * A block whose body, from `from` on, is no call: refused if it is closed. If it is not, a body that began as a call is
 * an unclosed one (`isCall`), and any other makes its opening tag a mention in text.
 */
export function* refusedOrText(
  source: Source,
  from: number,
  refusal: Refusal,
  isCall: boolean,
): Reader<Block> {
  const next = yield* source.nextTag(from, [CALL_OPEN, CALL_CLOSE])
  if (next?.tag === CALL_CLOSE)
    return { kind: 'refused', refusal, end: next.at + CALL_CLOSE.length }
  if (!isCall) return { kind: 'text', mention: true }
  return next === null ? unclosed(source, CALL_CLOSE) : reopened(next.at)
}
