// Which weights an engine has, asked beside its replies: vLLM's completions name no version, its /weight_info does.
import type { Dispatcher } from 'undici'
import type { Patience } from '../threads/patience.ts'
import { replyVersion } from './reply-version.ts'

/** It is a lookup; an engine that takes longer tells nothing. */
const LONGEST_MS = 1000

/** The version as text; null where none is told in time: the reply's version is then as unknown as without asking. */
export async function weightInfo(
  pool: Dispatcher,
  path: string,
  headers: Record<string, string>,
  patience: Patience,
): Promise<string | null> {
  const stop = new AbortController()
  const timer = setTimeout(() => stop.abort(), LONGEST_MS)
  patience.onEnd(() => stop.abort())
  try {
    const request = { path, method: 'GET' as const, headers, signal: stop.signal }
    const { statusCode, body } = await pool.request(request)
    const bytes = await body.bytes()
    return statusCode === 200 ? replyVersion(bytes) : null
  } catch {
    return null
  } finally {
    clearTimeout(timer)
    patience.onEnd(null)
  }
}

/**
 * What is said of a reply that came between two answers: the older of two numbers, so that no token looks fresher than it
 * may be; a label where one of them is one; null where one of them is missing.
 */
export function versionAround(before: string | null, after: string | null): string | null {
  if (before === null || after === null) return null
  const label = [before, after].find((told) => !/^\d+$/.test(told))
  return label ?? (Number(after) < Number(before) ? after : before)
}
