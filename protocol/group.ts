// A finished group as a trainer gets it, and the calls by which it is leased, acknowledged and handed back.
import { z } from 'zod'
import type { GroupCost } from './batch.ts'
import { idSchema } from './ids.ts'
import type { JsonObject } from './json.ts'
import type { EpisodeOutcome, GroupVerdict, Level } from './outcomes.ts'
import type { TurnCounts } from './turn-counts.ts'

/** A run of sampled tokens of one policy version: `[start, end)` indexes the sample's arrays. */
export interface VersionSpan {
  version: number | null
  start: number
  end: number
  /** True where the backend did not say it of the tokens themselves but was asked around the call. */
  approximate?: boolean
}

/**
 * One training row: an unbroken token chain of an episode. `ids`, `mask` and `logprobs` have one length; `mask` is 1
 * exactly where the policy sampled the id, and `logprobs` is 0 elsewhere. `prompt_length` counts the ids before the
 * first that was sampled.
 */
export interface Sample<Ids = number[], Mask = number[], Logprobs = number[]> {
  ids: Ids
  mask: Mask
  logprobs: Logprobs
  prompt_length: number
  versions: VersionSpan[]
}

/** Where a turn's sampled tokens lie (`[start, end)` of its sample; null where no token ids are known). */
interface DeliveredTurn {
  sample: number | null
  start: number
  end: number
  advantage: number | null
  anchor: string
}

/** What the trainer's loss divides by: travels beside the advantages, never folded into them. */
export interface LossNormalizer {
  kind: 'constant' | 'tokens_in_sample' | 'tokens_in_batch'
  /** The constant in tokens; null where the trainer counts its own. */
  value: number | null
}

/** Over which groups the advantages were whitened or scaled. */
export interface WhitenedSet {
  over: 'batch' | 'window'
  /** How many groups with votes it holds, and the id of the first: groups of one set have the same. */
  groups: number
  first: string
  mean: number | null
  std: number | null
}

export interface ComponentStats {
  mean: number | null
  /** Population standard deviation over the scored episodes that have the component. */
  std: number | null
  /** True where no two of them differ: the component says nothing in this group. */
  flat: boolean
}

export interface GroupStats {
  n: number
  scored: number
  mean: number | null
  /** Population standard deviation of the scored rewards. */
  std: number | null
  /** How many different completions the scored episodes hold. */
  distinct: number
  /** Of the contract's components, by name. */
  components: Record<string, ComponentStats>
  /** Share of steps whose state another step of the group shares; null where the estimator reads no anchors. */
  shared_anchor_share: number | null
}

/**
 * One step from what was graded to the reward that estimators read, where the contract shapes it. `length` are sampled
 * tokens; a penalty is added to the scalar and never positive.
 */
export type ShapingStep =
  | {
      kind: 'condition'
      component: string
      requires: string
      at_least: number
      /** As it was graded, and as it counts. */
      raw: number
      counted: number
    }
  | { kind: 'overlong' | 'length'; length: number; penalty: number }

/**
 * Wall seconds of the attempt that counts: waiting for a place, its reset, its turns until the last answer, and what
 * followed on that: playing and grading it. What went before a restart of the server is in none of them.
 */
export interface EpisodeSeconds {
  queued: number
  reset: number
  turns: number
  grading: number
}

export interface DeliveredEpisode {
  id: string
  index: number
  attempt: number
  outcome: EpisodeOutcome
  reason: string | null
  reward: number | null
  /** As they were graded; `shaping` says what was made of them. */
  rewards: Record<string, number | null> | null
  shaping: ShapingStep[]
  advantage: number | null
  counts: TurnCounts
  turns: DeliveredTurn[]
  /** Null for an episode that was never played, and in ledgers that did not keep it. */
  seconds: EpisodeSeconds | null
  grade: JsonObject | null
  samples: Sample[]
}

interface GroupLease {
  id: string
  expires_in_s: number
  /** 1 for the first delivery, one more for each redelivery. */
  delivery: number
}

/**
 * Of which distribution log-probabilities are: `raw` before temperature and nucleus (vLLM's default), `processed` the one
 * that was sampled from. They are delivered as they came: a softmax is not linear, so nothing can be divided out.
 */
export const LOGPROBS_MODES = ['raw', 'processed', 'unknown'] as const
export type LogprobsMode = (typeof LOGPROBS_MODES)[number]

/** A group as `POST /v1/batches/:id/lease` gives it. */
export interface DeliveredGroup {
  id: string
  lease: GroupLease
  batch: string
  task: string
  seed: number
  metadata: JsonObject
  verdict: GroupVerdict
  level: Level | null
  /** `name@version#hash` of the reward contract. */
  contract: string
  estimator: string
  loss_normalizer: LossNormalizer
  /** Null where each group stands for itself. */
  whitened: WhitenedSet | null
  policy: {
    model: string | null
    version_min: number | null
    version_max: number | null
    /** As the backend's settings say. */
    logprobs_mode: LogprobsMode
  }
  stats: GroupStats
  cost: GroupCost
  /** Summed over the episodes as they are delivered. */
  counts: TurnCounts
  /** All scored completions are identical, at a temperature above 0 and not trivially short. */
  greedy_suspect: boolean
  episodes: DeliveredEpisode[]
}

export const leaseRequestSchema = z
  .strictObject({
    max: z.int().min(1).max(1024).default(1),
    lease_s: z.number().gt(0).max(86_400).default(60),
    /** How long to wait for a first group before an empty answer. */
    wait_s: z.number().min(0).max(60).default(0),
  })
  .meta({ id: 'LeaseRequest' })
export type LeaseRequest = z.output<typeof leaseRequestSchema>

export const ackRequestSchema = z
  .strictObject({
    groups: z
      .array(z.strictObject({ id: idSchema, lease: z.string().min(1) }))
      .min(1)
      .max(1024),
    reason: z.string().max(1000).optional(),
  })
  .meta({ id: 'AckRequest' })
export type AckRequest = z.output<typeof ackRequestSchema>

/** What an ack or nack came to, group by group. `late`: the lease had run out before. */
export const ACK_RESULTS = ['acked', 'late', 'unknown', 'duplicate', 'nacked'] as const
export type AckResult = (typeof ACK_RESULTS)[number]
