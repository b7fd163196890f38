// The ledger in memory: nothing outlives the process. For tests, demos and the embedded default.
import { randomUUID } from 'node:crypto'
import type { AckResult } from '../../protocol/group.ts'
import type { JsonObject } from '../../protocol/json.ts'
import { SETTLEMENTS } from '../../protocol/outcomes.ts'
import type { SealedEpisode } from '../../protocol/sealed.ts'
import type { Delivery, GroupRecord, LeasedGroup, Ledger } from '../../rollout/ports.ts'
import { type LeaseEvent, type LeaseState, leaseReducer, readyLease } from './lease.ts'

interface StoredGroup {
  record: GroupRecord
  state: LeaseState
}

interface StoredBatch {
  /** Every finished group by id, in the order in which they finished. */
  groups: Map<string, StoredGroup>
  /** Ids that are ready, oldest first. */
  ready: Set<string>
  leased: Set<string>
  counts: Record<Delivery, number>
  /** Ids of the episodes that were sealed for a group which has not left yet, and their bytes. */
  sealed: Map<string, Set<string>>
  heldBytes: number
  listeners: Set<() => void>
  timer: NodeJS.Timeout | null
}

/** Blobs of groups that are gone are kept this long, in bytes, for whoever wants to read an episode. */
const KEPT_BYTES = 256 * 2 ** 20

