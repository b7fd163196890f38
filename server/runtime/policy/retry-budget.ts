// A backend's budget of retries: they stay a small share of its requests, so that a failing backend is not asked thrice.

/** Requests and the retries among them by second, the oldest first. */
export type RetryBudget = readonly { second: number; requests: number; retries: number }[]

// OPS R8.
const WINDOW_S = 60
const SHARE = 0.1
/** Retries that even an idle backend may have. */
const LEAST = 3

/** Counts a first request or a retry. `at` in milliseconds of a clock that never steps back. */
export function spend(budget: RetryBudget, what: 'requests' | 'retries', at: number): RetryBudget {
  const second = Math.floor(at / 1000)
  const last = budget.at(-1)
  const isSame = last?.second === second
  const counts = isSame ? last : { second, requests: 0, retries: 0 }
  return [
    ...within(isSame ? budget.slice(0, -1) : budget, second),
    { ...counts, [what]: counts[what] + 1 },
  ]
}

/** Retries that the window allows in all, and how many of them are left: one may go out where at least 1 is. */
export function allowance(budget: RetryBudget, at: number): { allowed: number; left: number } {
  const counted = within(budget, Math.floor(at / 1000))
  const requests = counted.reduce((sum, one) => sum + one.requests, 0)
  const retries = counted.reduce((sum, one) => sum + one.retries, 0)
  const allowed = LEAST + SHARE * requests
  return { allowed, left: Math.max(0, allowed - retries) }
}

function within(budget: RetryBudget, second: number): RetryBudget {
  return budget.filter((one) => one.second > second - WINDOW_S)
}
