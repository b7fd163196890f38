// OPO: reward minus the group's mean weighted by answer length.
import { scalarEstimator } from './scalar.ts'
import { LIBRARIES } from './scalar-settings.ts'

/** `r_i - sum(len_j r_j) / sum(len_j)`; lengths are sampled tokens. Source: arXiv:2505.23585. */
export const opo = scalarEstimator(
  'opo',
  { baseline: 'length_weighted_mean', scale: 'none' },
  { verl: LIBRARIES.verl },
  ['none'],
)
