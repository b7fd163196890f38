// RLOO: reward minus the mean of the others.
import { scalarEstimator } from './scalar.ts'
import { LIBRARIES } from './scalar-settings.ts'

/**
 * `r_i - mean(r_j, j != i)`; with scale `batch_std_of_advantages` divided by the deviation of these over the call
 * (TRL `normalize_advantages`). Source: arXiv:2402.14740.
 */
export const rloo = scalarEstimator(
  'rloo',
  { baseline: 'leave_one_out', scale: 'none' },
  { verl: LIBRARIES.verl, trl: LIBRARIES.trl, verl_agent: LIBRARIES.verl_agent },
  ['none', 'batch_std_of_advantages', 'batch_whiten'],
)
