// Asks a policy backend: one total deadline, bounded retries, and every failure as one of the reasons of a closed list.
import { Pool as HttpPool } from 'undici'
import { MAX_REPLY_BYTES } from '../../protocol/limits.ts'
import type { HttpReply, PolicyRequest } from '../../rollout/request.ts'
import type { Backend } from '../config.ts'
import { post } from './http-post.ts'
import { openPatience, type Patience } from './patience.ts'
import { createRedaction } from './redaction.ts'

/** A request that brought no reply worth reading, after its tries. */
interface PolicyFailure {
  kind: 'failure'
  /** `timeout`: the deadline given with the request; `aborted`: whoever gave it withdrew it. */
  outcome: 'infra_backend' | 'timeout' | 'aborted'
  reason: string
}

export type PolicyAnswer = ({ kind: 'reply' } & HttpReply) | PolicyFailure

/** What one try came to, for the metrics. */
type CodeClass = '2xx' | '3xx' | '4xx' | '429' | '5xx' | 'timeout' | 'reset' | 'invalid'

export interface PolicyClient {
  /** Resolves by `deadline` (milliseconds of `performance.now()`), whatever the backend does. Never rejects. */
  ask(request: PolicyRequest, deadline: number, signal: AbortSignal): Promise<PolicyAnswer>
  inFlight(backend: string): number
  close(): Promise<void>
}

export interface PolicyClientHooks {
  onTry(backend: string, code: CodeClass, seconds: number): void
  onRetry(backend: string, reason: string): void
}

/** Tries after the first, for one request (OPS R8). */
const RETRIES = 2
const FIRST_BACKOFF_MS = 200
const MAX_BACKOFF_MS = 10_000
/** A Retry-After beyond this is not waited for. */
const MAX_RETRY_AFTER_MS = 30_000
/** Sockets to one backend: enough for every episode in flight to have its own. */
const CONNECTIONS = 1024

/** Engines of batches whose connections are kept: a run has one, a restarted one another. */
const MAX_FOREIGN_ENGINES = 16

/** One client for all backends of the configuration; `random` in [0, 1) jitters the back-off. */
export function createPolicyClient(
  backends: Record<string, Backend>,
  hooks: PolicyClientHooks,
  random: () => number = Math.random,
): PolicyClient {
  const targets = new Map(Object.entries(backends).map(([name, one]) => [name, targetOf(one)]))
  // What the backend sent is told in reasons, and trainers read them.
  const redaction = createRedaction(Object.values(backends).flatMap(({ api_key }) => api_key ?? []))
  const open = new Map<string, number>()
  /** Engines that batches brought, the one asked last at the end. */
  const foreign = new Map<string, Target>()

  /** The backend's own address, or the engine of the batch, which never sees the backend's key elsewhere. */
  function targetFor({ backend, url }: PolicyRequest): Target | undefined {
    const own = targets.get(backend)
    if (url === undefined || own === undefined) return own
    const { api_key, ...known } = backends[backend] as Backend
    const trusted = new URL(url).origin === new URL(known.url).origin
    const engine = { ...known, url, ...(trusted && api_key !== undefined && { api_key }) }
    const key = `${backend} ${url}`
    const target = foreign.get(key) ?? targetOf(engine)
    foreign.delete(key)
    foreign.set(key, target)
    for (const [oldest, { pool }] of foreign) {
      if (foreign.size <= MAX_FOREIGN_ENGINES) break
      foreign.delete(oldest)
      // Requests under way are finished first.
      void pool.close()
    }
    return target
  }

  async function tryOnce(request: PolicyRequest, patience: Patience): Promise<Tried> {
    const target = targetFor(request)
    if (!target) return failed('infra_backend', `no backend ${request.backend}`, false)
    const started = performance.now()
    const { base, authorization, pool } = target
    const told = (code: CodeClass) =>
      hooks.onTry(request.backend, code, (performance.now() - started) / 1000)
    try {
      const headers = authorization ? { ...request.headers, authorization } : request.headers
      const sent = await post(pool, base + request.path, headers, request.body, patience)
      const reply = redaction.reply(sent)
      told(codeClass(reply.status))
      const again = retryAfter(reply.status, reply.headers)
      return { answer: { kind: 'reply', ...reply }, again }
    } catch (error) {
      const { code, again } = classify(error as Error & { code?: string })
      told(patience.ended() ? 'timeout' : code)
      if (patience.ended()) return failed('timeout', 'the deadline passed', false)
      const reason = redaction.text(sentence(error as Error & { code?: string }))
      return failed('infra_backend', reason, again)
    }
  }

  return {
    async ask(request, deadline, signal) {
      const patience = openPatience(deadline, signal)
      open.set(request.backend, (open.get(request.backend) ?? 0) + 1)
      try {
        for (let tries = 0; ; tries++) {
          const { answer, again } = await tryOnce(request, patience)
          if (signal.aborted) return { kind: 'failure', outcome: 'aborted', reason: 'withdrawn' }
          if (patience.ended() && answer.kind === 'failure') return answer
          if (again === null || tries === RETRIES) return exhausted(answer, tries)
          const backoff = Math.min(FIRST_BACKOFF_MS * 2 ** tries, MAX_BACKOFF_MS) * (0.5 + random())
          const wait = Math.max(again, backoff)
          if (performance.now() + wait >= deadline) return exhausted(answer, tries)
          hooks.onRetry(request.backend, retryReason(answer))
          await patience.wait(wait)
        }
      } finally {
        patience.close()
        open.set(request.backend, (open.get(request.backend) ?? 1) - 1)
      }
    },
    inFlight: (backend) => open.get(backend) ?? 0,
    async close() {
      const all = [...targets.values(), ...foreign.values()]
      await Promise.all(all.map(({ pool }) => pool.destroy()))
    },
  }
}

