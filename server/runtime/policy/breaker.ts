// The circuit breaker of one endpoint: an endpoint that fails is left alone for a while, then tried with one request.

/** Times are milliseconds of a clock that never steps back. */
export interface Breaker {
  phase: 'closed' | 'open' | 'probing'
  /** Failures since the last success, while closed. */
  failures: number
  /** Results of the last `WINDOW_S` seconds, while closed, the oldest second first. */
  seconds: readonly { second: number; ok: number; failed: number }[]
  /** When a probe may go out, while open. */
  openUntil: number
  /** How long it opens the next time. */
  openMs: number
}

/**
 * What became of a request. `answered`: a refusal of this one request (4xx), which says that somebody is there and no
 * more; `limited`: a 429 that asks to wait; `withdrawn`: nobody waits for it any more. `probe` marks the request that
 * was let through as one.
 */
export type BreakerEvent =
  | { type: 'probe'; at: number }
  | { type: 'ok' | 'failed' | 'answered' | 'withdrawn'; at: number; probe: boolean }
  | { type: 'limited'; at: number; probe: boolean; ms: number }

// OPS R9.
const FAILURES_IN_A_ROW = 10
const WINDOW_S = 30
const LEAST_IN_WINDOW = 20
const FAILED_SHARE = 0.5
const FIRST_OPEN_MS = 15_000
const LONGEST_OPEN_MS = 120_000

export const closedBreaker: Breaker = {
  phase: 'closed',
  failures: 0,
  seconds: [],
  openUntil: 0,
  openMs: FIRST_OPEN_MS,
}

/** Whether a request may go out now: `probe` as the one that decides whether the endpoint is back. */
export function admits({ phase, openUntil }: Breaker, at: number): 'yes' | 'probe' | 'no' {
  if (phase === 'closed') return 'yes'
  return phase === 'open' && at >= openUntil ? 'probe' : 'no'
}

/** What comes of a request that went out before the breaker opened changes nothing any more. */
export function breakerReducer(state: Breaker, event: BreakerEvent): Breaker {
  switch (event.type) {
    case 'probe':
      return admits(state, event.at) === 'probe' ? { ...state, phase: 'probing' } : state
    case 'limited':
      if (state.phase === 'open' || (state.phase === 'probing' && !event.probe)) return state
      return { ...state, phase: 'open', openUntil: event.at + event.ms }
    default:
      if (state.phase === 'closed') return counted(state, event.type, event.at)
      return state.phase === 'probing' && event.probe
        ? afterProbe(state, event.type, event.at)
        : state
  }
}

type Result = 'ok' | 'failed' | 'answered' | 'withdrawn'

function counted(state: Breaker, result: Result, at: number): Breaker {
  if (result === 'answered' || result === 'withdrawn') return state
  const failures = result === 'failed' ? state.failures + 1 : 0
  const seconds = withResult(state.seconds, result, Math.floor(at / 1000))
  const next = { ...state, failures, seconds }
  return failures >= FAILURES_IN_A_ROW || mostlyFailed(seconds) ? opened(next, at) : next
}

function afterProbe(state: Breaker, result: Result, at: number): Breaker {
  if (result === 'failed') return opened(state, at)
  // A probe that nobody waited for has shown nothing: the next request is one.
  return result === 'withdrawn' ? { ...state, phase: 'open', openUntil: at } : closedBreaker
}

function opened(state: Breaker, at: number): Breaker {
  return {
    phase: 'open',
    failures: 0,
    seconds: [],
    openUntil: at + state.openMs,
    openMs: Math.min(state.openMs * 2, LONGEST_OPEN_MS),
  }
}

function withResult(
  seconds: Breaker['seconds'],
  result: 'ok' | 'failed',
  second: number,
): Breaker['seconds'] {
  const last = seconds.at(-1)
  const isSame = last?.second === second
  const counts = isSame ? last : { second, ok: 0, failed: 0 }
  const kept = isSame ? seconds.slice(0, -1) : seconds
  return [
    ...kept.filter((one) => one.second > second - WINDOW_S),
    { ...counts, [result]: counts[result] + 1 },
  ]
}

function mostlyFailed(seconds: Breaker['seconds']): boolean {
  const failed = seconds.reduce((sum, one) => sum + one.failed, 0)
  const all = seconds.reduce((sum, one) => sum + one.ok, failed)
  return all >= LEAST_IN_WINDOW && failed >= all * FAILED_SHARE
}
