// The forms before hermes: ✿FUNCTION✿ words (Qwen2) and ReAct lines (Qwen1). Read whole, once the turn has ended.
import { THINK_CLOSE } from './block.ts'
import type { Draft, ReadCall, Refusal } from './draft.ts'
import { callFromArguments } from './json-call.ts'
import { readJsonNow } from './json-reader.ts'
import { Passage } from './passage.ts'
import { type ContentStart, claimReasoning } from './reasoning.ts'
import { isSpace, type Reader, type Source, trimSpace } from './source.ts'

/** Whether there is a tool of that name. */
type IsKnown = (name: string) => boolean

/** `✿FUNCTION✿: name`, `✿ARGS✿: json`; what follows a stop word (`✿RESULT✿`, `✿RETURN✿`) was made up and goes. */
export function* readFncall(
  source: Source,
  draft: Draft,
  begin: ContentStart,
  isKnown: IsKnown,
): Reader<void> {
  const text = yield* wholeText(source)
  let word = nextWord(text, begin.at)
  let { at, touches } = settleReasoning(source, draft, begin, text, word?.start ?? text.length)
  for (;;) {
    writeContent(source, draft, at, word?.start ?? text.length, touches, word !== null)
    if (word?.name !== 'FUNCTION') return
    const block = readFncallBlock(source, text, word.end, isKnown)
    settle(draft, block, word.start)
    at = block.end
    touches = true
    word = nextWord(text, at)
  }
}

/** `Action: name`, `Action Input: json`, or `Final Answer: text`; what follows `Observation:` was made up and goes. */
export function* readReact(
  source: Source,
  draft: Draft,
  begin: ContentStart,
  isKnown: IsKnown,
): Reader<void> {
  const whole = yield* wholeText(source)
  const stop = findLine(whole, 'Observation:', begin.at)
  const text = stop === null ? whole : whole.slice(0, stop.start)
  // Qwen-Agent takes the last action of a turn.
  const action = findLine(text, 'Action:', begin.at, 'last')
  const { at, touches } = settleReasoning(source, draft, begin, text, action?.start ?? text.length)
  if (action !== null) {
    writeContent(source, draft, at, action.start, touches, true)
    settle(draft, readAction(source, text, action.end, isKnown), action.start)
    return
  }
  const answer = findLine(text, 'Final Answer:', at)
  if (answer === null) writeContent(source, draft, at, text.length, touches, stop !== null)
  else writeContent(source, draft, skipBlanks(text, answer.end), text.length, true, stop !== null)
}

type LegacyBlock = ({ call: ReadCall } | { refusal: Refusal }) & { end: number }

interface Word {
  name: 'FUNCTION' | 'ARGS' | 'STOP'
  start: number
  end: number
}

/** The next word of the form from `at` on; ARGS only where `withArgs`, since elsewhere it is text. */
function nextWord(text: string, at: number, withArgs = false): Word | null {
  const pattern = withArgs
    ? /✿(FUNCTION|ARGS)✿:|✿(?:RESULT|RETURN)✿/g
    : /✿(FUNCTION)✿:|✿(?:RESULT|RETURN)✿/g
  pattern.lastIndex = at
  const match = pattern.exec(text)
  if (match === null) return null
  const name = (match[1] ?? 'STOP') as Word['name']
  return { name, start: match.index, end: pattern.lastIndex }
}

function readFncallBlock(
  source: Source,
  text: string,
  from: number,
  isKnown: IsKnown,
): LegacyBlock {
  const args = nextWord(text, from, true)
  if (args?.name !== 'ARGS')
    return {
      refusal: missing(source, args === null ? text : '', '✿ARGS✿: and a JSON object'),
      end: args?.start ?? text.length,
    }
  const name = trimSpace(text.slice(from, args.start))
  const boundary = (at: number) => nextWord(text, at)?.start ?? text.length
  return readArguments(source, text, name, args.end, boundary, isKnown)
}

