// The ledger over any store: what happened to batches, finished groups and their leases, sealed episodes and replies.
import type { JsonObject } from '../../protocol/json.ts'
import type { BatchEvent, Delivery, Ledger, SettledGroup } from '../../rollout/ports.ts'
import { createDeliveries } from './deliveries.ts'
import { createJournal } from './journal.ts'
import { createKeptGroups, sealedChange } from './kept-groups.ts'
import { keys } from './keys.ts'
import { type LeaseState, readyLease } from './lease.ts'
import { createReader } from './reader.ts'
import { frameJson } from './record.ts'
import { type BatchRecord, type EventRecord, readLedger } from './resume.ts'
import { createRetention } from './retention.ts'
import { createShelf, type Standing } from './shelf.ts'
import type { Change, Store } from './store.ts'
import { createWriter } from './writer.ts'

export interface LedgerOptions {
  /** Monotonic seconds of this process. */
  clock(): number
  /** Bytes of groups that have left which stay readable. */
  keepBytes: number
  /** Bytes in the store from which on no new batch is taken. */
  maxBytes: number
  /** Bytes that its disk has left, and below how many no new batch is taken. */
  disk: { freeBytes(): number; minFreeBytes: number } | null
  /** A record that is not what was written. */
  onBad(key: string): void
  /** Leases that ran out. */
  onExpired(leases: number): void
}

/** Reads what is in the store. Throws PaddockError `invalid_config` where a newer Paddock has written it. */
export function createLedger(store: Store, options: LedgerOptions): Ledger {
  const { clock, onBad, onExpired } = options
  const reader = createReader(store, onBad)
  const kept = createKeptGroups(reader)
  const retention = createRetention(options.keepBytes)
  const found = readLedger(store, reader)
  /** Number of each batch's next event. */
  const nextEvents = new Map<string, number>()
  const writer = createWriter(store, {
    clock,
    seconds: found.clock,
    life: found.resumed.life,
    isAwaited: () => nextEvents.size > 0,
  })
  const { now, commit } = writer
  const journal = createJournal(store, reader, writer)
  const deliveries = createDeliveries({ writer, kept, retention, onExpired })
  for (const { number, gone } of found.gone) retention.add(number, gone)
  for (const { id, shelf, nextEvent } of found.shelves) {
    nextEvents.set(id, nextEvent)
    deliveries.open(id, shelf)
  }

  function eventChange(id: string, event: BatchEvent, bytes = 0): Change {
    const number = nextEvents.get(id)
    if (number === undefined) throw new Error(`batch ${id} was never submitted`)
    nextEvents.set(id, number + 1)
    const key = keys.event(id, number)
    return { key, value: frameJson(key, { at: now(), event, bytes } satisfies EventRecord) }
  }

  return {
    outlives: store.durable,
    resume: () => found.resumed,
    now,
    async submit(entry) {
      const { id } = entry
      nextEvents.set(id, 0)
      deliveries.open(id, createShelf())
      const key = keys.batch(id)
      await commit([
        { key, value: frameJson(key, { at: now(), entry } satisfies BatchRecord) },
        { key: keys.submitted(id), value: frameJson(keys.submitted(id), entry.digest) },
      ])
    },
    async forget(id) {
      const events = nextEvents.get(id)
      if (events === undefined) return
      nextEvents.delete(id)
      const gone = [keys.batch(id), ...Array.from({ length: events }, (_, k) => keys.event(id, k))]
      await commit([...gone.map((key) => ({ key, value: null })), ...deliveries.forget(id)])
    },
    async tell(id, event) {
      await commit([eventChange(id, event)])
    },
    turn: ({ episode }, attempt, entry) => journal.add(episode, attempt, entry),
    journal: (episode, attempt) => journal.read(episode, attempt),
    async end({ batch: id, group, episode }, event, sealed) {
      const replies = journal.end(episode, event.attempt)
      const bytes = sealed?.blob.length ?? 0
      await commit([eventChange(id, event, bytes), sealedChange(episode, sealed), ...replies])
      deliveries.shelf(id).hold(group, episode, bytes)
    },
    async episode(id) {
      const episode = kept.episode(id)
      return episode === 'lost' ? null : episode
    },
    async group(batch, id) {
      return kept.record(batch, id)
    },
    settle(id, groups, apply) {
      return deliveries.settle(id, () => ({
        standings: new Map(groups.map((group) => [group.record.id, firstStanding(group)])),
        changes: groups.flatMap(({ record, event }) => {
          const key = keys.group(id, record.id)
          return [
            { key, value: frameJson(key, record) },
            eventChange(id, event),
            ...record.episodes.flatMap((episode) => journal.drop(episode.id)),
          ]
        }),
        apply,
      }))
    },
    lease: deliveries.lease,
    renew: deliveries.renew,
    giveUp: deliveries.giveUp,
    peek: deliveries.peek,
    ack: (batch, leases) => deliveries.answer('ack', batch, leases),
    nack: (batch, leases) => deliveries.answer('nack', batch, leases),
    takeBack: deliveries.takeBack,
    reclaim: deliveries.reclaim,
    watch: deliveries.watch,
    async note(name) {
      return reader.json<JsonObject>(keys.note(name)) ?? null
    },
    async notes() {
      const folder = keys.note('')
      return store.keys(folder).map((key) => key.slice(folder.length))
    },
    async keepNote(name, value) {
      const key = keys.note(name)
      await commit([{ key, value: value && frameJson(key, value) }])
    },
    deliveries: (id) => ({ ...deliveries.shelf(id).counts }),
    standing() {
      const counts = deliveries.shelves().map((shelf) => shelf.counts)
      const sum = (name: Delivery) => counts.reduce((total, count) => total + count[name], 0)
      return { ready: sum('ready'), leased: sum('leased') }
    },
    heldBytes: (id) => deliveries.shelf(id).heldBytes(),
    volume: () => options.disk && { bytes: store.usedBytes(), freeBytes: options.disk.freeBytes() },
    full() {
      const { maxBytes, disk } = options
      const used = store.usedBytes()
      if (used >= maxBytes)
        return `the ledger holds ${used} bytes of at most ${maxBytes}; lease and acknowledge groups, or raise ledger.max_bytes`
      const free = disk?.freeBytes() ?? 0
      if (disk && free < disk.minFreeBytes)
        return `the ledger's disk has ${free} bytes left, and ${disk.minFreeBytes} are kept free; make room, or lower ledger.min_free_bytes`
      return null
    },
    async close() {
      deliveries.stop()
      await writer.close()
    },
  }
}

/** A finished group is ready to be leased, or gone at once. */
function firstStanding({ record, event }: SettledGroup): Standing {
  const state: LeaseState =
    event.as === 'ready'
      ? readyLease()
      : { ...readyLease(), phase: 'settled', settlement: 'dropped' }
  return { state, oldest: record.head.policy.version_min }
}
