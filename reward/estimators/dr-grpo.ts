// Dr. GRPO: reward minus the group's mean, not divided; and a loss that divides by a constant length.
import { scalarEstimator } from './scalar.ts'
import { LIBRARIES } from './scalar-settings.ts'

/**
 * `r - mean`: dividing by the deviation would weigh up tasks that are nearly always right or nearly always wrong.
 * The second half of the method, a constant in place of each answer's own length, belongs to the loss and travels as
 * `loss_normalizer` (its value is the generation budget; null leaves it to the trainer).
 * Source: arXiv:2503.20783; sail-sg/understand-r1-zero, train_zero_math.py.
 */
export const drGrpo = scalarEstimator(
  'dr_grpo',
  { scale: 'none', loss_normalizer: { kind: 'constant', value: null } },
  LIBRARIES,
  ['none'],
)
