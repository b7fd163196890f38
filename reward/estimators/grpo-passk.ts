// GRPO for pass@k: only the best member of a group has an advantage, by how far it leads the second best.
import { z } from 'zod'
import type { Estimator, GroupAdvantages, GroupScores } from '../estimator.ts'
import { finite, isConstant, moments, over, unitOf } from '../statistics.ts'
import {
  applyMissing,
  emitted,
  excludedAdvantage,
  excludedMembers,
  type Reading,
  readMember,
} from './members.ts'
import {
  divisionShape,
  eligibilityShape,
  lossNormalizerSchema,
  settingsSchema,
  singletonSchema,
  zeroStdSchema,
} from './settings.ts'
import { divide, divisorOf, refuseConstant } from './standardise.ts'

const shape = {
  ...eligibilityShape,
  ...divisionShape,
  scale: z.enum(['group_std', 'none']),
  singleton_group: singletonSchema,
  zero_std_group: zeroStdSchema,
  loss_normalizer: lossNormalizerSchema,
}
const schema = z.strictObject(shape)
type PassKSettings = z.output<typeof schema>

const DEFAULTS = {
  missing: 'excluded',
  vote: false,
  scale: 'group_std',
  std: 'sample',
  epsilon: 1e-6,
  epsilon_mode: 'added_to_std',
  singleton_group: 'zero',
  zero_std_group: 'divide',
  loss_normalizer: { kind: 'tokens_in_sample', value: null },
}

/**
 * `(max - second) / (std + 1e-6)` for the best member, 0 for every other; a tie for the best gives all 0.
 * Source: arXiv:2503.19595; verl, core_algos.py compute_grpo_passk_outcome_advantage (which refuses a group of one).
 */
export const grpoPassK: Estimator<PassKSettings> = {
  settings: settingsSchema('grpo_passk', shape, DEFAULTS, { verl: {} }),
  advantages: (groups, settings) => groups.map((group) => lead(group, settings)),
}

function lead(group: GroupScores, settings: PassKSettings): GroupAdvantages {
  const read = group.members.map((member) => readMember(member, settings))
  const readings: Reading[] = applyMissing(group, read, settings, (score) => score)
  const votes = readings.flatMap(({ value }) => (value === null ? [] : [value]))
  const unit = unitOf(votes)
  const scaled = over(votes, unit)
  const { mean, std } = moments(scaled, settings.std === 'population' ? 'population' : 'sample')
  const constant = votes.length > 1 && isConstant(votes)
  if (constant) refuseConstant(settings, `group "${group.id}"`)
  const [best, second] = scaled.toSorted((a, b) => b - a)
  const by = settings.scale === 'none' ? { ...settings, std: 'none' as const } : settings
  const members = readings.map(({ value, reason }) => {
    if (value === null) return excludedAdvantage(reason, settings)
    if (second === undefined) return emitted(singletonLead(value, settings), 'singleton_group')
    const leads = best !== undefined && value === best * unit
    return emitted(leads ? divide(best - second, std, by, unit) : 0, null)
  })
  const explain = {
    votes: votes.length,
    excluded: excludedMembers(group, readings),
    mean: votes.length === 0 ? null : finite(mean * unit),
    std: votes.length === 0 ? null : finite(std * unit),
    divisor: divisorOf(std, by, unit),
    zero_variance: constant,
    loss_normalizer: settings.loss_normalizer,
  }
  return { id: group.id, members, explain }
}

function singletonLead(value: number, { singleton_group }: PassKSettings): number | null {
  if (singleton_group === 'raw_reward') return value
  return singleton_group === 'zero' ? 0 : null
}
