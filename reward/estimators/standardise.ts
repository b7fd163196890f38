// One list of votes against its own baseline and deviation: the formula that the group estimators share.
import { PaddockError } from '../../protocol/errors.ts'
import type { Divisor } from '../estimator.ts'
import { finite, isConstant, moments, over, sum, unitOf } from '../statistics.ts'
import type { Division } from './settings.ts'

export interface Standardisation extends Division {
  baseline: 'group_mean' | 'leave_one_out' | 'length_weighted_mean'
  std_scope: 'group' | 'leave_one_out'
  singleton_group: 'raw_reward' | 'zero' | 'nan' | 'null' | null
  zero_std_group: 'divide' | 'skip_division' | 'error'
}

export interface Standardised {
  /** (value - baseline) / (std + epsilon), or what the settings make of it; null for a singleton without advantage. */
  values: (number | null)[]
  mean: number | null
  std: number | null
  divisor: Divisor
  singleton: boolean
  /** Two votes or more, none of which differs: every value is exactly 0. */
  constant: boolean
}

/**
 * Standardises finite votes. `lengths` weigh the baseline where it is length_weighted_mean. `where` names the votes in
 * the error that `zero_std_group: error` asks for. Source: GRPO, arXiv:2402.03300, eq. 4; RLOO, arXiv:2402.14740.
 */
export function standardise(
  votes: readonly number[],
  lengths: readonly number[],
  settings: Standardisation,
  where: string,
): Standardised {
  const unit = unitOf(votes)
  const scaled = over(votes, unit)
  const kind = settings.std === 'population' ? 'population' : 'sample'
  const { mean, std, deviations } = moments(scaled, kind)
  const constant = votes.length > 1 && isConstant(votes)
  const figures = {
    mean: votes.length === 0 ? null : finite(mean * unit),
    std: votes.length === 0 ? null : finite(std * unit),
    divisor: divisorOf(std, settings, unit),
    singleton: votes.length === 1,
    constant,
  }
  if (constant) refuseConstant(settings, where)
  if (votes.length === 1) return { ...figures, values: [singletonValue(votes[0]!, settings)] }
  if (constant) return { ...figures, values: votes.map(() => 0) }
  const stds = settings.std_scope === 'leave_one_out' ? siblingStds(scaled, settings) : null
  const values = centre(deviations, lengths, settings.baseline).map((centred, index) =>
    divide(centred, stds === null ? std : stds[index]!, settings, unit),
  )
  return { ...figures, values }
}

/**
 * `centred` over a standard deviation, by epsilon, variance floor and the rule for a deviation of 0. The two come in
 * `unit`s, so that their quotient is known where they themselves are no doubles.
 */
export function divide(
  centred: number,
  std: number,
  settings: Division & { zero_std_group?: 'divide' | 'skip_division' | 'error' },
  unit = 1,
): number {
  const by = centred === 0 ? null : divisorIn(unit, std, settings)
  return by === null ? centred * unit : centred / by
}

/** In the same `unit`s; null where nothing divides. */
function divisorIn(
  unit: number,
  std: number,
  settings: Parameters<typeof divide>[2],
): number | null {
  if (settings.std === 'none') return null
  const { epsilon_mode, variance_floor } = settings
  const epsilon = settings.epsilon / unit
  const floor = variance_floor === undefined ? 0 : Math.sqrt(variance_floor) / unit
  const floored = Math.max(std, floor)
  const skip =
    epsilon_mode === 'none_and_skip_if_zero' || settings.zero_std_group === 'skip_division'
  if (floored === 0 && skip) return null
  if (epsilon_mode === 'added_to_variance') return Math.sqrt(floored * floored + epsilon / unit)
  return epsilon_mode === 'none_and_skip_if_zero' ? floored : floored + epsilon
}

/** What `divide` divides by, for a person. */
export function divisorOf(
  std: number,
  settings: Parameters<typeof divide>[2] & { std_scope?: Standardisation['std_scope'] },
  unit = 1,
): Divisor {
  const { std_scope, epsilon, epsilon_mode, variance_floor } = settings
  const by = divisorIn(unit, std, settings)
  if (by === null) return { value: null, name: 'nothing' }
  const others = std_scope === 'leave_one_out'
  const least = variance_floor ? `, at least ${Math.sqrt(variance_floor)},` : ''
  const deviation = `${settings.std} std${others ? " of each one's siblings" : ''}${least}`
  const added = epsilon === 0 || epsilon_mode === 'none_and_skip_if_zero' ? '' : ` + ${epsilon}`
  const name =
    added !== '' && epsilon_mode === 'added_to_variance'
      ? `root of (${deviation} squared${added})`
      : `${deviation}${added}`
  return { value: others ? null : finite(by * unit), name }
}

/**
 * Votes minus the baseline, from their deviations from the mean. Leave-one-out is (r - mean) n / (n - 1): the same as r
 * minus the mean of the others.
 */
function centre(
  deviations: readonly number[],
  lengths: readonly number[],
  baseline: Standardisation['baseline'],
): readonly number[] {
  const n = deviations.length
  if (baseline === 'leave_one_out') return deviations.map((value) => (value * n) / (n - 1))
  if (baseline === 'group_mean') return deviations
  // OPO, arXiv:2505.23585: sum(len r) / sum(len), taken here over deviations from the plain mean.
  const offset = sum(deviations.map((value, index) => value * lengths[index]!)) / sum(lengths)
  return deviations.map((value) => value - offset)
}

/** The settings say `error` for equal votes. */
export function refuseConstant(
  { zero_std_group }: Pick<Standardisation, 'zero_std_group'>,
  where: string,
): void {
  if (zero_std_group !== 'error') return
  throw new PaddockError(
    'invalid_request',
    `all votes of ${where} are equal and settings.zero_std_group is error; drop the group or choose divide`,
    { path: 'settings.zero_std_group' },
  )
}

/** One vote: mean 0 and deviation 1 by the convention of verl, or 0, or none. */
function singletonValue(vote: number, settings: Standardisation): number | null {
  if (settings.singleton_group === 'raw_reward') return divide(vote, 1, settings)
  return settings.singleton_group === 'zero' ? 0 : null
}

/** For each vote the deviation of the others; 0 for a single sibling (NeMo-RL, nan_to_num). */
function siblingStds(votes: readonly number[], settings: Standardisation): number[] {
  const kind = settings.std === 'population' ? 'population' : 'sample'
  return votes.map(
    (_, left) =>
      moments(
        votes.filter((__, index) => index !== left),
        kind,
      ).std,
  )
}
