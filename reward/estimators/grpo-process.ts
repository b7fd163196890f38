// GRPO with process supervision: every step reward is normalised over all steps of the group, then summed to go.
import { z } from 'zod'
import type { Estimator, GroupAdvantages, GroupScores } from '../estimator.ts'
import { emitted, excludedAdvantage, excludedMembers } from './members.ts'
import {
  divisionShape,
  eligibilityShape,
  lossNormalizerSchema,
  settingsSchema,
  singletonSchema,
  zeroStdSchema,
} from './settings.ts'
import { standardise } from './standardise.ts'
import { readSteps, returnsToGo } from './step-returns.ts'

const shape = {
  ...eligibilityShape,
  ...divisionShape,
  singleton_group: singletonSchema,
  zero_std_group: zeroStdSchema,
  /** Discount of the return-to-go; null for a plain sum. */
  gamma: z.number().min(0).max(1).nullable(),
  loss_normalizer: lossNormalizerSchema,
}
const schema = z.strictObject(shape)
type ProcessSettings = z.output<typeof schema>

const DEFAULTS = {
  missing: 'excluded',
  vote: false,
  std: 'population',
  epsilon: 0,
  epsilon_mode: 'added_to_std',
  singleton_group: 'zero',
  zero_std_group: 'divide',
  gamma: null,
  loss_normalizer: { kind: 'tokens_in_sample', value: null },
}

/**
 * `(r_step - mean) / std` over all steps of all members of the group, then the (discounted) sum from each step on.
 * The member's own advantage is that of its first step: the sum over all of them.
 * Source: DeepSeekMath, arXiv:2402.03300, section 4.1.3; NousResearch/atropos, utils/advantages.py.
 */
export const grpoProcess: Estimator<ProcessSettings> = {
  settings: settingsSchema('grpo_process', shape, DEFAULTS, {}),
  perTurn: true,
  advantages: (groups, settings) => groups.map((group) => supervise(group, settings)),
}

function supervise(group: GroupScores, settings: ProcessSettings): GroupAdvantages {
  const readings = readSteps(group, settings)
  const votes = readings.flatMap(({ value }) => value?.steps ?? [])
  const result = standardise(
    votes,
    [],
    { ...settings, baseline: 'group_mean', std_scope: 'group' },
    `group "${group.id}"`,
  )
  let next = 0
  const members = readings.map(({ value, reason }) => {
    if (value === null) return excludedAdvantage(reason, settings)
    const own = result.values.slice(next, next + value.steps.length)
    next += value.steps.length
    const whole = own.every((step) => step !== null)
    const steps = whole ? returnsToGo(own, settings.gamma ?? 1) : own
    const advantage = steps[0] ?? (whole ? 0 : null)
    return emitted(advantage, result.singleton ? 'singleton_group' : null, steps)
  })
  const explain = {
    votes: votes.length,
    excluded: excludedMembers(group, readings),
    mean: result.mean,
    std: result.std,
    divisor: result.divisor,
    zero_variance: result.constant,
    loss_normalizer: settings.loss_normalizer,
  }
  return { id: group.id, members, explain }
}
