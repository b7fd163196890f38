// Which groups carry a signal and are kept: Paddock's exact rule, and those of the libraries it is compared with.
import { isConstant, moments } from './statistics.ts'

type Rewards = readonly number[]
type KeepRule = (groups: readonly Rewards[], tolerance: number) => boolean[]

const each =
  (keep: (rewards: Rewards, tolerance: number) => boolean): KeepRule =>
  (groups, tolerance) =>
    groups.map((rewards) => keep(rewards, tolerance))

/** The deviation of fewer than two rewards is undefined there, and nothing undefined is larger than a threshold. */
function sampleStdAbove(rewards: Rewards, threshold: number): boolean {
  return rewards.length > 1 && moments(rewards, 'sample').std > threshold
}

function spread(rewards: Rewards): number {
  if (rewards.length === 0) return 0
  const high = rewards.reduce((a, b) => Math.max(a, b))
  return high - rewards.reduce((a, b) => Math.min(a, b))
}

/** Rules by name. Each sees the votes of all groups: DAPO's "drop groups without spread", arXiv:2503.14476. */
export const keepRules: Record<string, KeepRule> = {
  /** max - min > tolerance (0 unless set): exact equality of votes. */
  paddock: each((rewards, tolerance) => spread(rewards) > tolerance),
  slime: each((rewards) => sampleStdAbove(rewards, 1e-6)),
  miles: each((rewards) => sampleStdAbove(rewards, 1e-8)),
  /** Not all equal as float32. */
  verl_agent: each((rewards) => !isConstant(rewards.map(Math.fround))),
  /** verl-agent's DAPO recipe keeps a group of one. */
  verl_agent_recipe: each((rewards) => rewards.length === 1 || !isConstant(rewards)),
  nemo_rl: each((rewards) => !isConstant(rewards)),
  prime_rl: each((rewards) => !isConstant(rewards)),
  /** Drops constant groups, but keeps the first where all are. */
  tinker: (groups) => {
    const keep = groups.map((rewards) => !isConstant(rewards))
    return keep.includes(true) ? keep : groups.map((_, index) => index === 0)
  },
}
