// Asks a reward model over HTTP: each try under its own limit, all of them within one budget, and never a word of its own.
import type { HttpReply, RewardRequest } from '../../../rollout/request.ts'
import { retryAfterMs } from '../policy/retry-after.ts'
import { openPatience } from '../threads/patience.ts'
import type { GuardedHttp } from './guarded-url.ts'

const FIRST_BACKOFF_MS = 200

/** The last reply; an error's words where there was none, as status 0. Rejects never. */
export async function askRewardModel(
  http: Pick<GuardedHttp, 'post'>,
  { url, headers, body, timeoutMs, budgetMs, retries }: RewardRequest,
  deadline: number,
  signal: AbortSignal,
): Promise<HttpReply> {
  const end = Math.min(deadline, performance.now() + budgetMs)
  const patience = openPatience(end, signal)
  try {
    for (let tries = 1; ; tries++) {
      const left = end - performance.now()
      const reply = await tryOnce(http, url, {
        headers,
        body,
        timeoutMs: Math.min(timeoutMs, left),
        signal,
      })
      const asked = reply.status === 0 ? 0 : retryAfterMs(reply)
      if (asked === null || tries > retries || patience.ended()) return told(reply, tries)
      const pause = Math.max(asked, FIRST_BACKOFF_MS * 2 ** (tries - 1))
      // What could not be asked before the budget ends is told now.
      if (performance.now() + pause >= end) return told(reply, tries)
      await patience.wait(pause)
      if (patience.ended()) return told(reply, tries)
    }
  } finally {
    patience.close()
  }
}

async function tryOnce(
  http: Pick<GuardedHttp, 'post'>,
  url: string,
  request: Parameters<GuardedHttp['post']>[1],
): Promise<HttpReply> {
  try {
    return await http.post(url, request)
  } catch (error) {
    const { code, message } = error as Error & { code?: string }
    const reason = code ? `${code}: ${message}` : message
    return { status: 0, headers: {}, body: new TextEncoder().encode(reason) }
  }
}

function told(reply: HttpReply, tries: number): HttpReply {
  if (reply.status !== 0 || tries === 1) return reply
  const reason = `${new TextDecoder().decode(reply.body)} (after ${tries} tries)`
  return { ...reply, body: new TextEncoder().encode(reason) }
}
