// MaxRL: the centred reward over the group's mean, which weighs up tasks that are rarely solved.
import { scalarEstimator } from './scalar.ts'

/** `(r - mean) / (mean + 1e-6)`, for rewards that are not negative. Source: arXiv:2602.02710. */
export const maxrl = scalarEstimator(
  'maxrl',
  { scale: 'group_mean', epsilon_mode: 'added_to_mean' },
  {},
  ['group_mean'],
)
