// Tags and values of the XML-looking form as text: where a name ends, and which </parameter> ends a value.
import {
  CALL_CLOSE,
  CALL_OPEN,
  FUNCTION_CLOSE,
  FUNCTION_OPEN,
  PARAMETER_CLOSE,
  PARAMETER_OPEN,
} from './block.ts'
import type { Refusal } from './draft.ts'
import { isSpace, LINE_FEED, quoteText, type Reader, type Source } from './source.ts'

const GREATER_THAN = 0x3e
const LESS_THAN = 0x3c
export const STRUCTURE = [
  CALL_OPEN,
  CALL_CLOSE,
  FUNCTION_OPEN,
  FUNCTION_CLOSE,
  PARAMETER_OPEN,
  PARAMETER_CLOSE,
] as const
/** What follows the `</parameter>` that ends a value. */
const FOLLOWERS = [PARAMETER_OPEN, FUNCTION_CLOSE, CALL_CLOSE] as const

/** The search for the end of the block begins at `from`; `end` is how far was read. */
export interface Malformed {
  kind: 'malformed'
  refusal: Refusal
  from: number
  end: number
}

/** The message ended before the function did; `valueStart` where it ended inside a value that nothing closed. */
export interface Open {
  kind: 'open'
  valueStart: number | null
}

export const OPEN: Open = { kind: 'open', valueStart: null }

export function malformed(
  code: Refusal['code'],
  message: string,
  from: number,
  end = from,
): Malformed {
  return { kind: 'malformed', refusal: { code, message }, from, end }
}

/** Reads the name of the tag that begins with `open` at `start`; `end` is the position after its `>`. */
export function* readName(
  source: Source,
  start: number,
  open: string,
): Reader<{ kind: 'name'; text: string; end: number } | Malformed | Open> {
  const from = start + open.length
  let at = from
  while (at < source.length || (yield* source.has(at))) {
    const unit = source.units[at]
    if (unit === GREATER_THAN) {
      if (at > from) return { kind: 'name', text: source.slice(from, at), end: at + 1 }
      return malformed('MISSING_NAME', `expected a name in ${open}…>, came ${open}>`, at + 1)
    }
    if (unit === LINE_FEED || unit === LESS_THAN) {
      const came = yield* source.quote(at)
      return malformed(
        'MALFORMED_TAG',
        `expected '>' to end ${open}… on its line, came ${came}`,
        at,
      )
    }
    at++
  }
  return OPEN
}

export interface Value {
  kind: 'value'
  text: string
  /** Where the function goes on. */
  end: number
  /** Whether the text holds tags of the form. */
  hasTags: boolean
  /** Whether its end was supplied (`acceptUnclosedParameter`). */
  repaired: boolean
}

/**
 * Reads the value that begins at `start`, after `<parameter=key>`. In a block value (it begins with a line feed, as the
 * template writes it) a `</parameter>` is the end only if structure follows. One inside a line is data; one at the start
 * of a line must belong to a `<parameter=…>` that stands alone on an earlier line of the value. What is left of those,
 * or does not stand alone, makes the value ambiguous: a forgotten closing tag, or text. It is then refused.
 */
export function* readValue(
  source: Source,
  start: number,
  key: string,
  acceptUnclosed: boolean,
): Reader<Value | Malformed | Open> {
  const isBlock = (yield* source.has(start)) && source.units[start] === LINE_FEED
  const first = isBlock ? start + 1 : start
  let hasTags = false
  let matchable = 0
  let unmatchable = 0
  for (let at = start; ; hasTags = true) {
    const found = yield* source.nextTag(at, STRUCTURE)
    if (found === null) return { kind: 'open', valueStart: start }
    at = found.at + found.tag.length
    if (found.tag === PARAMETER_CLOSE) {
      const after = isBlock ? yield* readFollower(source, at) : 'structure'
      if (after === 'end') return OPEN
      if (after === 'structure') {
        if (matchable + unmatchable > 0) return unclosedParameter(key, start, at)
        return {
          kind: 'value',
          text: valueText(source, first, found.at),
          end: at,
          hasTags,
          repaired: false,
        }
      }
      if (!source.isLineStart(found.at, first)) continue
      if (matchable === 0) return yield* textAfterValue(source, key, at)
      matchable--
    } else if (acceptUnclosed && (yield* closesUnclosed(source, found, first, isBlock))) {
      const text = valueText(source, first, withoutIndent(source, first, found.at))
      return { kind: 'value', text, end: found.at, hasTags, repaired: true }
    } else if (found.tag === PARAMETER_OPEN && (!isBlock || source.isLineStart(found.at, first))) {
      const name = yield* readName(source, found.at, PARAMETER_OPEN)
      if (name.kind !== 'name') continue
      if (isBlock && (yield* isLineEnd(source, name.end))) matchable++
      else unmatchable++
    }
  }
}

/** What stands after a `</parameter>` in a block value. */
function* readFollower(source: Source, at: number): Reader<'structure' | 'text' | 'end'> {
  const next = yield* source.skipSpace(at)
  if ((yield* source.tagAt(next, FOLLOWERS)) !== null) return 'structure'
  return source.endsAt(next, FOLLOWERS) ? 'end' : 'text'
}

/** Whether the tag shows that the value has ended without its closing tag (`acceptUnclosedParameter`). */
function* closesUnclosed(
  source: Source,
  found: { tag: string; at: number },
  first: number,
  isBlock: boolean,
): Reader<boolean> {
  const after = found.at + found.tag.length
  if (found.tag === FUNCTION_CLOSE)
    return (yield* source.tagAt(yield* source.skipSpace(after), [CALL_CLOSE])) !== null
  if (found.tag !== PARAMETER_OPEN || (isBlock && !source.isLineStart(found.at, first)))
    return false
  return (yield* readName(source, found.at, PARAMETER_OPEN)).kind === 'name'
}

/** Whether only blanks stand between `at` and the end of the line. */
function* isLineEnd(source: Source, at: number): Reader<boolean> {
  let next = at
  while (yield* source.has(next)) {
    const unit = source.units[next]
    if (unit === LINE_FEED) return true
    if (!isSpace(unit)) return false
    next++
  }
  return true
}

/** The position before the blanks that stand before `at`. */
function withoutIndent(source: Source, first: number, at: number): number {
  let end = at
  while (end > first && source.units[end - 1] !== LINE_FEED && isSpace(source.units[end - 1])) end--
  return end
}

/** One line feed goes at each end: the template writes them. */
function valueText(source: Source, first: number, end: number): string {
  const closing = end > first && source.units[end - 1] === LINE_FEED ? end - 1 : end
  return source.slice(first, closing)
}

function unclosedParameter(key: string, start: number, end: number): Malformed {
  const message = `expected ${PARAMETER_CLOSE} after the value of ${quoteText(key)}, came another ${PARAMETER_OPEN}…>: close each parameter before the next`
  return malformed('UNCLOSED_PARAMETER', message, start, end)
}

function* textAfterValue(source: Source, key: string, at: number): Reader<Malformed> {
  const message = `expected ${PARAMETER_OPEN}…> or ${FUNCTION_CLOSE} after the value of ${quoteText(key)}, came ${yield* source.quote(at)}: write no text between parameters`
  return malformed('UNEXPECTED_TEXT', message, at)
}
