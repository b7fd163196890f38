// RLOO: reward minus the mean of the others.
import { scalarEstimator } from './scalar.ts'

/**
 * `r_i - mean(r_j, j != i)`; with scale `batch_std_of_advantages` divided by the deviation of these over the call
 * (TRL `normalize_advantages`). Source: arXiv:2402.14740.
 */
export const rloo = scalarEstimator(
  'rloo',
  { baseline: 'leave_one_out', scale: 'none' },
  {
    verl: { singleton_group: 'raw_reward', statistics_unit: 'row' },
    trl: { epsilon: 1e-4, missing: 'excluded_then_zero' },
    verl_agent: { singleton_group: 'raw_reward', statistics_unit: 'row' },
  },
  ['none', 'batch_std_of_advantages', 'batch_whiten'],
)
