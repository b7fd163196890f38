// What was asked beside the policy, as costs: of one attempt, and added up over a group's.
import type { AskedTotal, GroupCost } from '../../../protocol/batch.ts'
import type { AskedCosts } from '../../../protocol/sealed.ts'

type Totals = NonNullable<GroupCost['asked']>
type Kind = keyof Totals

/** Tokens come from the replies that were played, seconds from the waits; undefined where nobody was asked. */
export function askedTotals(
  costs: AskedCosts,
  seconds: Partial<Record<Kind, number>>,
): Totals | undefined {
  const kinds = [...new Set([...Object.keys(costs), ...Object.keys(seconds)])] as Kind[]
  if (kinds.length === 0) return undefined
  return Object.fromEntries(
    kinds.map((kind) => [kind, { ...NOTHING, ...costs[kind], seconds: seconds[kind] ?? 0 }]),
  )
}

/** By kind. */
export function addTotals(one: Totals = {}, other: Totals = {}): Totals {
  const sum = { ...one }
  for (const [name, added] of Object.entries(other)) {
    const before = sum[name as Kind] ?? NOTHING
    const keys = Object.keys(NOTHING) as (keyof AskedTotal)[]
    sum[name as Kind] = Object.fromEntries(
      keys.map((key) => [key, before[key] + added[key]]),
    ) as unknown as AskedTotal
  }
  return sum
}

/** Those of which there is anything, as a part of a cost. */
export function askedPart(totals: Totals): Pick<GroupCost, 'asked'> {
  const some = Object.entries(totals).filter(
    ([, { requests, kept, seconds }]) => requests + kept > 0 || seconds > 0,
  )
  return some.length === 0 ? {} : { asked: Object.fromEntries(some) }
}

const NOTHING: AskedTotal = {
  requests: 0,
  kept: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
  seconds: 0,
}
