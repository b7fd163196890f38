// Soft overlong punishment (DAPO): what a long answer costs, added to the reward before any estimator sees it.
import { z } from 'zod'
import { strictObject } from './strict.ts'

export const overlongSchema = strictObject({
  /** Sampled tokens that a member may have; observations in between are not the policy's and do not count. */
  max_length: z.int().min(1),
  /** The last tokens before `max_length`, over which the penalty grows. 0: none before it. */
  buffer: z.int().min(0),
  penalty_factor: z.number().min(0).default(1),
  /** Beyond `max_length`: stay at the full penalty (TRL), or go on falling (verl). */
  beyond: z.enum(['clamp', 'linear']).default('clamp'),
})
export type OverlongShaping = z.output<typeof overlongSchema>

/**
 * 0 up to max_length - buffer, then falling in proportion, -penalty_factor at max_length.
 * Source: DAPO, arXiv:2503.14476, eq. 13.
 */
export function overlongPenalty(length: number, shaping: OverlongShaping): number {
  const { max_length, buffer, penalty_factor, beyond } = shaping
  const exceeded = length - (max_length - buffer)
  if (exceeded <= 0) return 0
  const share = buffer === 0 ? Number.POSITIVE_INFINITY : exceeded / buffer
  return -penalty_factor * (beyond === 'clamp' || buffer === 0 ? Math.min(share, 1) : share)
}
