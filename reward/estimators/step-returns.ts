// The steps of a group as rows: their rewards, what they add up to from each step on, and their anchors.
import { PaddockError } from '../../protocol/errors.ts'
import type { GroupScores, MemberScore } from '../estimator.ts'
import { sum } from '../statistics.ts'
import { applyMissing, type Reading, readMember, voting, without } from './members.ts'
import type { Eligibility } from './settings.ts'

/** A voting member: its reward, and the rewards of its steps, which sum to it. */
export interface ScoredSteps {
  reward: number
  steps: number[]
}

export interface StepRow {
  /** Index of the member in its group, and of the step in the member. */
  member: number
  step: number
  /** Null for a step that is its own group. */
  anchor: string | null
  valid: boolean
  /** Reward of the whole member. */
  reward: number
  /** Discounted sum of rewards from this step on. */
  return: number
}

/** Below this share of the reward a remainder is rounding of the steps' sum. */
const NOISE = 1e-12

/** The members of a group with their step rewards, or why they do not vote. */
export function readSteps(group: GroupScores, settings: Eligibility): Reading<ScoredSteps>[] {
  const read = group.members.map((member) => {
    const scored = readMember(member, settings)
    if (scored.value === null) return scored
    const finite = member.steps.every((step) => Number.isFinite(step.reward))
    if (!finite) return without('step_reward_not_finite')
    return voting(scoredSteps(member, scored.value))
  })
  return applyMissing(group, read, settings, (score, row) =>
    scoredSteps({ steps: group.members[row]!.steps.map(() => NO_REWARD) }, score),
  )
}

const NO_REWARD = { reward: 0, anchor: null }

/** What the steps leave of the member's reward falls on the last step, where an outcome reward is paid. */
function scoredSteps(member: Pick<MemberScore, 'steps'>, reward: number): ScoredSteps {
  const steps = member.steps.map((step) => step.reward)
  if (steps.length === 0) return { reward, steps }
  const rest = reward - sum(steps)
  const scale = steps.reduce((a, b) => Math.max(a, Math.abs(b)), Math.abs(reward))
  if (Math.abs(rest) > NOISE * scale) steps[steps.length - 1]! += rest
  return { reward, steps }
}

/** `R_t = r_t + gamma R_(t+1)`: the discounted sum from each step to the last. */
export function returnsToGo(rewards: readonly number[], gamma: number): number[] {
  const returns = [...rewards]
  for (let step = returns.length - 2; step >= 0; step--)
    returns[step] = rewards[step]! + gamma * returns[step + 1]!
  return returns
}

/**
 * The steps of all voting members, in the order of `StepScore.row` (else member by member). Throws
 * `invalid_request` for a step whose anchor is no non-empty string, unless `own_group` makes such a step its own group:
 * that an anchor is missing must never read as `the same state`.
 */
export function stepRows(
  group: GroupScores,
  readings: readonly Reading<ScoredSteps>[],
  { gamma, anchor_missing }: { gamma: number; anchor_missing: 'error' | 'own_group' },
): StepRow[] {
  const placed = readings.flatMap(({ value }, member) => {
    if (value === null) return []
    const { id, steps } = group.members[member]!
    const returns = returnsToGo(value.steps, gamma)
    return steps.map(({ anchor, valid, row }, step) => {
      const problem = anchorProblem(anchor)
      if (problem !== null && anchor_missing === 'error')
        throw new PaddockError(
          'invalid_request',
          `step ${step} of trajectory "${id}" in group "${group.id}": ${problem}; ` +
            'give a non-empty string, or set anchor_missing to own_group',
        )
      const known = problem === null ? anchor : null
      const place = row ?? Number.POSITIVE_INFINITY
      const { reward } = value
      return {
        place,
        member,
        step,
        anchor: known,
        valid: valid !== false,
        reward,
        return: returns[step]!,
      }
    })
  })
  return placed.sort((a, b) => (a.place === b.place ? 0 : a.place - b.place))
}

/** What belongs to each row, as lists by member in order of its steps; empty for a member that does not vote. */
export function byMember<Value>(
  group: GroupScores,
  rows: readonly StepRow[],
  entry: (row: StepRow, index: number) => Value,
): Value[][] {
  const lists: Value[][] = group.members.map(() => [])
  rows.forEach((row, index) => {
    lists[row.member]![row.step] = entry(row, index)
  })
  return lists
}

/** Why this is no anchor, or null where it is one. */
export function anchorProblem(anchor: unknown): string | null {
  if (anchor === null || anchor === undefined) return 'the anchor is missing'
  if (typeof anchor !== 'string') return `the anchor is a ${typeof anchor} and not a string`
  return anchor === '' ? 'the anchor is empty' : null
}
