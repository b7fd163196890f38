// One try of a policy request at one endpoint: what came, whether another try may help, and what it says of the endpoint.
import type { Dispatcher } from 'undici'
import type { HttpReply } from '../../../rollout/request.ts'
import type { Patience } from '../threads/patience.ts'
import { BrokenOff, CONNECTION_LOST, post } from './http-post.ts'
import type { Redaction } from './redaction.ts'
import { retryAfterMs } from './retry-after.ts'
import { createStopwatch, type PaceLimits, type Stopwatch, TooSlow } from './stopwatch.ts'

/** A request that brought no reply worth reading. */
export interface PolicyFailure {
  kind: 'failure'
  /** `timeout`: the deadline given with the request, or a limit of the stream; `aborted`: it was withdrawn. */
  outcome: 'infra_backend' | 'timeout' | 'aborted'
  /** Empty where the deadline passed: whoever gave it names it. */
  reason: string
}

export type PolicyAnswer = ({ kind: 'reply' } & HttpReply) | PolicyFailure

/** What one try came to, for the metrics. */
export type CodeClass =
  | '2xx'
  | '3xx'
  | '4xx'
  | '429'
  | '5xx'
  | 'timeout'
  | 'reset'
  | 'truncated'
  | 'invalid'

export interface Tried {
  answer: PolicyAnswer
  code: CodeClass
  /** Milliseconds that the endpoint asks to wait before another try; null where none would help. */
  again: number | null
  /** Of a streamed reply that came whole. */
  pace: Stopwatch | null
  /** The endpoint has other weights than the announced ones. */
  outdated?: true
}

interface Sent {
  path: string
  headers: Record<string, string>
  body: Uint8Array
}

/** Never rejects. `limits` are of a streamed reply, null where it comes whole. */
export async function tryPost(
  pool: Dispatcher,
  { path, headers, body }: Sent,
  patience: Patience,
  limits: PaceLimits | null,
  redaction: Redaction,
): Promise<Tried> {
  const pace = limits && createStopwatch(limits)
  try {
    const reply = redaction.reply(await post(pool, path, headers, body, patience, pace))
    const again = retryAfterMs(reply)
    return { answer: { kind: 'reply', ...reply }, code: codeOf(reply), again, pace }
  } catch (thrown) {
    const error = thrown as Error & { code?: string }
    if (patience.ended()) return missed(failure('timeout', ''), 'timeout', null)
    // Nothing of a stream that was broken off is used, so that the request may be sent again.
    if (error instanceof TooSlow && limits)
      return missed(failure('timeout', tooSlow(error, limits)), 'timeout', 0)
    const { code, again } = classify(error)
    return missed(failure('infra_backend', redaction.text(sentence(error))), code, again)
  }
}

function missed(answer: PolicyFailure, code: CodeClass, again: number | null): Tried {
  return { answer, code, again, pace: null }
}

export function failure(outcome: PolicyFailure['outcome'], reason: string): PolicyFailure {
  return { kind: 'failure', outcome, reason }
}

function classify(error: Error & { code?: string }): Pick<Tried, 'code' | 'again'> {
  if (error instanceof BrokenOff) return { code: 'truncated', again: 0 }
  if (CONNECTION_LOST.includes(error.code ?? '')) return { code: 'reset', again: 0 }
  switch (error.code) {
    case 'UND_ERR_HEADERS_OVERFLOW':
    case 'UND_ERR_RES_EXCEEDED_MAX_SIZE':
      return { code: 'invalid', again: null }
    case 'ECONNREFUSED':
    case 'UND_ERR_CONNECT_TIMEOUT':
      return { code: 'reset', again: 0 }
    default:
      return { code: 'invalid', again: error.name === 'HTTPParserError' ? null : 0 }
  }
}

function tooSlow({ limit }: TooSlow, limits: PaceLimits): string {
  const seconds = limits[limit] / 1000
  return limit === 'firstTokenMs'
    ? `first_token_timeout_s: nothing came within ${seconds} s`
    : `token_gap_timeout_s: nothing more came for ${seconds} s`
}

function sentence(error: Error & { code?: string }): string {
  return error.code ? `${error.code}: ${error.message}` : error.message
}

/** Web servers whose engine is gone answer 200 with a page, or with nothing: what has no tokens is no success. */
function codeOf({ status, headers, body }: HttpReply): CodeClass {
  if (status < 300 && (body.length === 0 || /^text\/html\b/i.test(headers['content-type'] ?? '')))
    return 'invalid'
  if (status === 429) return '429'
  if (status < 300) return '2xx'
  return status < 400 ? '3xx' : status < 500 ? '4xx' : '5xx'
}
