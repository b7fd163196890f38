// What the model reads of a call: JSON text, cut to the task's limit at a place from which it can go on.
import { isPlainObject, type JsonObject, type JsonValue } from '../../../protocol/json.ts'

/** Characters (UTF-16 units) of one observation unless the task says otherwise. */
export const DEFAULT_MAX_CHARS = 16_000
/** What the marker of a cut takes beside what it cuts. */
const MARKER_ROOM = 100

const LONE_SURROGATE = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g

/** What of a result the model was shown where not all of it fits: items of a page, or characters of a text. */
export type Cut =
  | { items: number; lastInPart: boolean }
  | { from: number; to: number; total: number }

export interface Rendered {
  content: string
  /** Unpaired surrogates were replaced by U+FFFD. */
  replaced: boolean
  /** Null where the result was shown whole. */
  cut: Cut | null
}

/** Where to go on: from which item a page begins (only told of), from which character a record's text is shown. */
export interface Offsets {
  item: number
  char: number
}

/**
 * The JSON text of a result. Of what is longer than the limit, a page gives up items from its end; a record shows a part
 * of its longest text, from `char` on; anything else shows a part of its JSON text. All three carry `truncated: true`,
 * `total_chars` and `next_offset`, from which the same tool goes on (null at the end).
 */
export function render(
  result: JsonObject,
  maxChars: number = DEFAULT_MAX_CHARS,
  offsets: Offsets = { item: 0, char: 0 },
): Rendered {
  let replaced = false
  const text = JSON.stringify(result, (_key, value: unknown) => {
    if (typeof value !== 'string') return value
    const repaired = value.replace(LONE_SURROGATE, '\uFFFD')
    if (repaired !== value) replaced = true
    return repaired
  })
  if (text.length <= maxChars && offsets.char === 0) return { content: text, replaced, cut: null }
  const whole = JSON.parse(text) as JsonObject
  const shown =
    cutPage(whole, text.length, maxChars, offsets.item) ??
    cutRecord(whole, text.length, maxChars, offsets.char) ??
    cutText(text, maxChars, offsets.char)
  return { ...shown, replaced }
}

type Shown = Pick<Rendered, 'content' | 'cut'>

/** A page with as many of its items as fit, of the first at least a part; null where it is no page, or no room is there. */
function cutPage(
  page: JsonObject,
  total_chars: number,
  maxChars: number,
  offset: number,
): Shown | null {
  if (!Array.isArray(page.items) || page.next_offset === undefined) return null
  const items: JsonValue[] = []
  const room = maxChars - MARKER_ROOM
  let left = room
  for (const item of page.items) {
    left -= JSON.stringify(item).length + 1
    if (left < 0) break
    items.push(item)
  }
  const lastInPart = items.length === 0
  const part = lastInPart && partOfItem(page.items[0]!, room)
  if (part) items.push(part)
  if (items.length === 0) return null
  const marker = { next_offset: offset + items.length, truncated: true, total_chars }
  return {
    content: JSON.stringify({ ...page, items, ...marker }),
    cut: { items: items.length, lastInPart },
  }
}

function partOfItem(item: JsonValue, maxChars: number): JsonValue | null {
  if (!isPlainObject(item)) return null
  const shown = cutRecord(item as JsonObject, JSON.stringify(item).length, maxChars, 0)
  return shown && JSON.parse(shown.content)
}

/** A record with a part of its longest text, or null where what stands beside that text would fill half the limit. */
function cutRecord(
  record: JsonObject,
  chars: number,
  maxChars: number,
  from: number,
): Shown | null {
  const texts = Object.entries(record).filter(([, value]) => typeof value === 'string')
  const [field, text] = texts.reduce<[string, string]>(
    (longest, [name, value]) =>
      (value as string).length > longest[1].length ? [name, value as string] : longest,
    ['', ''],
  )
  const beside = chars - JSON.stringify(text).length + MARKER_ROOM
  if (beside > maxChars / 2) return null
  return partOf(text, maxChars, from, (part, marker) => ({ ...record, [field]: part, ...marker }))
}

function cutText(text: string, maxChars: number, from: number): Shown {
  return partOf(text, maxChars, from, (part, marker) => ({ ...marker, text: part }))
}

/** The longest part from a place on whose JSON, written by `write`, fits; no surrogate pair is torn. */
function partOf(
  text: string,
  maxChars: number,
  from: number,
  write: (part: string, marker: JsonObject) => JsonObject,
): Shown {
  const total = text.length
  const start = Math.min(isTorn(text, from) ? from - 1 : from, total)
  const end = (at: number) => (isTorn(text, at) ? at - 1 : at)
  const written = (to: number): string => {
    const marker = { truncated: true, total_chars: total, next_offset: to < total ? to : null }
    return JSON.stringify(write(text.slice(start, to), marker))
  }
  // Escapes make the text longer by a factor that only trying tells: bisect.
  let [fits, tooLong] = [start, total + 1]
  while (tooLong - fits > 1) {
    const middle = (fits + tooLong) >> 1
    if (written(end(middle)).length <= maxChars) fits = middle
    else tooLong = middle
  }
  const to = end(fits)
  return { content: written(to), cut: { from: start, to, total } }
}

/** Whether a cut at this place would part a surrogate pair. */
function isTorn(text: string, at: number): boolean {
  return /^[\uD800-\uDBFF][\uDC00-\uDFFF]$/.test(text.slice(at - 1, at + 1))
}
