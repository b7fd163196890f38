// What the engine's runtime needs from the world beside the policy: a store that keeps what has happened.
import type { GroupCost } from '../protocol/batch.ts'
import type {
  AckResult,
  DeliveredEpisode,
  DeliveredGroup,
  EpisodeSeconds,
} from '../protocol/group.ts'
import type { JsonObject } from '../protocol/json.ts'
import type { EpisodeOutcome, GroupVerdict, Settlement } from '../protocol/outcomes.ts'
import type { EpisodeHeader, KeptEpisode, SealedEpisode } from '../protocol/sealed.ts'
import type { GroupExplanation } from '../reward/explain.ts'

/** A finished group as it is kept: the delivered head without its lease, and its episodes' heads. */
export interface GroupRecord {
  id: string
  batch: string
  head: Omit<DeliveredGroup, 'lease' | 'episodes'>
  episodes: Omit<DeliveredEpisode, 'grade' | 'samples'>[]
  /** Why each advantage is what it is; null where no member voted. Not delivered; asked for. */
  explanation: GroupExplanation | null
}

/** A group that is out on a lease, with the sealed episodes of its members in their order; null for one that never played. */
export interface LeasedGroup {
  record: GroupRecord
  lease: DeliveredGroup['lease']
  sealed: (KeptEpisode | null)[]
}

/** How a group stands in the store. */
export type Delivery = 'ready' | 'leased' | Settlement

/** What is kept of a batch beside its groups. */
export interface BatchEntry {
  id: string
  /** The request as JSON text. */
  request: string
  /** Digest of the request, by which the same one is known again. */
  digest: string
  /** What the batch was planned with, beside its request: a plan that is made again must be the same. */
  plan: JsonObject
}

/** One thing that happened to a batch; replayed in their order, these are its groups' states. `group` is a place in the batch. */
export type BatchEvent =
  /** An attempt is played from here on, `turns` replies of it being kept already. Again after each restart. */
  | { type: 'start'; group: number; index: number; attempt: number; turns: number }
  /** A thread plays a suspect from here on, or no more: where the process dies in between, it was played. */
  | { type: 'play'; group: number; index: number; attempt: number; plays: boolean }
  | { type: 'end'; group: number; index: number; attempt: number; end: AttemptEnd }
  /** Its deadline has passed. */
  | { type: 'close'; group: number }
  /** `replacement`: the place of the fresh group that is played in its stead. */
  | {
      type: 'settle'
      group: number
      verdict: GroupVerdict
      as: 'ready' | 'dropped'
      fault: string | null
      replacement: number | null
    }
  | { type: 'cancel' }

/** What an attempt came to. `header` null: not even the failure could be sealed. */
export interface AttemptEnd {
  outcome: EpisodeOutcome
  reason: string | null
  header: EpisodeHeader | null
  cost: GroupCost
  /** Absent in older ledgers. */
  seconds?: EpisodeSeconds
}

/** A group that is finished and how it leaves its batch. */
export interface SettledGroup {
  record: GroupRecord
  event: Extract<BatchEvent, { type: 'settle' }>
}

/** A batch as it is found again. `at` are seconds of the ledger's clock. */
export interface ResumedBatch {
  entry: BatchEntry
  events: { at: number; event: BatchEvent }[]
  /** Why its history cannot be trusted; null where it is whole. */
  damage: string | null
}

export interface Resumed {
  batches: ResumedBatch[]
  /** Digest of every request that was ever submitted, by its batch's id. */
  submitted: Map<string, string>
  /** Ids of batches whose record is not what was written: nothing of them can go on. */
  damaged: Set<string>
  /** How often the ledger was opened before. */
  life: number
}

export interface EpisodePlace {
  batch: string
  group: string
  episode: string
}

/**
 * Every promise resolves when what it says is as durable as the store makes it, and nobody hears of it before. `turn` is
 * awaited before the next request of that episode goes out. After a failed write every method rejects and nothing is
 * written any more.
 */
