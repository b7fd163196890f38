// Whether a refused request may be sent again, and when: by its status and its Retry-After.
import type { HttpReply } from '../../../rollout/request.ts'

/** A Retry-After beyond this is not waited for (OPS R8). */
const MAX_MS = 30_000

/**
 * Milliseconds until the same may be asked again, null where it may not: an answer is never asked for again, a refusal
 * (429 and what is at fault on the other side) may be, unless it names a moment too far off.
 */
export function retryAfterMs({
  status,
  headers,
}: Pick<HttpReply, 'status' | 'headers'>): number | null {
  if (status !== 429 && status < 500) return null
  const wait = asMs(headers['retry-after'])
  return wait > MAX_MS ? null : wait
}

/** RFC 9110 10.2.3: whole seconds, or a date. What is neither asks for no wait. */
function asMs(value = ''): number {
  const seconds = /^\s*\d+(\.\d+)?\s*$/.test(value)
    ? Number(value)
    : (Date.parse(value) - Date.now()) / 1000
  return Number.isFinite(seconds) ? Math.max(0, seconds * 1000) : 0
}
