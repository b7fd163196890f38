// The seed of one policy request: a function of where the request stands, so that a reply depends on no order.
import { hash } from 'node:crypto'
import type { EpisodePlan } from './episode.ts'

/**
 * 31 bits of the SHA-256 of base, group, episode, turn and attempt (the backends take a signed 32-bit or larger seed).
 * `base` is `sampling.seed` or the batch's id.
 */
export function requestSeed(plan: EpisodePlan, turn: number): number {
  const place = [plan.policy.seedBase, plan.groupIndex, plan.index, turn, plan.attempt]
  return hash('sha256', JSON.stringify(place), 'buffer').readUInt32LE(0) >>> 1
}
