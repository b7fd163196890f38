// Soft overlong punishment (DAPO): what a long answer costs, added to the reward before any estimator sees it.
import type { z } from 'zod'
import { overlongShape } from '../protocol/contract.ts'
import { strictObject } from './strict.ts'

export const overlongSchema = strictObject(overlongShape)
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
