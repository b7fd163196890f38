// REINFORCE++-baseline: reward minus the group's mean, whitened over the tokens of the batch.
import { scalarEstimator } from './scalar.ts'
import { LIBRARIES } from './scalar-settings.ts'

/**
 * `(a - mean) / sqrt(var + 1e-8)` with `a = r - mean_g` and statistics over tokens, so long answers weigh more.
 * Source: arXiv:2501.03262; verl, core_algos.py.
 */
export const reinforcePpBaseline = scalarEstimator(
  'reinforce_pp_baseline',
  {
    scale: 'batch_whiten',
    level: 'token',
    epsilon: 1e-8,
    epsilon_mode: 'added_to_variance',
  },
  {
    verl: { ...LIBRARIES.verl, singleton_group: 'raw_reward_before_whitening' },
    nemo_rl: { ...LIBRARIES.nemo_rl, std: 'population', epsilon: 0, variance_floor: 1e-8 },
    verl_agent: { ...LIBRARIES.verl_agent, singleton_group: 'raw_reward_before_whitening' },
  },
  ['batch_whiten', 'none'],
)
