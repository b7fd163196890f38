// Asks a policy backend: one total deadline, bounded retries, and every failure as one of the reasons of a closed list.
import type { PolicyRequest } from '../../../rollout/request.ts'
import type { Backend } from '../../config.ts'
import { openPatience, type Patience } from '../threads/patience.ts'
import { admits, type BreakerEvent, breakerReducer } from './breaker.ts'
import { withCacheSalt } from './cache-salt.ts'
import { chooseEndpoint, type Endpoint, opensAt, type Seat } from './endpoints.ts'
import type { Announced, PolicyBoard } from './policy-board.ts'
import { createTargets, type Target } from './policy-targets.ts'
import { type CodeClass, failure, type PolicyAnswer, type Tried, tryPost } from './policy-try.ts'
import { createRedaction } from './redaction.ts'
import { replyVersion } from './reply-version.ts'
import { allowance, spend } from './retry-budget.ts'
import { versionAround, weightInfo } from './weight-info.ts'

export interface PolicyClient {
  /**
   * Resolves by `deadline` (milliseconds of `performance.now()`), whatever the backend does. Never rejects. The requests
   * of one attempt share a seat.
   */
  ask(
    request: PolicyRequest,
    deadline: number,
    signal: AbortSignal,
    seat?: Seat,
  ): Promise<PolicyAnswer>
  /** The last reply of this seat could not be used: its endpoint is asked only where there is no other, for a while. */
  blame(seat: Seat): void
  /** Resolves when the backend is not paused, or patience has ended. */
  resumed: PolicyBoard['resumed']
  inFlight(backend: string): number
  close(): Promise<void>
}

type RetryReason = 'connect' | 'timeout' | '429' | '5xx' | 'truncated' | 'invalid' | 'version'

/** What the metrics hear. */
export interface PolicyClientHooks {
  /** One try, and in words what came of it; those that are withdrawn on the way came to nothing that could be told. */
  backendTry(backend: string, code: CodeClass, seconds: number, what: string): void
  /** One request with all its tries: what the last came to. */
  backendAsked(backend: string, code: CodeClass): void
  /** None of its endpoints may be asked for a while, since they failed. */
  backendLeftAlone(backend: string): void
  backendRetry(backend: string, reason: RetryReason): void
  /** The best of its endpoints. */
  breaker(backend: string, state: 'closed' | 'half_open' | 'open'): void
  /** The part of the budget that is left, 1 for all. */
  retryBudget(backend: string, ratio: number): void
  /** Of a streamed reply: seconds from the request to the first piece, and on average between two pieces. */
  firstToken(backend: string, seconds: number): void
  tokenGap(backend: string, seconds: number): void
}

/** Tries after the first, for one request (OPS R8). */
const RETRIES = 2
const FIRST_BACKOFF_MS = 200
const MAX_BACKOFF_MS = 10_000

/** An endpoint with other weights than the announced ones is asked again after so long. */
const OUTDATED_MS = 5000

/** One try that an endpoint was taken for; `probe`: the one that decides whether it is back. */
interface Pass {
  endpoint: Endpoint
  probe: boolean
}

/** What a request came to, and its last try; null where none went out. */
interface Asked {
  answer: PolicyAnswer
  code: CodeClass | null
}

