// What the engine's runtime needs from the world beside the policy: a store that keeps what has happened.
import type { BatchRequest } from '../protocol/batch.ts'
import type { AckResult, DeliveredEpisode, DeliveredGroup } from '../protocol/group.ts'
import type { JsonObject } from '../protocol/json.ts'
import type { Settlement } from '../protocol/outcomes.ts'
import type { SealedEpisode } from '../protocol/sealed.ts'
import type { HttpReply } from './request.ts'

/** A finished group as it is kept: the delivered head without its lease, and its episodes' heads. */
export interface GroupRecord {
  id: string
  batch: string
  head: Omit<DeliveredGroup, 'lease' | 'episodes'>
  episodes: Omit<DeliveredEpisode, 'grade' | 'samples'>[]
}

/** A group that is out on a lease, with the sealed episodes of its members in their order; null for one that never played. */
export interface LeasedGroup {
  record: GroupRecord
  lease: DeliveredGroup['lease']
  sealed: (SealedEpisode | null)[]
}

/** How a group stands in the store. */
export type Delivery = 'ready' | 'leased' | Settlement

/**
 * Every method resolves when what it says is as durable as the store makes it. `turn` is awaited before the next
 * request of that episode goes out; `seal` before anyone hears of the episode.
 */
export interface Ledger {
  submit(id: string, request: BatchRequest): Promise<void>
  /** Lets go of a batch of which nothing is ready or leased any more. */
  forget(id: string): void
  /** Keeps one reply of an attempt's journal, whoever gave it. */
  turn(episode: string, attempt: number, reply: HttpReply): Promise<void>
  seal(
    place: { batch: string; group: string; episode: string },
    sealed: SealedEpisode,
  ): Promise<void>
  episode(id: string): Promise<SealedEpisode | null>
  /** Takes a finished group: to be leased (`ready`), or gone at once (`dropped`). */
  settle(group: GroupRecord, as: 'ready' | 'dropped'): Promise<void>
  /** Groups for which `isStale` says yes settle as `stale` and are passed over. */
  lease(
    batch: string,
    max: number,
    seconds: number,
    isStale: (group: GroupRecord) => boolean,
  ): Promise<LeasedGroup[]>
  ack(batch: string, leases: readonly { id: string; lease: string }[]): Promise<AckResult[]>
  nack(batch: string, leases: readonly { id: string; lease: string }[]): Promise<AckResult[]>
  /** How many groups of a batch stand where. Counts over all deliveries equal the groups that were settled. */
  deliveries(batch: string): Record<Delivery, number>
  /** Groups of all batches that wait for a trainer or are out on a lease. */
  standing(): { ready: number; leased: number }
  /** Bytes of a batch's episodes whose group has not left yet. */
  heldBytes(batch: string): number
  /** Calls back when a group of the batch becomes ready or leaves the store; returns the unsubscriber. */
  watch(batch: string, listener: () => void): () => void
  /** A small value that a trainer's dialect needs after a restart, by name; null where none was kept. */
  note(name: string): Promise<JsonObject | null>
  keepNote(name: string, value: JsonObject): Promise<void>
  close(): Promise<void>
}
