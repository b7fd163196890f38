// A sealed episode: one blob made once in a worker, and the small header that scheduling, verdicts and metrics read.

import type { Sample, ShapingStep } from './group.ts'
import type { JsonObject } from './json.ts'
import { packMap } from './msgpack.ts'
import type { EpisodeOutcome } from './outcomes.ts'
import type { TurnCounts } from './turn-counts.ts'

/** A sample as it is kept: typed arrays of one length. */
export type TapeSample = Sample<Int32Array, Uint8Array, Float32Array>

/** What one turn adds to the header. `[start, end)` are its sampled ids in its sample; `sample` null without ids. */
export interface TurnHeader {
  sample: number | null
  start: number
  end: number
  anchor: string
  /** Reward of this turn alone, where the environment pays progress; else 0. */
  reward: number
}

/** What one kind of request beside the policy came to. `kept` answers were known from an equal question and cost nothing. */
export interface AskedCost {
  requests: number
  kept: number
  prompt_tokens: number
  completion_tokens: number
}

/** Costs beside the policy's, by whom was asked: `user`, `judge`, `grade` (custom grader), `reward` (reward model). */
export type AskedCosts = Partial<Record<'user' | 'judge' | 'grade' | 'reward', AskedCost>>

/** All that the main thread knows of an ended attempt. Plain data; wall times are added by the player. */
export interface EpisodeHeader extends TurnCounts {
  outcome: EpisodeOutcome
  /** Why, for every outcome but ok. */
  reason: string | null
  /** What broke the contract, for that outcome; `kind` is known where it was a field of the rewards. */
  violation: { field: string; kind: string | null } | null
  reward: number | null
  rewards: Record<string, number | null> | null
  shaping: ShapingStep[]
  turns: TurnHeader[]
  prompt_tokens: number
  completion_tokens: number
  asked: AskedCosts
  /** Digest of everything that was sampled: equal for two episodes that said the same. */
  completion_digest: string
  /** Digest of how the first turn begins. */
  opening_digest: string
  /** Mean log-probability of the sampled tokens; null without any. */
  mean_logprob: number | null
  version_min: number | null
  version_max: number | null
  /** Length of the blob's first part, bytes. */
  row_bytes: number
}

export interface SealedEpisode {
  header: EpisodeHeader
  /** A msgpack map `{grade, samples}` of `row_bytes` bytes, then the trajectory as JSON text in UTF-8. */
  blob: Uint8Array
}

/** A sealed episode as it is read back: its blob, and where the blob's first part ends. */
export interface KeptEpisode {
  header: Pick<EpisodeHeader, 'row_bytes'>
  blob: Uint8Array
}

/** The blob of an episode: what a trainer reads first, what a person reads behind it. */
export function sealBlob(
  grade: JsonObject | null,
  samples: readonly TapeSample[],
  trajectory: unknown,
): { blob: Uint8Array; rowBytes: number } {
  const row = packMap({ grade, samples: samples.map(sampleToBin) })
  const record = new TextEncoder().encode(JSON.stringify(trajectory))
  const blob = new Uint8Array(row.length + record.length)
  blob.set(row)
  blob.set(record, row.length)
  return { blob, rowBytes: row.length }
}

/** The trajectory's JSON text. */
export function trajectoryOf({ header, blob }: KeptEpisode): Uint8Array {
  return blob.subarray(header.row_bytes)
}

/** The three arrays as raw little-endian bytes, which msgpack carries as `bin`. */
function sampleToBin(sample: TapeSample): Record<string, unknown> {
  const bytes = (array: Int32Array | Uint8Array | Float32Array) =>
    new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
  const { ids, mask, logprobs, prompt_length, versions } = sample
  return { ids: bytes(ids), mask: bytes(mask), logprobs: bytes(logprobs), prompt_length, versions }
}
