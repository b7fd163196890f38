// Settings of GDPO: the authors' defaults, and the presets in which no two libraries agree.
import { z } from 'zod'
import { strictObject } from '../strict.ts'
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
  /** By name; default: 1 for every component. 0 removes one, a negative weight flips it. */
  weights: weightsSchema.optional(),
  group: strictObject({
    ...divisionShape,
    baseline: baselineSchema,
    std_scope: stdScopeSchema,
    singleton_group: singletonSchema,
    zero_std_group: zeroStdSchema,
  }),
  batch: strictObject({ ...divisionShape, level: levelSchema }),
  component_missing: componentMissingSchema,
  /** A member without any component: outside everything with advantage null or 0, or a sum of 0 that is whitened. */
  all_components_missing: z.enum(['excluded', 'excluded_then_zero', 'counts_as_zero']),
  /** Eq. 8: a component counts as `otherwise` unless another reaches `at_least`. Reads the raw components. */
  conditions: z.array(
    strictObject({
      component: z.string().min(1),
      requires: z.string().min(1),
      at_least: z.number(),
      otherwise: z.number().default(0),
    }),
  ),
  /** With a single component GDPO is whitened GRPO; say so, or it is refused. */
  allow_single: z.boolean(),
  loss_normalizer: lossNormalizerSchema,
}
const schema = z.strictObject(shape)
export type GdpoSettings = z.output<typeof schema>

const DEFAULTS = {
  missing: 'excluded',
  vote: false,
  group: {
    baseline: 'group_mean',
    std: 'sample',
    std_scope: 'group',
    epsilon: 1e-4,
    epsilon_mode: 'added_to_std',
    singleton_group: 'zero',
    zero_std_group: 'divide',
  },
  batch: { level: 'sample', std: 'sample', epsilon: 1e-4, epsilon_mode: 'added_to_std' },
  component_missing: 'error',
  all_components_missing: 'excluded',
  conditions: [],
  allow_single: false,
  loss_normalizer: { kind: 'tokens_in_sample', value: null },
} as const

const VERL = {
  vote: true,
  group: { epsilon: 1e-6, singleton_group: 'raw_reward' },
  batch: { level: 'token', epsilon: 1e-8, epsilon_mode: 'added_to_variance' },
  allow_single: true,
}

const PRESETS = {
  trl: {
    vote: true,
    missing: 'excluded_then_zero',
    component_missing: 'excluded_from_that_component',
    all_components_missing: 'excluded_then_zero',
    allow_single: true,
  },
  nemo_rl: {
    vote: true,
    group: {
      baseline: 'leave_one_out',
      std_scope: 'leave_one_out',
      epsilon: 1e-6,
      zero_std_group: 'skip_division',
    },
    batch: { epsilon: 0, epsilon_mode: 'none_and_skip_if_zero' },
    component_missing: 'zero_fill',
  },
  nvlabs_gdpo: { vote: true, component_missing: 'zero_fill' },
  verl: VERL,
  verl_gdpo: VERL,
}

export const gdpoSettings = settingsSchema('gdpo', shape, DEFAULTS, PRESETS)
