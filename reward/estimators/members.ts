// Which members of a group vote, with what value, and why the others do not: nothing undefined reaches a mean.
import { PaddockError } from '../../protocol/errors.ts'
import type { GroupFigures, GroupScores, MemberAdvantage, MemberScore } from '../estimator.ts'
import { finite } from '../statistics.ts'
import type { Eligibility } from './settings.ts'

/** A member with a value votes; one without has the reason instead. */
export type Reading<Value = number> =
  | { value: Value; reason: null }
  | { value: null; reason: string }

export function voting<Value>(value: Value): Reading<Value> {
  return { value, reason: null }
}

export function without(reason: string): Reading<never> {
  return { value: null, reason }
}

/** The member's reward, or why it has none that may enter a mean. */
export function readMember(member: MemberScore, { vote }: Pick<Eligibility, 'vote'>): Reading {
  const { reward } = member
  if (reward === null || reward === undefined) return without(member.reason ?? 'reward_missing')
  if (typeof reward !== 'number') return without('reward_wrong_type')
  if (!Number.isFinite(reward)) return without('reward_not_finite')
  if (member.eligible === false && !vote) return without(member.reason ?? 'not_eligible')
  return voting(reward)
}

/** What `missing` makes of the members that have no value. `scoreAs` turns a set score into a vote. */
export function applyMissing<Value>(
  group: GroupScores,
  readings: Reading<Value>[],
  { missing }: Pick<Eligibility, 'missing'>,
  scoreAs: (score: number, row: number) => Value,
): Reading<Value>[] {
  const first = readings.findIndex((reading) => reading.value === null)
  if (first === -1) return readings
  if (missing === 'error')
    throw new PaddockError(
      'invalid_request',
      `member "${group.members[first]!.id}" of group "${group.id}" has no reward ` +
        `(${readings[first]!.reason}) and settings.missing is error; give it one, or choose excluded`,
      { path: 'settings.missing' },
    )
  if (missing === 'fail_group')
    return readings.map((reading) => without(reading.reason ?? 'group_failed'))
  if (typeof missing === 'string') return readings
  return readings.map((reading, row) =>
    reading.value === null ? voting(scoreAs(missing.score_as, row)) : reading,
  )
}

/** What a member outside the statistics gets: null, or 0 where the settings ask for it. Always with the reason. */
export function excludedAdvantage(
  reason: string,
  { missing }: Pick<Eligibility, 'missing'>,
): MemberAdvantage {
  return { advantage: missing === 'excluded_then_zero' ? 0 : null, steps: null, reason }
}

/**
 * A computed advantage as it goes out: finite and without a negative zero, or null with the reason. A step without one
 * is a reason too.
 */
export function emitted(
  value: number | null,
  reason: string | null,
  steps: (number | null)[] | null = null,
): MemberAdvantage {
  const advantage = finite(value)
  const own = steps?.map(finite) ?? null
  const whole = advantage !== null && !own?.includes(null)
  return { advantage, steps: own, reason: whole ? reason : (reason ?? 'advantage_not_finite') }
}

export function excludedMembers(
  group: GroupScores,
  readings: readonly Reading<unknown>[],
): GroupFigures['excluded'] {
  return readings.flatMap(({ reason }, index) =>
    reason === null ? [] : [{ id: group.members[index]!.id, reason }],
  )
}
