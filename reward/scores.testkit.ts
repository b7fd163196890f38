// Groups of scores for tests, short to write and without going through the answering of lines.
import fc from 'fast-check'
import type { GroupAdvantages, GroupScores, MemberScore } from './estimator.ts'
import { chooseEstimator } from './estimators.ts'

export function member(reward: number | null, more: Partial<MemberScore> = {}): MemberScore {
  const reason = reward === null ? 'infra_backend' : null
  return { id: 'm', reward, reason, components: {}, tokens: 1, steps: [], ...more }
}

export function group(rewards: readonly (number | null)[], id = 'g'): GroupScores {
  return { id, members: rewards.map((reward, index) => member(reward, { id: `${id}${index}` })) }
}

export function estimate(
  name: string,
  groups: readonly GroupScores[],
  given: Record<string, unknown> = {},
): GroupAdvantages[] {
  const { estimator, settings } = chooseEstimator(name, given)
  return estimator.advantages(groups, settings)
}

/** Advantages by group and member. */
export function advantages(results: readonly GroupAdvantages[]): (number | null)[][] {
  return results.map((result) => result.members.map((entry) => entry.advantage))
}

/** Rewards as graders give them: any magnitude that is not absurd, with repeats likely. */
export const rewardArbitrary = fc.oneof(
  fc.constantFrom(0, 1, 0.5, 0.1, 0.7),
  fc.double({ min: -1e6, max: 1e6, noNaN: true }),
)

/** Largest absolute difference of two lists; null differs from any number. */
export function distance(
  left: readonly (number | null)[],
  right: readonly (number | null)[],
): number {
  return left.reduce<number>((most, value, index) => {
    const other = right[index]!
    if (value === null || other === null) return value === other ? most : Number.POSITIVE_INFINITY
    return Math.max(most, Math.abs(value - other))
  }, 0)
}
