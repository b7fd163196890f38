// Answers for estimators that give each step its own advantage: rows bound to trajectories and groups by id.
import { z } from 'zod'
import { PaddockError } from '../protocol/errors.ts'
import { groupIndex, type Question, reasonsOf } from './answer-rows.ts'
import type { GroupAdvantages, GroupScores, MemberScore, StepScore } from './estimator.ts'
import type { GigpoSettings } from './estimators/gigpo.ts'
import { anchorProblem } from './estimators/step-returns.ts'
import type { ChosenEstimator } from './estimators.ts'
import { finite } from './statistics.ts'
import { fit, strictObject } from './strict.ts'

const id = z
  .string({ error: 'expected a string: ids bind steps to trajectories and groups' })
  .min(1)

const stepsSchema = strictObject({
  steps: z.array(
    strictObject({
      group: id,
      trajectory: id,
      step: z.int().min(0),
      /** Judged by the estimator, which names trajectory and step where it is no non-empty string. */
      anchor: z.unknown(),
      reward: z.unknown(),
      valid: z.boolean().optional(),
    }),
  ),
})
type StepRow = z.output<typeof stepsSchema>['steps'][number]

/** Where a row of the input went: group, member, and the place of its step in the member. */
interface Place {
  group: number
  member: number
  step: number
}

/**
 * `{advantages, step_returns, …}` by row of the input; for GiGPO also `episode_advantages`, `step_advantages`,
 * `step_groups` (numbered over all groups, in order of appearance) and `episode_rewards` by trajectory. Steps of a
 * trajectory are taken by their `step`, wherever they stand.
 */
export function answerSteps(
  { estimator, settings }: ChosenEstimator,
  { estimator: name, input, explain }: Question,
): object {
  const { steps } = fit(stepsSchema, input, 'input')
  const { groups, places } = bind(steps)
  if ((settings as GigpoSettings).anchor_missing === 'error') checkAnchors(steps, groups, places)
  const results = estimator.advantages(groups, settings)
  const members = places.map(({ group, member }) => results[group]!.members[member]!)
  const advantages = places.map(({ step }, row) => {
    const { steps: own, advantage } = members[row]!
    return own === null ? advantage : own[step]!
  })
  return {
    advantages,
    ...(name === 'gigpo' && termsByRow(results, places)),
    step_returns: places.map(({ group, member, step }) => {
      return results[group]!.explain.step_returns?.[member]?.[step] ?? null
    }),
    ...(name === 'gigpo' && { episode_rewards: episodeRewards(groups) }),
    ...reasonsOf(members),
    ...(explain && { explain: results.map((group) => ({ group: group.id, ...group.explain })) }),
  }
}

/** The estimator would refuse these too, but knows neither rows nor the numbers of steps. */
function checkAnchors(
  rows: readonly StepRow[],
  groups: readonly GroupScores[],
  places: readonly Place[],
) {
  rows.forEach(({ trajectory, step, anchor }, row) => {
    const { group, member } = places[row]!
    const problem = anchorProblem(anchor)
    if (problem === null || groups[group]!.members[member]!.reward === null) return
    refuse(
      row,
      `step ${step} of trajectory "${trajectory}": ${problem}; ` +
        'give a non-empty string, or set anchor_missing to own_group',
    )
  })
}

function termsByRow(results: readonly GroupAdvantages[], places: readonly Place[]) {
  const figures = places.map(
    ({ group, member, step }) => results[group]!.explain.steps?.[member]?.[step] ?? null,
  )
  const numbers = new Map<string, number>()
  const step_groups = figures.map((figure, row) => {
    if (figure === null) return null
    const key = `${places[row]!.group}/${figure.anchor_group}`
    if (!numbers.has(key)) numbers.set(key, numbers.size)
    return numbers.get(key)!
  })
  return {
    episode_advantages: figures.map((figure) => figure?.episode_advantage ?? null),
    step_advantages: figures.map((figure) => figure?.step_advantage ?? null),
    step_groups,
  }
}

function episodeRewards(groups: readonly GroupScores[]): Record<string, number | null> {
  const members = groups.flatMap((group) => group.members)
  return Object.fromEntries(members.map((member) => [member.id, finite(member.reward)]))
}

