// Settings of the estimators that read one number per member, and how each of them departs from the common defaults.
import { z } from 'zod'
import { overlongSchema } from '../overlong.ts'
import {
  baselineSchema,
  componentMissingSchema,
  divisionShape,
  eligibilityShape,
  levelSchema,
  lossNormalizerSchema,
  settingsSchema,
  singletonSchema,
  stdScopeSchema,
  weightsSchema,
  zeroStdSchema,
} from './settings.ts'

const shape = {
  ...eligibilityShape,
  ...divisionShape,
  baseline: baselineSchema,
  scale: z.enum([
    'group_std',
    /** One deviation over all rewards of the call (TRL `scale_rewards="batch"`). */
    'batch_std',
    'group_mean',
    'none',
    /** (a - mean) / std over the advantages of the call. */
    'batch_whiten',
    'batch_std_of_advantages',
  ]),
  std_scope: stdScopeSchema,
  singleton_group: z
    .enum([...singletonSchema.unwrap().options, 'raw_reward_before_whitening'])
    .nullable(),
  zero_std_group: zeroStdSchema,
  /** Rows of one rollout vote once (`rollout`, `trajectory`), or each row votes (`sample`, `row`, `step`). */
  statistics_unit: z.enum(['rollout', 'trajectory', 'sample', 'row', 'step']),
  /** Where given, the reward is the weighted sum of components. */
  weights: weightsSchema.optional(),
  component_missing: componentMissingSchema,
  /** Of `batch_whiten`. */
  level: levelSchema,
  /** Of `batch_std_of_advantages`: subtract their mean too. */
  centre_batch: z.boolean(),
  /** Of `group_mean`: what a mean of 0 or less gives. */
  nonpositive_mean: z.enum(['divide', 'zero']),
  /** Lowers the reward of long members before anything else; the penalty is recorded apart. */
  overlong_shaping: overlongSchema.optional(),
  loss_normalizer: lossNormalizerSchema,
}
const schema = z.strictObject(shape)
export type ScalarSettings = z.output<typeof schema>

const DEFAULTS = {
  missing: 'excluded',
  vote: false,
  baseline: 'group_mean',
  scale: 'group_std',
  std: 'sample',
  std_scope: 'group',
  epsilon: 1e-6,
  epsilon_mode: 'added_to_std',
  singleton_group: 'zero',
  zero_std_group: 'divide',
  statistics_unit: 'rollout',
  component_missing: 'error',
  level: 'sample',
  centre_batch: false,
  nonpositive_mean: 'divide',
  loss_normalizer: { kind: 'tokens_in_sample', value: null },
} as const satisfies Partial<ScalarSettings>

export type ScalarOverrides = Partial<ScalarSettings>

/** In these libraries a sample that was scored votes, also where it was cut short or its tokens are masked. */
const votes = { vote: true } as const

/** What the presets of the libraries have in common, whatever the estimator. */
export const LIBRARIES = {
  verl: { ...votes, singleton_group: 'raw_reward', statistics_unit: 'row' },
  /** A reward function without a value counts as 0 in the sum of its sample, unless all of them have none. */
  trl: {
    ...votes,
    epsilon: 1e-4,
    missing: 'excluded_then_zero',
    component_missing: 'counts_as_zero_unless_all_missing',
  },
  nemo_rl: votes,
  slime: { ...votes, statistics_unit: 'row' },
  miles: { ...votes, zero_std_group: 'skip_division', statistics_unit: 'rollout' },
  verl_agent: { singleton_group: 'raw_reward', statistics_unit: 'row' },
} as const satisfies Record<string, ScalarOverrides>

/** The settings schema of one estimator. `scales` are the values of `scale` that it may have. */
export function scalarSettings(
  name: string,
  defaults: ScalarOverrides,
  presets: Record<string, ScalarOverrides>,
  scales: readonly ScalarSettings['scale'][] = shape.scale.options,
) {
  const narrowed = { ...shape, scale: shape.scale.extract([...scales]) }
  return settingsSchema(name, narrowed, { ...DEFAULTS, ...defaults }, presets)
}