function readAction(source: Source, text: string, from: number, isKnown: IsKnown): LegacyBlock {
  const input = findLine(text, 'Action Input:', from)
  if (input === null)
    return { refusal: missing(source, text, 'Action Input: and a JSON object'), end: text.length }
  const name = trimSpace(text.slice(from, input.start))
  return readArguments(source, text, name, input.end, () => text.length, isKnown)
}

/** Reads the arguments at `from`; the block ends at the boundary after them. */
function readArguments(
  source: Source,
  text: string,
  name: string,
  from: number,
  boundary: (at: number) => number,
  isKnown: IsKnown,
): LegacyBlock {
  const read = readJsonNow(source, from)
  const end = boundary(read.kind === 'complete' ? read.end : from)
  const refuse = (code: Refusal['code'], expected: string, came: string): LegacyBlock => ({
    refusal: { code, message: `expected ${expected}, came ${came}` },
    end,
  })
  if (read.kind === 'incomplete' && (source.finish === 'length' || end === source.length))
    return { refusal: cutOff(source, 'the rest of the JSON'), end: text.length }
  if (name === '') return refuse('MISSING_NAME', 'the name of a tool', 'none')
  if (name.includes('\n'))
    return refuse('UNEXPECTED_TEXT', 'a name of one line before the arguments', 'more text')
  if (read.kind === 'incomplete')
    return refuse('INVALID_JSON', 'the rest of the JSON', 'other text')
  if (read.kind === 'broken')
    return { refusal: { code: 'INVALID_JSON', message: `invalid JSON: ${read.problem}` }, end }
  if (trimSpace(text.slice(read.end, end)) !== '')
    return refuse('TRAILING_DATA', 'nothing after the JSON object', source.quoteNow(read.end))
  return { ...callFromArguments(name, read, isKnown), end }
}

/** Arguments that never came: the turn was cut off before them, or left them out. */
function missing(source: Source, text: string, expected: string): Refusal {
  if (source.finish === 'length' && text.length === source.length) return cutOff(source, expected)
  return { code: 'MISSING_ARGUMENTS', message: `expected ${expected} after the name, came none` }
}

function cutOff(source: Source, expected: string): Refusal {
  return source.finish === 'length'
    ? {
        code: 'TRUNCATED_CALL',
        message: `expected ${expected}, came the token limit: make the call shorter`,
      }
    : { code: 'UNCLOSED_CALL', message: `expected ${expected}, came the end of the turn` }
}

function settle(draft: Draft, block: LegacyBlock, start: number): void {
  if ('call' in block) draft.take(block.call, start, block.end)
  else draft.refuse(block.refusal, start, block.end)
}

/** A `</think>` before the first call makes all before it reasoning, as in the other forms. */
function settleReasoning(
  source: Source,
  draft: Draft,
  begin: ContentStart,
  text: string,
  blockStart: number,
): { at: number; touches: boolean } {
  const close = begin.undecided ? text.indexOf(THINK_CLOSE) : -1
  if (close < 0 || close >= blockStart) return begin
  claimReasoning(source, draft, close)
  return { at: close + THINK_CLOSE.length, touches: true }
}

/** Content of `[start, end)`, and whether either edge touches structure. */
function writeContent(
  source: Source,
  draft: Draft,
  start: number,
  end: number,
  touchesStart: boolean,
  touchesEnd: boolean,
): void {
  new Passage(source, start, touchesStart, draft.contentRun()).end(end, touchesEnd)
}

interface Line {
  start: number
  /** The position after the label. */
  end: number
}

/** The first or the last line from `from` on that begins with the label. */
function findLine(
  text: string,
  label: string,
  from: number,
  which: 'first' | 'last' = 'first',
): Line | null {
  const pattern = new RegExp(`^[ \\t]*${label}`, 'gm')
  pattern.lastIndex = from
  let line: Line | null = null
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    line = { start: match.index, end: pattern.lastIndex }
    if (which === 'first') break
  }
  return line
}

function* wholeText(source: Source): Reader<string> {
  while (!source.ended) yield
  return source.slice(0, source.length)
}

function skipBlanks(text: string, at: number): number {
  let next = at
  while (next < text.length && isSpace(text.charCodeAt(next))) next++
  return next
}