/** `now` gives monotonic seconds. Of groups that are gone the newest blobs stay, up to `KEPT_BYTES`. */
export function createMemoryLedger(now: () => number = () => performance.now() / 1000): Ledger {
  const batches = new Map<string, StoredBatch>()
  const episodes = new Map<string, SealedEpisode>()
  const notes = new Map<string, JsonObject>()

  /** Episodes of groups that are gone, oldest first, and their bytes. */
  const gone = new Map<string, number>()
  let goneBytes = 0

  /** The group's blobs may be forgotten from now on, those of members that were not delivered too. */
  function letGo(batch: StoredBatch, group: string): void {
    for (const id of batch.sealed.get(group) ?? []) {
      const bytes = episodes.get(id)?.blob.length ?? 0
      gone.set(id, bytes)
      goneBytes += bytes
      batch.heldBytes -= bytes
    }
    batch.sealed.delete(group)
    for (const [id, bytes] of gone) {
      if (goneBytes <= KEPT_BYTES) break
      gone.delete(id)
      episodes.delete(id)
      goneBytes -= bytes
    }
  }

  const batchOf = (id: string): StoredBatch => {
    const batch = batches.get(id)
    if (!batch) throw new Error(`batch ${id} was never submitted`)
    return batch
  }

  /** Feeds one event to a group and moves it to where its new phase belongs. */
  function change(batch: StoredBatch, id: string, event: LeaseEvent): AckResult | null {
    const group = batch.groups.get(id)
    if (!group) return 'unknown'
    const before = standing(group.state)
    const { state, result } = leaseReducer(group.state, event)
    group.state = state
    const after = standing(state)
    if (before !== after) {
      batch.counts[before]--
      batch.counts[after]++
      batch.ready.delete(id)
      batch.leased.delete(id)
      if (state.phase === 'ready') batch.ready.add(id)
      if (state.phase === 'leased') batch.leased.add(id)
      if (state.phase === 'settled') letGo(batch, id)
      for (const listener of batch.listeners) listener()
    }
    return result
  }

  function expire(batch: StoredBatch): void {
    const event = { type: 'tick' as const, now: now() }
    for (const id of [...batch.leased]) change(batch, id, event)
    schedule(batch)
  }

  /** One timer a batch, for the lease that runs out next. */
  function schedule(batch: StoredBatch): void {
    if (batch.timer) clearTimeout(batch.timer)
    batch.timer = null
    const ends = [...batch.leased].map((id) => batch.groups.get(id)?.state.lease?.until ?? 0)
    if (ends.length === 0) return
    batch.timer = setTimeout(() => expire(batch), Math.max(0, Math.min(...ends) - now()) * 1000 + 1)
    batch.timer.unref()
  }

  function answer(
    kind: 'ack' | 'nack',
    id: string,
    leases: readonly { id: string; lease: string }[],
  ) {
    const batch = batchOf(id)
    expire(batch)
    const results = leases.map(
      (one) => change(batch, one.id, { type: kind, id: one.lease }) ?? 'unknown',
    )
    schedule(batch)
    return Promise.resolve(results)
  }

  return {
    submit(id) {
      const counts = Object.fromEntries(
        (['ready', 'leased', ...SETTLEMENTS] as const).map((name) => [name, 0]),
      ) as Record<Delivery, number>
      batches.set(id, {
        groups: new Map(),
        ready: new Set(),
        leased: new Set(),
        counts,
        sealed: new Map(),
        heldBytes: 0,
        listeners: new Set(),
        timer: null,
      })
      return Promise.resolve()
    },
    forget(id) {
      const batch = batches.get(id)
      if (!batch) return
      if (batch.timer) clearTimeout(batch.timer)
      for (const group of [...batch.sealed.keys()]) letGo(batch, group)
      batches.delete(id)
    },
    turn: () => Promise.resolve(),
    seal({ batch: id, group, episode }, sealed) {
      const batch = batchOf(id)
      batch.heldBytes += sealed.blob.length - (episodes.get(episode)?.blob.length ?? 0)
      episodes.set(episode, sealed)
      const known = batch.sealed.get(group)
      if (known) known.add(episode)
      else batch.sealed.set(group, new Set([episode]))
      return Promise.resolve()
    },
    episode: (id) => Promise.resolve(episodes.get(id) ?? null),
    settle(record, as) {
      const batch = batchOf(record.batch)
      const state: LeaseState =
        as === 'ready' ? readyLease() : { ...readyLease(), phase: 'settled', settlement: 'dropped' }
      const group = { record, state }
      batch.groups.set(record.id, group)
      if (as === 'dropped') letGo(batch, record.id)
      batch.counts[as]++
      if (as === 'ready') batch.ready.add(record.id)
      for (const listener of batch.listeners) listener()
      return Promise.resolve()
    },
    lease(id, max, seconds, isStale) {
      const batch = batchOf(id)
      expire(batch)
      for (const group of [...batch.ready])
        if (isStale((batch.groups.get(group) as StoredGroup).record))
          change(batch, group, { type: 'stale' })
      const ids = [...batch.ready].slice(0, max)
      const leased = ids.map((group): LeasedGroup => {
        const lease = randomUUID()
        change(batch, group, { type: 'lease', id: lease, until: now() + seconds })
        const { record, state } = batch.groups.get(group) as StoredGroup
        const sealed = record.episodes.map((episode) => episodes.get(episode.id) ?? null)
        return {
          record,
          lease: { id: lease, expires_in_s: seconds, delivery: state.delivery },
          sealed,
        }
      })
      schedule(batch)
      return Promise.resolve(leased)
    },
    ack: (batch, leases) => answer('ack', batch, leases),
    nack: (batch, leases) => answer('nack', batch, leases),
    deliveries: (id) => ({ ...batchOf(id).counts }),
    standing() {
      const counts = [...batches.values()].map((batch) => batch.counts)
      const sum = (name: Delivery) => counts.reduce((total, count) => total + count[name], 0)
      return { ready: sum('ready'), leased: sum('leased') }
    },
    heldBytes: (id) => batchOf(id).heldBytes,
    watch(id, listener) {
      const { listeners } = batchOf(id)
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    note: (name) => Promise.resolve(notes.get(name) ?? null),
    keepNote(name, value) {
      notes.set(name, value)
      return Promise.resolve()
    },
    close() {
      for (const batch of batches.values()) if (batch.timer) clearTimeout(batch.timer)
      return Promise.resolve()
    },
  }
}

function standing(state: LeaseState): Delivery {
  return state.phase === 'settled' ? (state.settlement as Delivery) : state.phase
}
