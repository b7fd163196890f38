// Reasoning at the start of a turn: where it begins and ends is told by how the prompt ended, never guessed.
import type { ThinkingMode } from '../../protocol/parse-codes.ts'
import { CALL_OPEN, THINK_CLOSE, THINK_OPEN } from './block.ts'
import type { Draft } from './draft.ts'
import { Passage } from './passage.ts'
import type { Reader, Source } from './source.ts'

/** Where content starts, and whether at structure. `undecided`: a `</think>` to come may still make it reasoning. */
export interface ContentStart {
  at: number
  touches: boolean
  undecided: boolean
}

/**
 * Reads reasoning, if the turn begins with it. `endsAtCall` takes `<tool_call>` for its end (the leniency
 * `thinkingEndsAtToolCall`).
 */
export function* readReasoning(
  source: Source,
  draft: Draft,
  thinking: ThinkingMode,
  endsAtCall: boolean,
): Reader<ContentStart> {
  if (thinking === 'none') return { at: 0, touches: false, undecided: false }
  const first = yield* source.skipSpace(0)
  const opens = (yield* source.tagAt(first, [THINK_OPEN])) !== null
  if (!opens && thinking === 'auto') return { at: 0, touches: false, undecided: true }
  const start = opens ? first + THINK_OPEN.length : 0
  const again = thinking === 'prefilled' ? opens : yield* opensAgain(source, start)
  if (again) draft.flags.add('THINK_DUPLICATE_OPEN')
  draft.openReasoning()
  const passage = new Passage(source, start, opens, (text) => draft.writeReasoning(text))
  const end = yield* findEnd(source, start, passage, draft, endsAtCall)
  passage.end(end.at, end.tag !== null)
  if (end.tag === null) reportUnclosed(source, draft, start)
  return {
    at: end.at + (end.tag === THINK_CLOSE ? end.tag.length : 0),
    touches: true,
    undecided: false,
  }
}

/** All text before a `</think>` at `end` was reasoning, though no tag opened it. */
export function claimReasoning(source: Source, draft: Draft, end: number): void {
  draft.openReasoning()
  draft.flags.add('THINK_OPEN_MISSING')
  if (source.slice(0, end).includes(CALL_OPEN)) draft.flags.add('TOOL_CALL_IN_REASONING')
  new Passage(source, 0, false, (text) => draft.writeReasoning(text)).end(end, true)
}

function* opensAgain(source: Source, at: number): Reader<boolean> {
  return (yield* source.tagAt(yield* source.skipSpace(at), [THINK_OPEN])) !== null
}

/** The tag that ends the reasoning, or a null tag at the end of the message. */
function* findEnd(
  source: Source,
  start: number,
  passage: Passage,
  draft: Draft,
  endsAtCall: boolean,
): Reader<{ tag: string | null; at: number }> {
  for (let at = start; ; ) {
    const found = yield* source.nextTag(at, [THINK_CLOSE, CALL_OPEN], (to) => passage.grow(to))
    if (found === null) return { tag: null, at: source.length }
    if (found.tag === THINK_CLOSE) return found
    draft.flags.add('TOOL_CALL_IN_REASONING')
    if (endsAtCall) {
      draft.leniencies.add('thinkingEndsAtToolCall')
      return found
    }
    at = found.at + found.tag.length
  }
}

function reportUnclosed(source: Source, draft: Draft, start: number): void {
  if (source.partialTagStart(start, [THINK_CLOSE]) >= 0) draft.flags.add('PARTIAL_TAG')
  const came = source.finish === 'length' ? 'the token limit' : 'the end of the turn'
  draft.report(
    {
      code: 'REASONING_UNCLOSED',
      message: `expected ${THINK_CLOSE}, came ${came}: end the reasoning before answering or calling a tool`,
    },
    start,
    source.length,
  )
}
