// Dates and date-times as text and as instants. Strict: the day must exist and a date-time carries its offset.

const DATE = /^(\d{4})-(\d\d)-(\d\d)$/
const DATE_TIME =
  /^(\d{4}-\d\d-\d\d)T([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(\.\d{1,9})?(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/
const MINUTE_MS = 60_000

/** True for `YYYY-MM-DD` of a day that exists. */
export function isDate(text: string): boolean {
  return dayMs(text) !== null
}

/** True for an RFC 3339 date-time with seconds and an offset. */
export function isDateTime(text: string): boolean {
  const parts = DATE_TIME.exec(text)
  return parts !== null && isDate(parts[1]!)
}

/**
 * Milliseconds since 1970 of a date-time, or of the midnight with which a date begins at the given offset (minutes
 * east of UTC); null where the text is neither.
 */
export function instantOf(text: string, offsetMinutes: number): number | null {
  const day = dayMs(text)
  if (day !== null) return day - offsetMinutes * MINUTE_MS
  const parts = DATE_TIME.exec(text)
  const midnight = parts && dayMs(parts[1]!)
  if (!parts || midnight === null || midnight === undefined) return null
  const [, , hour, minute, second, fraction, offset] = parts
  const seconds = Number(hour) * 3600 + Number(minute) * 60 + Number(second)
  const millis = Math.floor(Number(`0${fraction ?? ''}`) * 1000)
  return midnight + seconds * 1000 + millis - offsetOf(offset!) * MINUTE_MS
}

/** Minutes east of UTC of the offset with which a date-time ends (`Z`, `+02:00`). */
export function offsetOf(text: string): number {
  const parts = /([+-])(\d\d):(\d\d)$/.exec(text)
  if (!parts) return 0
  const minutes = Number(parts[2]) * 60 + Number(parts[3])
  return parts[1] === '-' ? -minutes : minutes
}

/** The date-time of an instant, with the offset that `like` ends with. Milliseconds only where there are any. */
export function formatLike(instantMs: number, like: string): string {
  const offset = /(Z|[+-]\d\d:\d\d)$/.exec(like)?.[1] ?? 'Z'
  const local = new Date(instantMs + offsetOf(offset) * MINUTE_MS).toISOString()
  return local.slice(0, -1).replace(/\.000$/, '') + offset
}

/** UTC midnight of `YYYY-MM-DD`, or null where there is no such day. */
function dayMs(text: string): number | null {
  const parts = DATE.exec(text)
  if (!parts) return null
  const ms = Date.parse(`${text}T00:00:00Z`)
  // Date.parse takes 31 February for 3 March: what it read must be what was written.
  return Number.isNaN(ms) || new Date(ms).toISOString().slice(0, 10) !== text ? null : ms
}
