// GRPO: reward minus the group's mean, over the group's standard deviation.
import { scalarEstimator } from './scalar.ts'
import { LIBRARIES } from './scalar-settings.ts'

/**
 * `(r - mean) / (std + 1e-6)` with the sample deviation; a group of one gives 0. The presets repeat what each library
 * computes where its numbers differ. A preset changes formulas and never makes a failure an error or a zero, except
 * `trl`, whose trainers expect a 0 for a sample without reward.
 * Source: DeepSeekMath, arXiv:2402.03300; libraries as read in their code.
 */
export const grpo = scalarEstimator(
  'grpo',
  {},
  {
    ...LIBRARIES,
    nemo_rl: {
      ...LIBRARIES.nemo_rl,
      baseline: 'leave_one_out',
      std_scope: 'leave_one_out',
      zero_std_group: 'skip_division',
    },
  },
)
