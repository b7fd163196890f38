// What the model reads of a call: JSON text, cut to the task's limit at a place from which it can go on.
import type { JsonObject, JsonValue } from '../../../protocol/json.ts'

/** Characters (UTF-16 units) of one observation unless the task says otherwise. */
const DEFAULT_MAX_CHARS = 16_000
/** What the marker of a cut takes beside the text it cuts. */
const MARKER_ROOM = 100

const LONE_SURROGATE = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g

export interface Rendered {
  content: string
  /** Unpaired surrogates were replaced by U+FFFD. */
  replaced: boolean
}

/**
 * The JSON text of a result. Longer than the limit, a page of items gives up items from its end (`next_offset` then
 * points to the first that is missing), anything else becomes the beginning of its text; both carry
 * `truncated: true` and `total_chars`. Grading reads the audit and never this text.
 */
export function render(
  result: JsonObject,
  maxChars: number = DEFAULT_MAX_CHARS,
  offset = 0,
): Rendered {
  let replaced = false
  const text = JSON.stringify(result, (_key, value: unknown) => {
    if (typeof value !== 'string') return value
    const repaired = value.replace(LONE_SURROGATE, '\uFFFD')
    if (repaired !== value) replaced = true
    return repaired
  })
  if (text.length <= maxChars) return { content: text, replaced }
  const whole = JSON.parse(text) as JsonObject
  return {
    content: cutPage(whole, text.length, maxChars, offset) ?? cutText(text, maxChars),
    replaced,
  }
}

/** A page with as many of its items as fit, or null where it is no page or not one item fits. */
function cutPage(
  page: JsonObject,
  total_chars: number,
  maxChars: number,
  offset: number,
): string | null {
  if (!Array.isArray(page.items) || page.next_offset === undefined) return null
  const items: JsonValue[] = []
  let room = maxChars - MARKER_ROOM
  for (const item of page.items) {
    room -= JSON.stringify(item).length + 1
    if (room < 0) break
    items.push(item)
  }
  if (items.length === 0) return null
  const next_offset = offset + items.length
  return JSON.stringify({ ...page, items, next_offset, truncated: true, total_chars })
}

/** The longest beginning that fits, as a JSON string beside the marker; no surrogate pair is torn. */
function cutText(text: string, maxChars: number): string {
  const cutAt = (length: number): string => {
    const torn = /[\uD800-\uDBFF]$/.test(text.slice(0, length))
    const beginning = text.slice(0, torn ? length - 1 : length)
    const marker = { truncated: true, total_chars: text.length, next_offset: beginning.length }
    return JSON.stringify({ ...marker, text: beginning })
  }
  // Escapes make the text longer by a factor that only trying tells: bisect.
  let [fits, tooLong] = [0, text.length]
  while (tooLong - fits > 1) {
    const middle = (fits + tooLong) >> 1
    if (cutAt(middle).length <= maxChars) fits = middle
    else tooLong = middle
  }
  return cutAt(fits)
}