/** One client for all backends of the configuration; `random` in [0, 1) jitters the back-off. */
export function createPolicyClient(
  backends: Record<string, Backend>,
  board: Pick<PolicyBoard, 'of' | 'resumed'>,
  hooks: PolicyClientHooks,
  random: () => number = Math.random,
): PolicyClient {
  const targets = createTargets(backends)
  const inFlight = new Map<string, number>()
  // What the backend sent is told in reasons, and trainers read them.
  const redaction = createRedaction(Object.values(backends).flatMap(({ api_key }) => api_key ?? []))

  /** One try, told to the metrics and to the endpoint's breaker. */
  async function tryOnce(
    target: Target,
    { endpoint, probe }: Pass,
    request: PolicyRequest,
    patience: Patience,
    signal: AbortSignal,
  ): Promise<Tried> {
    const started = performance.now()
    const announced = board.of(target.name)
    const sent = {
      path: endpoint.base + request.path,
      headers: { ...request.headers, ...target.headers },
      body: bodyOf(target, request),
    }
    const told = () =>
      target.backend.weight_info && request.path !== '/tokenize'
        ? weightInfo(endpoint.pool, `${endpoint.base}/weight_info`, target.headers, patience)
        : null
    const before = await told()
    const posted = await tryPost(endpoint.pool, sent, patience, target.paceLimits, redaction)
    const around = before === null ? null : versionAround(before, await told())
    if (around !== null && posted.answer.kind === 'reply') posted.answer.weightVersion = around
    const tried = current(target, endpoint, posted, announced)
    endpoint.inFlight--
    const at = performance.now()
    const what = failureText(tried)
    if (!signal.aborted) hooks.backendTry(target.name, tried.code, (at - started) / 1000, what)
    const [firstMs, gapMs] = [tried.pace?.firstTokenMs(), tried.pace?.gapMs()]
    if (firstMs) hooks.firstToken(target.name, firstMs / 1000)
    if (gapMs) hooks.tokenGap(target.name, gapMs / 1000)
    const event = breakerEvent(tried, at, probe, signal.aborted)
    if (event.type === 'failed' || event.type === 'limited') target.lastFailure = what
    feed(target, endpoint, event)
    return tried
  }

  /**
   * A reply of weights older than those announced when it was asked for (the version before them apart), or of none that
   * can be named, is no reply, as long as another endpoint may have the right ones: else a backend that never tells its
   * version would be asked in vain.
   */
  function current(
    { endpoints }: Target,
    endpoint: Endpoint,
    tried: Tried,
    { version, previous }: Announced,
  ): Tried {
    if (tried.code !== '2xx' || tried.answer.kind !== 'reply' || version === null) return tried
    const told = replyVersion(tried.answer.body) ?? tried.answer.weightVersion ?? null
    if (told === null) return tried
    const oldest = previous ?? version
    endpoint.current = /^\d+$/.test(told) && Number(told) >= oldest
    const hasOther = endpoints.some((one) => one !== endpoint && one.current !== false)
    if (endpoint.current || !hasOther) return tried
    const reason = `version: expected ${oldest} or newer, an endpoint replied with ${told}`
    return { ...tried, answer: failure('infra_backend', reason), again: 0, outdated: true }
  }

  /** `cache_salt` is vLLM's; SGLang drops its cache with the update. */
  function bodyOf({ name, backend }: Target, { path, body }: PolicyRequest): Uint8Array {
    const { version, epoch } = board.of(name)
    const takesSalt = backend.dialect !== 'sglang' && backend.cache_salt && path !== '/tokenize'
    return takesSalt && version !== null ? withCacheSalt(body, `${epoch}/${version}`) : body
  }

  function feed(target: Target, endpoint: Endpoint, event: BreakerEvent): void {
    const { phase } = endpoint.breaker
    endpoint.breaker = breakerReducer(endpoint.breaker, event)
    if (phase === endpoint.breaker.phase) return
    const best = bestOf(target.endpoints)
    hooks.breaker(target.name, best)
    if (best === 'open' && event.type === 'failed') hooks.backendLeftAlone(target.name)
    for (const wake of target.waiting) wake()
  }

  function pay(target: Target, what: 'requests' | 'retries'): void {
    const at = performance.now()
    target.budget = spend(target.budget, what, at)
    const { allowed, left } = allowance(target.budget, at)
    hooks.retryBudget(target.name, left / allowed)
  }

  /** Taken at once, so that of many requests that wait one is the probe and each sees the others' load. */
  function pass(target: Target, endpoint: Endpoint, at: number): Pass {
    const probe = admits(endpoint.breaker, at) === 'probe'
    if (probe) feed(target, endpoint, { type: 'probe', at })
    endpoint.inFlight++
    endpoint.sent++
    return { endpoint, probe }
  }

  /** Waits while the backend is paused and while no endpoint may be asked; null where that is too long. */
  async function admitted(
    target: Target,
    wish: { own: Endpoint | null; avoid: Endpoint | null },
    deadline: number,
    patience: Patience,
  ): Promise<Pass | null> {
    await board.resumed(target.name, patience)
    while (!patience.ended()) {
      const now = performance.now()
      const endpoint = chooseEndpoint(target.endpoints, wish, now)
      if (endpoint) return pass(target, endpoint, now)
      const at = opensAt(target.endpoints)
      if (at !== null && at >= deadline) return null
      await patience.wait(at === null ? null : Math.max(1, Math.ceil(at - now)), target.waiting)
    }
    return null
  }

  async function askTarget(
    target: Target,
    request: PolicyRequest,
    deadline: number,
    patience: Patience,
    signal: AbortSignal,
    seat: Seat,
  ): Promise<Asked> {
    const wish = { own: seat.endpoint, avoid: null as Endpoint | null }
    let last: Asked | null = null
    for (let tries = 0; ; tries++) {
      const pass = await admitted(target, wish, deadline, patience)
      if (!pass) return last ?? notAdmitted(target, board.of(target.name).paused)
      pay(target, tries === 0 ? 'requests' : 'retries')
      seat.endpoint = pass.endpoint
      const tried = await tryOnce(target, pass, request, patience, signal)
      last = { answer: told(tried.answer, tries), code: tried.code }
      if (patience.ended() || tried.again === null) return last
      // A Retry-After is of this endpoint, and another need not wait for it.
      const asked = target.endpoints.length > 1 ? 0 : tried.again
      const backoff = Math.min(FIRST_BACKOFF_MS * 2 ** tries, MAX_BACKOFF_MS) * (0.5 + random())
      const wait = Math.max(asked, backoff)
      const { left } = allowance(target.budget, performance.now())
      if (tries === RETRIES || left < 1 || performance.now() + wait >= deadline) return last
      hooks.backendRetry(target.name, retryReason(tried))
      wish.avoid = pass.endpoint
      await patience.wait(wait)
    }
  }

  return {
    async ask(request, deadline, signal, seat = { endpoint: null }) {
      const target = targets.of(request)
      if (!target) return failure('infra_backend', `no backend ${request.backend}`)
      const patience = openPatience(deadline, signal)
      const { backend } = request
      inFlight.set(backend, (inFlight.get(backend) ?? 0) + 1)
      try {
        const { answer, code } = await askTarget(target, request, deadline, patience, signal, seat)
        if (signal.aborted) return failure('aborted', 'withdrawn')
        if (code !== null) hooks.backendAsked(backend, code)
        return answer
      } finally {
        patience.close()
        inFlight.set(backend, (inFlight.get(backend) ?? 1) - 1)
      }
    },
    blame({ endpoint }) {
      if (endpoint) endpoint.blamedAt = performance.now()
    },
    resumed: board.resumed,
    inFlight: (backend) => inFlight.get(backend) ?? 0,
    close: targets.close,
  }
}