export interface Ledger {
  /** Whether it outlives the process: then what is under way at the end goes on with the next one. */
  outlives: boolean
  /** What was found at the start. */
  resume(): Resumed
  /** Seconds that servers have run with this ledger: it stands still while none does. */
  now(): number
  submit(entry: BatchEntry): Promise<void>
  /** Lets go of a batch of which nothing is ready or leased any more; its id stays taken. */
  forget(batch: string): Promise<void>
  /** Keeps an event that is no end and no settlement. */
  tell(
    batch: string,
    event: Extract<BatchEvent, { type: 'start' | 'play' | 'close' | 'cancel' }>,
  ): Promise<void>
  /** Keeps one reply of an attempt, as opaque bytes, behind those before it. */
  turn(place: EpisodePlace, attempt: number, entry: Uint8Array): Promise<void>
  /** The replies of an attempt that has not ended, in order. */
  journal(episode: string, attempt: number): Uint8Array[]
  /** Keeps the end of an attempt with what was sealed of it, and lets its replies go. */
  end(
    place: EpisodePlace,
    event: Extract<BatchEvent, { type: 'end' }>,
    sealed: SealedEpisode | null,
  ): Promise<void>
  episode(id: string): Promise<KeptEpisode | null>
  /** A finished group, for as long as it is kept. */
  group(batch: string, id: string): Promise<GroupRecord | null>
  /**
   * Takes finished groups of one batch, all or none: to be leased (`ready`), or gone at once (`dropped`). `apply` is
   * called in the same step in which `deliveries` begins to count them.
   */
  settle(batch: string, groups: readonly SettledGroup[], apply: () => void): Promise<void>
  /**
   * No more groups than one body can be made of: the first, and others up to some tens of megabytes. `isStale` is asked
   * for the oldest policy version of each ready group; the stale ones settle and are passed over.
   */
  lease(
    batch: string,
    max: number,
    seconds: number,
    isStale: (oldest: number | null, group: string) => boolean,
  ): Promise<LeasedGroup[]>
  /** Lets leases run from now on: whoever has them gets them only now. */
  renew(
    batch: string,
    leases: readonly { id: string; lease: string }[],
    seconds: number,
  ): Promise<void>
  /** A group that nobody can be given settles as `undeliverable`. */
  giveUp(batch: string, group: string): Promise<void>
  /** The first group that can be read, of those that are ready, then of those that are leased; null where there is none. */
  peek(batch: string): Promise<Omit<LeasedGroup, 'lease'> | null>
  ack(batch: string, leases: readonly { id: string; lease: string }[]): Promise<AckResult[]>
  nack(batch: string, leases: readonly { id: string; lease: string }[]): Promise<AckResult[]>
  /** Leases that reached nobody: their groups are ready again, and this was no delivery of them. */
  takeBack(batch: string, leases: readonly { id: string; lease: string }[]): Promise<void>
  /** Hands back every lease of a batch but those of `kept`, ids of leases. */
  reclaim(batch: string, kept: readonly string[]): Promise<void>
  /** A small value that must still be known after a restart, by name; null where none was kept. */
  note(name: string): Promise<JsonObject | null>
  /** The names of all such values. */
  notes(): Promise<string[]>
  /** Null forgets it. */
  keepNote(name: string, value: JsonObject | null): Promise<void>
  /** How many groups of a batch stand where. Counts over all deliveries equal the groups that were settled. */
  deliveries(batch: string): Record<Delivery, number>
  /** Groups of all batches that wait for a trainer or are out on a lease. */
  standing(): { ready: number; leased: number }
  /** Bytes of a batch's episodes whose group has not left yet. */
  heldBytes(batch: string): number
  /** Bytes that it takes, and that its disk has left; null where it keeps nothing on disk. */
  volume(): { bytes: number; freeBytes: number } | null
  /** Why no more should be taken now, as a sentence; null where it may. */
  full(): string | null
  /** Calls back when a group of the batch becomes ready or leaves the store; returns the unsubscriber. */
  watch(batch: string, listener: () => void): () => void
  close(): Promise<void>
}