type Target = ReturnType<typeof targetOf>

/** A backend's address in parts, made once: paths of requests are added to `base`. */
function targetOf({ url, api_key }: Backend) {
  const { origin, pathname } = new URL(url)
  const pool = new HttpPool(origin, {
    connections: CONNECTIONS,
    // The turn's own deadline is the only one: undici's 300 s would cut long answers.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxResponseSize: MAX_REPLY_BYTES,
  })
  const base = pathname.replace(/\/(v1\/?)?$/, '')
  return { pool, base, authorization: api_key === undefined ? null : `Bearer ${api_key}` }
}

/** `again`: milliseconds that the backend asks to wait before another try; null where none would help. */
interface Tried {
  answer: PolicyAnswer
  again: number | null
}

function failed(outcome: PolicyFailure['outcome'], reason: string, again: boolean): Tried {
  return { answer: { kind: 'failure', outcome, reason }, again: again ? 0 : null }
}

/** The last answer, with the number of tries in its reason. */
function exhausted(answer: PolicyAnswer, tries: number): PolicyAnswer {
  if (answer.kind === 'reply' || tries === 0) return answer
  return { ...answer, reason: `${answer.reason} (after ${tries + 1} tries)` }
}

/** A sampled answer is never asked for again; a refusal before any token may be. */
function retryAfter(status: number, headers: Record<string, string>): number | null {
  if (status !== 429 && status < 500) return null
  const seconds = Number(headers['retry-after'] ?? 0)
  const wait = Number.isFinite(seconds) ? Math.max(0, seconds * 1000) : 0
  return wait > MAX_RETRY_AFTER_MS ? null : wait
}

function classify(error: Error & { code?: string }): { code: CodeClass; again: boolean } {
  switch (error.code) {
    case 'UND_ERR_HEADERS_OVERFLOW':
    case 'UND_ERR_RES_EXCEEDED_MAX_SIZE':
      return { code: 'invalid', again: false }
    case 'ECONNREFUSED':
    case 'ECONNRESET':
    case 'EPIPE':
    case 'UND_ERR_SOCKET':
    case 'UND_ERR_CONNECT_TIMEOUT':
      return { code: 'reset', again: true }
    default:
      return { code: 'invalid', again: error.name !== 'HTTPParserError' }
  }
}

function sentence(error: Error & { code?: string }): string {
  return error.code ? `${error.code}: ${error.message}` : error.message
}

function retryReason(answer: PolicyAnswer): string {
  if (answer.kind === 'failure') return 'connect'
  return answer.status === 429 ? '429' : '5xx'
}

function codeClass(status: number): CodeClass {
  if (status === 429) return '429'
  if (status < 300) return '2xx'
  return status < 400 ? '3xx' : status < 500 ? '4xx' : '5xx'
}