function bestOf(endpoints: readonly Endpoint[]): 'closed' | 'half_open' | 'open' {
  const phases = endpoints.map(({ breaker }) => breaker.phase)
  if (phases.includes('closed')) return 'closed'
  return phases.includes('probing') ? 'half_open' : 'open'
}

/** What a try says of its endpoint: a refusal of the one request is no failure of it (OPS R9). */
function breakerEvent(
  { code, again, outdated }: Tried,
  at: number,
  probe: boolean,
  withdrawn: boolean,
): BreakerEvent {
  if (withdrawn) return { type: 'withdrawn', at, probe }
  if (outdated) return { type: 'limited', at, probe, ms: OUTDATED_MS }
  if (code === '429' && again) return { type: 'limited', at, probe, ms: again }
  if (code === '2xx') return { type: 'ok', at, probe }
  const refused = code === '3xx' || code === '4xx' || code === '429'
  return { type: refused ? 'answered' : 'failed', at, probe }
}

function failureText({ answer, code }: Tried): string {
  if (answer.kind === 'reply')
    return `status ${answer.status}${code === 'invalid' ? ', and no completion' : ''}`
  return answer.reason || 'no answer before the deadline'
}

/** The wait for an endpoint was the backend's fault, unless somebody has paused it. */
function notAdmitted({ lastFailure }: Target, paused: boolean): Asked {
  const left = `the backend is left alone for a while after failures, the last: ${lastFailure}`
  const answer = paused ? failure('timeout', '') : failure('infra_backend', left)
  return { answer, code: null }
}

/** The answer, with the number of tries in the reason of a failure. */
function told(answer: PolicyAnswer, tries: number): PolicyAnswer {
  if (answer.kind === 'reply' || tries === 0 || answer.reason === '') return answer
  return { ...answer, reason: `${answer.reason} (after ${tries + 1} tries)` }
}

function retryReason({ code, outdated }: Tried): RetryReason {
  if (outdated) return 'version'
  if (code === 'reset') return 'connect'
  // No reply of another status is asked for again (retry-after.ts).
  return code === '2xx' || code === '3xx' || code === '4xx' ? '5xx' : code
}
