// The second half of Dr. GRPO as numbers: what a trainer's loss is when token sums are divided by a constant, or not.
import type { LossNormalizer } from '../protocol/group.ts'

export interface LossInput {
  /** One per sequence. */
  advantages: readonly number[]
  /** Sequences by tokens: 1 where the loss counts. */
  response_mask: readonly (readonly number[])[]
  /** Probability ratio of the new to the old policy, by sequence and token. */
  token_ratio: readonly (readonly number[])[]
}

/**
 * `-(1/N) sum_i (1/L) sum_t mask ratio A` as the libraries compute it, by their names. verl 0.8.0.dev does not divide
 * by N; verl main does not count sequences that are masked throughout; TRL divides the whole sum by N L at once.
 * Source: arXiv:2503.20783; verl, core_algos.py agg_loss; TRL, grpo_trainer.py.
 */
export function constantLoss(input: LossInput, length: number): Record<string, number> {
  const sums = tokenSums(input)
  const all = total(sums)
  const counted = tokenCounts(input).filter((count) => count > 0).length
  return {
    oat: -total(sums.map((sum) => sum / length)) / sums.length,
    verl_main: -all / (Math.max(counted, 1) * length),
    'verl_0.8.0.dev': -all / length,
    trl: -all / (sums.length * length),
  }
}

/** The other two normalisers: the mean of each sequence's token mean (GRPO), or one mean over all tokens (DAPO). */
export function countedLoss(
  input: LossInput,
  kind: Exclude<LossNormalizer['kind'], 'constant'>,
): Record<string, number> {
  const sums = tokenSums(input)
  const counts = tokenCounts(input)
  if (kind === 'tokens_in_batch') return { [kind]: -total(sums) / Math.max(total(counts), 1) }
  const means = sums.map((sum, index) => sum / Math.max(counts[index]!, 1))
  return { [kind]: -total(means) / sums.length }
}

function tokenSums({ advantages, response_mask, token_ratio }: LossInput): number[] {
  return advantages.map((advantage, i) =>
    total(response_mask[i]!.map((mask, t) => mask * token_ratio[i]![t]! * advantage)),
  )
}

function tokenCounts({ response_mask }: LossInput): number[] {
  return response_mask.map(total)
}

function total(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0)
}
