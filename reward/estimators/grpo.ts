// GRPO: reward minus the group's mean, over the group's standard deviation.
import { scalarEstimator } from './scalar.ts'

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
    verl: { singleton_group: 'raw_reward', statistics_unit: 'row' },
    trl: { epsilon: 1e-4, missing: 'excluded_then_zero' },
    nemo_rl: {
      baseline: 'leave_one_out',
      std_scope: 'leave_one_out',
      zero_std_group: 'skip_division',
    },
    slime: { statistics_unit: 'row' },
    miles: { zero_std_group: 'skip_division', statistics_unit: 'rollout' },
    verl_agent: { singleton_group: 'raw_reward', statistics_unit: 'row' },
  },
)
