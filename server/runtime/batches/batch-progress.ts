// What is told of a batch while it runs: its episodes by outcome, its groups by verdict, and what they cost.
import type { BatchProgress, GroupCost } from '../../../protocol/batch.ts'
import { type GroupVerdict, isScored } from '../../../protocol/outcomes.ts'
import { moments } from '../../../reward/statistics.ts'
import { hasStarted, memberStarted } from '../../../rollout/group.ts'
import { addTotals, askedPart } from '../asking/asked-cost.ts'
import type { GroupRun } from './group-run.ts'

export function episodeProgress(groups: readonly GroupRun[]): BatchProgress['episodes'] {
  const members = groups.flatMap((group) =>
    group.state.members.map((member) => ({ group, member })),
  )
  const rewards = groups.flatMap(rewardsOf)
  const ended = members.filter(({ member }) => member.phase === 'ended')
  const flying = members.filter(({ member }) => member.phase !== 'ended' && memberStarted(member))
  return {
    total: members.length,
    started: members.filter(({ member }) => memberStarted(member)).length,
    finished: ended.length,
    in_flight: flying.length,
    outcomes: tally(ended.flatMap(({ member }) => member.outcome ?? [])),
    retried: groups.reduce((sums, group) => added(sums, group.retried), {}),
    mean_reward: meanOf(rewards),
  }
}

export function groupProgress(
  groups: readonly GroupRun[],
): Omit<BatchProgress['groups'], 'ready' | 'leased' | 'settled'> {
  const settled = groups.filter((group) => group.settled)
  const flying = groups.filter((group) => !group.settled && hasStarted(group.state))
  return {
    total: groups.length,
    started: settled.length + flying.length,
    finished: settled.length,
    in_flight: flying.length,
    greedy_suspect: settled.flatMap((group) => (group.settled?.greedySuspect ? [group.id] : [])),
    verdicts: tally(settled.flatMap((group) => group.settled?.verdict ?? [])),
    costs: {
      delivered: costOf(settled.filter(({ settled }) => settled?.as === 'ready')),
      replaced: costOf(settled.filter(({ settled }) => settled?.replaced)),
      dropped: costOf(
        settled.filter(({ settled }) => settled?.as === 'dropped' && !settled.replaced),
      ),
      retried: costOf(settled.map(({ retriedCost }) => ({ cost: retriedCost }))),
    },
    mean_group_reward: meanOf(settled.flatMap((group) => meanOf(rewardsOf(group)) ?? [])),
    mean_seconds: {
      delivered: meanSeconds(settled.filter(({ settled }) => settled?.as === 'ready')),
      dropped: meanSeconds(settled.filter(({ settled }) => settled?.as === 'dropped')),
    },
    dropped: settled
      .filter((group) => group.settled?.as === 'dropped')
      .map((group) => ({
        id: group.id,
        task: group.known.task.id,
        verdict: group.settled?.verdict as GroupVerdict,
        reason: firstReason(group),
        cost: group.cost,
      })),
  }
}

/** What a server found in its ledger when it started. */
export interface Recovered {
  batches: number
  groups_ready: number
  groups_leased: number
  episodes_under_way: number
}

export function recoveredOf(batches: readonly BatchProgress[]): Recovered {
  return {
    batches: batches.length,
    groups_ready: total(batches, ({ groups }) => groups.ready),
    groups_leased: total(batches, ({ groups }) => groups.leased),
    episodes_under_way: total(batches, ({ episodes }) => episodes.in_flight),
  }
}

function costOf(groups: readonly Pick<GroupRun, 'cost'>[]): GroupCost {
  return {
    prompt_tokens: total(groups, ({ cost }) => cost.prompt_tokens),
    completion_tokens: total(groups, ({ cost }) => cost.completion_tokens),
    seconds: total(groups, ({ cost }) => cost.seconds),
    ...askedPart(askedOf(groups)),
  }
}

function askedOf(groups: readonly Pick<GroupRun, 'cost'>[]): NonNullable<GroupCost['asked']> {
  return groups.reduce((sum, { cost }) => addTotals(sum, cost.asked), {})
}

/** Of its scored members. */
function rewardsOf({ results }: GroupRun): number[] {
  return [...results.values()].flatMap(({ outcome, header }) =>
    isScored(outcome) && header?.reward != null ? [header.reward] : [],
  )
}

function meanSeconds(groups: readonly GroupRun[]): number | null {
  return meanOf(groups.flatMap(({ settled }) => settled?.seconds ?? []))
}

function meanOf(values: readonly number[]): number | null {
  return values.length === 0 ? null : moments(values, 'population').mean
}

/** The first failure's own words; null where nothing failed. */
export function firstReason(group: GroupRun): string | null {
  if (group.fault !== null) return group.fault
  const failed = [...group.results.values()].find((result) => !isScored(result.outcome))
  return failed ? `${failed.outcome}: ${failed.reason}` : null
}

function tally<Name extends string>(names: readonly Name[]): Partial<Record<Name, number>> {
  const counts: Partial<Record<Name, number>> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}

function added<Name extends string>(
  a: Partial<Record<Name, number>>,
  b: Partial<Record<Name, number>>,
): Partial<Record<Name, number>> {
  const sums = { ...a }
  for (const name of Object.keys(b) as Name[]) sums[name] = (sums[name] ?? 0) + (b[name] ?? 0)
  return sums
}

export function total<T>(items: readonly T[], value: (item: T) => number): number {
  return items.reduce((sum, item) => sum + value(item), 0)
}