function bind(rows: readonly StepRow[]): { groups: GroupScores[]; places: Place[] } {
  const trajectories = byTrajectory(rows)
  const groups: GroupScores[] = []
  const indexOf = new Map<string, number>()
  const places: Place[] = []
  for (const [id, indices] of trajectories) {
    const name = rows[indices[0]!]!.group
    const group = groupIndex(name, groups, indexOf)
    const member = groups[group]!.members.push(memberOf(id, indices, rows)) - 1
    indices.forEach((row, step) => {
      places[row] = { group, member, step }
    })
  }
  return { groups, places }
}

/** Row indices by trajectory, in order of their step; a trajectory is in one group, and a step in it once. */
function byTrajectory(rows: readonly StepRow[]): Map<string, number[]> {
  const trajectories = new Map<string, number[]>()
  rows.forEach(({ trajectory, group }, row) => {
    const indices = trajectories.get(trajectory)
    if (indices === undefined) {
      trajectories.set(trajectory, [row])
      return
    }
    const other = rows[indices[0]!]!.group
    if (other !== group)
      refuse(row, `trajectory "${trajectory}" is in groups "${other}" and "${group}"; give it one`)
    indices.push(row)
  })
  for (const [id, indices] of trajectories) {
    indices.sort((a, b) => rows[a]!.step - rows[b]!.step)
    const twice = indices.find(
      (row, place) => rows[row]!.step === rows[indices[place - 1] ?? -1]?.step,
    )
    if (twice !== undefined)
      refuse(twice, `trajectory "${id}" has step ${rows[twice]!.step} twice; number its steps`)
  }
  return trajectories
}

/** The member's reward is the sum of its steps' in order; one step without reward leaves the whole without. */
function memberOf(id: string, indices: readonly number[], rows: readonly StepRow[]): MemberScore {
  const own = indices.map((row) => rows[row]!)
  const broken = firstProblem(own.map(({ reward }) => reward))
  const steps = own.map(
    ({ anchor, reward, valid }, step): StepScore => ({
      reward: reward as number,
      anchor: anchor as string | null,
      valid: valid ?? true,
      row: indices[step]!,
    }),
  )
  const reward = broken === null ? steps.reduce((total, step) => total + step.reward, 0) : null
  return { id, reward, reason: broken, components: {}, tokens: 0, steps }
}

function firstProblem(rewards: readonly unknown[]): string | null {
  return rewards.map(rewardProblem).find((problem) => problem !== null) ?? null
}

function rewardProblem(reward: unknown): string | null {
  if (reward === null || reward === undefined) return 'reward_missing'
  if (typeof reward !== 'number') return 'reward_wrong_type'
  return Number.isFinite(reward) ? null : 'reward_not_finite'
}

const trajectoriesSchema = strictObject({
  /** Step rewards by trajectory; null for a trajectory without reward. What is no number costs its trajectory. */
  trajectories: z.array(z.array(z.unknown()).nullable()),
  /** Default: all are one group. */
  groups: z.array(id).optional(),
})

/** `{advantages}`: by trajectory, one per step. */
export function answerTrajectories(
  { estimator, settings }: ChosenEstimator,
  { input, explain }: Question,
): object {
  const { trajectories, groups: ids } = fit(trajectoriesSchema, input, 'input')
  if (ids !== undefined && ids.length !== trajectories.length)
    throw new PaddockError(
      'invalid_request',
      `input.groups: expected ${trajectories.length} ids, one per trajectory, got ${ids.length}`,
      { path: 'input.groups' },
    )
  const groups: GroupScores[] = []
  const indexOf = new Map<string, number>()
  const places = trajectories.map((rewards, row) => {
    const group = groupIndex(ids?.[row] ?? 'all', groups, indexOf)
    const member = groups[group]!.members.push(trajectoryMember(`trajectory ${row}`, rewards)) - 1
    return { group, member }
  })
  const results = estimator.advantages(groups, settings)
  const members = places.map(({ group, member }) => results[group]!.members[member]!)
  return {
    advantages: members.map((member) => member.steps),
    ...reasonsOf(members),
    ...(explain && { explain: results.map((group) => ({ group: group.id, ...group.explain })) }),
  }
}

function trajectoryMember(id: string, given: readonly unknown[] | null): MemberScore {
  const reason = given === null ? 'reward_missing' : firstProblem(given)
  const rewards = reason === null ? (given as readonly number[]) : []
  const steps = rewards.map((reward) => ({ reward, anchor: null }))
  const reward = reason === null ? rewards.reduce((total, value) => total + value, 0) : null
  return { id, reward, reason, components: {}, tokens: 0, steps }
}

function refuse(row: number, message: string): never {
  throw new PaddockError('invalid_request', message, { path: `input.steps[${row}]` })
}
