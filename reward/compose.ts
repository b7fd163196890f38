// From what a grader wrote to what an estimator reads: conditions, the scalar, and what length costs, each step kept apart.
import type { RewardContract } from '../protocol/contract.ts'
import type { ShapingStep } from '../protocol/group.ts'
import { type CheckedRewards, scalarOf } from './contract.ts'
import { overlongPenalty } from './overlong.ts'

type Rewards = Readonly<Record<string, number | null>>

export type ComposedReward =
  | { ok: true; reward: number; shaping: ShapingStep[] }
  | Extract<CheckedRewards, { ok: false }>

/**
 * The reward of one episode from its checked fields, in this order: fields that a condition does not let count, the
 * contract's scalar over what is left, the overlong penalty, the length penalty. `tokens` are those that the policy
 * sampled; observations between them are not its own. Without conditions and shaping it is the scalar, and no step is
 * told. Source: GDPO, arXiv:2601.05242, eq. 8; DAPO, arXiv:2503.14476, eq. 13.
 */
export function composeReward(
  contract: RewardContract,
  rewards: Rewards,
  tokens: number,
): ComposedReward {
  const counted = countedRewards(contract, rewards)
  const scalar = scalarOf(contract, counted)
  if (!scalar.ok) return scalar
  const shaping = [...conditionSteps(contract, rewards, counted), ...penaltySteps(contract, tokens)]
  const penalties = shaping.reduce((sum, step) => sum + ('penalty' in step ? step.penalty : 0), 0)
  return { ok: true, reward: scalar.reward + penalties, shaping }
}

/** The fields as they count: one whose condition is not met is its `otherwise`. Conditions read what was graded. */
export function countedRewards(
  { conditions = [] }: Pick<RewardContract, 'conditions'>,
  rewards: Rewards,
): Record<string, number | null> {
  const counted = { ...rewards }
  for (const { component, requires, at_least, otherwise } of conditions) {
    const required = rewards[requires]
    const met = typeof required === 'number' && required >= at_least
    if (typeof rewards[component] === 'number' && !met) counted[component] = otherwise
  }
  return counted
}

function conditionSteps(
  { conditions = [] }: RewardContract,
  rewards: Rewards,
  counted: Rewards,
): ShapingStep[] {
  return conditions.flatMap(({ component, requires, at_least }) => {
    const [raw, value] = [rewards[component] ?? null, counted[component] ?? null]
    if (raw === null || value === null || raw === value) return []
    return [{ kind: 'condition' as const, component, requires, at_least, raw, counted: value }]
  })
}

/** Steps are told where they are declared, a penalty of 0 too: that it was looked at is worth knowing. */
function penaltySteps({ shaping }: RewardContract, length: number): ShapingStep[] {
  const { overlong, length_penalty } = shaping ?? {}
  const steps: ShapingStep[] = []
  if (overlong)
    steps.push({ kind: 'overlong', length, penalty: overlongPenalty(length, overlong) + 0 })
  if (length_penalty) {
    const { per_token, free } = length_penalty
    steps.push({ kind: 'length', length, penalty: 0 - per_token * Math.max(0, length - free) })
  }
  return steps
}
