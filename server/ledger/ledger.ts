// The ledger over any store: what happened to batches, finished groups and their leases, sealed episodes and replies.
import { randomUUID } from 'node:crypto'
import { setImmediate as breathe } from 'node:timers/promises'
import type { AckResult } from '../../protocol/group.ts'
import type { JsonObject } from '../../protocol/json.ts'
import type { KeptEpisode } from '../../protocol/sealed.ts'
import type { BatchEvent, Delivery, GroupRecord, LeasedGroup, Ledger } from '../../rollout/ports.ts'
import { keys } from './keys.ts'
import { type LeaseEvent, type LeaseState, leaseReducer, readyLease } from './lease.ts'
import { todaysGroup } from './older-records.ts'
import { createReader } from './reader.ts'
import { frame, frameJson } from './record.ts'
import {
  type BatchRecord,
  type ClockRecord,
  type DeliveryRecord,
  type EventRecord,
  readLedger,
} from './resume.ts'
import { createRetention, type Gone } from './retention.ts'
import { createShelf, type Shelf, type Standing } from './shelf.ts'
import type { Change, Store } from './store.ts'

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

/** What the ledger has of a batch in memory. */
interface Open {
  shelf: Shelf
  /** Number of its next event. */
  nextEvent: number
  listeners: Set<() => void>
  /** Changes to its groups are made one after another: each sees what the one before has made durable. */
  last: Promise<unknown>
  timer: NodeJS.Timeout | null
}

/** A lease runs from when its holder has it; until then it has so much longer, for its body to be made. */
const ENCODING_SECONDS = 60
/** Bytes of episodes that are read and checked in one go: some 2 ms. */
const SLICE_BYTES = 2 ** 20
/** Sealed bytes that are leased at once: as JSON they are some five times as many, and a text has at most 512 MB. */
const LEASE_BYTES = 32 * 2 ** 20
/** How far the ledger's clock may stand behind after a kill. */
const CLOCK_MS = 1000

/** Reads what is in the store. Throws PaddockError `invalid_config` where a newer Paddock has written it. */
export function createLedger(store: Store, options: LedgerOptions): Ledger {
  const reader = createReader(store, options.onBad)
  const retention = createRetention(options.keepBytes)
  const found = readLedger(store, reader)
  const startedAt = options.clock()
  // A clock that was killed shows up to its interval too little: no lease may live longer for that.
  const unseen = found.clock > 0 ? CLOCK_MS / 1000 : 0
  const batches = new Map<string, Open>()
  /** Replies kept of each attempt under way. */
  const turns = new Map<string, number>()
  for (const { number, gone } of found.gone) retention.add(number, gone)
  for (const { id, shelf, nextEvent } of found.shelves) {
    const batch = open(id, shelf, nextEvent)
    schedule(id, batch)
  }
  const heart = setInterval(() => {
    if (batches.size > 0) commit([]).catch(() => clearInterval(heart))
  }, CLOCK_MS)
  heart.unref()

  function now(): number {
    return found.clock + unseen + options.clock() - startedAt
  }

  /** The clock goes along with every commit. */
  function commit(changes: Change[]): Promise<void> {
    const clock: ClockRecord = { seconds: now(), life: found.resumed.life }
    return store.commit([...changes, { key: keys.clock, value: frameJson(keys.clock, clock) }])
  }

  function open(id: string, shelf: Shelf, nextEvent: number): Open {
    const batch: Open = {
      shelf,
      nextEvent,
      listeners: new Set(),
      last: Promise.resolve(),
      timer: null,
    }
    batches.set(id, batch)
    return batch
  }

  function batchOf(id: string): Open {
    const batch = batches.get(id)
    if (!batch) throw new Error(`batch ${id} was never submitted`)
    return batch
  }

  function inTurn<T>(batch: Open, work: () => Promise<T>): Promise<T> {
    const mine = batch.last.then(work)
    batch.last = mine.catch(() => {})
    return mine
  }

  function eventChange(id: string, event: BatchEvent, bytes = 0): Change {
    const key = keys.event(id, batchOf(id).nextEvent++)
    return { key, value: frameJson(key, { at: now(), event, bytes } satisfies EventRecord) }
  }

  /** Feeds events to groups, makes what came of them durable, and only then lets it be seen. */
  async function change(
    id: string,
    events: readonly { group: string; event: LeaseEvent }[],
    more: readonly Change[] = [],
    fresh: ReadonlyMap<string, Standing> = new Map(),
    apply: () => void = () => {},
  ): Promise<(AckResult | null)[]> {
    const batch = batchOf(id)
    const next = new Map(fresh)
    let expired = 0
    const results = events.map(({ group, event }) => {
      const before = next.get(group) ?? batch.shelf.groups.get(group)
      if (!before) return 'unknown' as const
      const { state, result } = leaseReducer(before.state, event)
      if (state !== before.state) next.set(group, { ...before, state })
      if (state !== before.state && event.type === 'tick') expired++
      return result
    })
    if (next.size === 0 && more.length === 0) return results
    const changes = [...more]
    const leaving: { number: number; gone: Gone }[] = []
    for (const [group, { state, oldest }] of next) {
      const key = keys.delivery(id, group)
      const record: DeliveryRecord = { state, oldest }
      changes.push({ key, value: frameJson(key, record) })
      if (state.phase !== 'settled') continue
      const held = batch.shelf.release(group)
      const bytes = [...held.values()].reduce((sum, one) => sum + one, 0)
      const gone = { batch: id, group, episodes: [...held.keys()], bytes }
      const number = retention.next()
      leaving.push({ number, gone })
      changes.push({ key: keys.gone(number), value: frameJson(keys.gone(number), gone) })
    }
    await commit(changes)
    if (expired > 0) options.onExpired(expired)
    for (const [group, standing] of next) batch.shelf.put(group, standing)
    for (const { number, gone } of leaving) retention.add(number, gone)
    apply()
    for (const listener of batch.listeners) listener()
    letGo()
    schedule(id, batch)
    return results
  }

  /** Bytes of groups that have left go when newer ones need their room. */
  function letGo(): void {
    const changes = retention
      .takeExpired()
      .flatMap(({ number, gone }): Change[] => [
        { key: keys.gone(number), value: null },
        { key: keys.group(gone.batch, gone.group), value: null },
        ...gone.episodes.map((episode) => ({ key: keys.blob(episode), value: null })),
      ])
    if (changes.length > 0) commit(changes).catch(() => {})
  }

  function ticks({ shelf }: Open): { group: string; event: LeaseEvent }[] {
    const event = { type: 'tick' as const, now: now() }
    return [...shelf.leased].map((group) => ({ group, event }))
  }

  /** One timer a batch, for the lease that runs out next. */
  function schedule(id: string, batch: Open): void {
    if (batch.timer) clearTimeout(batch.timer)
    batch.timer = null
    const { shelf } = batch
    const ends = [...shelf.leased].map((group) => shelf.groups.get(group)?.state.lease?.until ?? 0)
    if (ends.length === 0) return
    const ms = Math.max(0, Math.min(...ends) - now()) * 1000 + 1
    batch.timer = setTimeout(() => {
      inTurn(batch, async () => {
        await change(id, ticks(batch))
        // Node counts a timer from when its loop last looked at the clock: on a busy one it fires early, and nothing has run out.
        schedule(id, batch)
      }).catch(() => {})
    }, ms)
    batch.timer.unref()
  }

  function answer(
    kind: 'ack' | 'nack',
    id: string,
    leases: readonly { id: string; lease: string }[],
  ): Promise<AckResult[]> {
    const batch = batchOf(id)
    return inTurn(batch, async () => {
      const expired = ticks(batch)
      const events = leases.map((one) => ({
        group: one.id,
        event: { type: kind, id: one.lease } as const,
      }))
      const results = await change(id, [...expired, ...events])
      return results.slice(expired.length).map((result) => result ?? 'unknown')
    })
  }

  function readRecord(id: string, group: string): GroupRecord | null {
    const record = reader.json<GroupRecord>(keys.group(id, group))
    return record
      ? todaysGroup(record, () => reader.json<BatchRecord>(keys.batch(id))?.entry)
      : null
  }

  /** A group with its bytes as they were kept; null where any of them is not. Others have their turn while it is read. */
  async function readGroup(
    id: string,
    group: string,
  ): Promise<Pick<LeasedGroup, 'record' | 'sealed'> | null> {
    const record = readRecord(id, group)
    if (!record) return null
    const sealed: (KeptEpisode | null)[] = []
    let atOnce = 0
    for (const episode of record.episodes) {
      const kept = readEpisode(episode.id)
      if (kept === 'lost') return null
      sealed.push(kept)
      atOnce += kept?.blob.length ?? 0
      if (atOnce < SLICE_BYTES) continue
      atOnce = 0
      await breathe()
    }
    return { record, sealed }
  }

  function readEpisode(episode: string): KeptEpisode | null | 'lost' {
    const bytes = reader.bytes(keys.blob(episode))
    if (bytes === undefined) return null
    if (bytes === null) return 'lost'
    const rowBytes = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true)
    return { header: { row_bytes: rowBytes }, blob: bytes.subarray(4) }
  }

  return {
    outlives: store.durable,
    resume: () => found.resumed,
    now,
    async submit(entry) {
      const { id } = entry
      open(id, createShelf(), 0)
      const key = keys.batch(id)
      await commit([
        { key, value: frameJson(key, { at: now(), entry } satisfies BatchRecord) },
        { key: keys.submitted(id), value: frameJson(keys.submitted(id), entry.digest) },
      ])
    },
    async forget(id) {
      const batch = batches.get(id)
      if (!batch) return
      if (batch.timer) clearTimeout(batch.timer)
      batches.delete(id)
      const groups = [...batch.shelf.groups.keys()].map((group) => keys.delivery(id, group))
      const events = Array.from({ length: batch.nextEvent }, (_, number) => keys.event(id, number))
      const gone = [keys.batch(id), ...groups, ...events]
      await commit(gone.map((key) => ({ key, value: null })))
    },
    async tell(id, event) {
      await commit([eventChange(id, event)])
    },
    async turn({ episode }, attempt, entry) {
      const name = keys.turns(episode, attempt)
      const number = turns.get(name) ?? 0
      turns.set(name, number + 1)
      const key = keys.turn(episode, attempt, number)
      await commit([{ key, value: frame(key, entry) }])
    },
    journal(episode, attempt) {
      const entries: Uint8Array[] = []
      const records = store.keys(keys.turns(episode, attempt))
      for (const key of records) {
        const bytes = reader.bytes(key)
        if (!bytes) break
        entries.push(bytes)
      }
      // What comes behind a bad one cannot be used: it is asked for again.
      const rest = records.slice(entries.length).map((key) => ({ key, value: null }))
      if (rest.length > 0) commit(rest).catch(() => {})
      turns.set(keys.turns(episode, attempt), entries.length)
      return entries
    },
    async end({ batch: id, group, episode }, event, sealed) {
      const name = keys.turns(episode, event.attempt)
      const replies = Array.from({ length: turns.get(name) ?? 0 }, (_, number) => ({
        key: keys.turn(episode, event.attempt, number),
        value: null,
      }))
      turns.delete(name)
      const bytes = sealed?.blob.length ?? 0
      const key = keys.blob(episode)
      const blob = { key, value: sealed && frame(key, withRowBytes(sealed)) }
      await commit([eventChange(id, event, bytes), blob, ...replies])
      batchOf(id).shelf.hold(group, episode, bytes)
    },
    async episode(id) {
      const kept = readEpisode(id)
      return kept === 'lost' ? null : kept
    },
    async group(batch, id) {
      return readRecord(batch, id)
    },
    settle(id, groups, apply) {
      const fresh = new Map(
        groups.map(({ record, event }): [string, Standing] => [
          record.id,
          { state: firstState(event.as), oldest: record.head.policy.version_min },
        ]),
      )
      const batch = batchOf(id)
      return inTurn(batch, async () => {
        const more = groups.flatMap(({ record, event }) => {
          const key = keys.group(id, record.id)
          return [{ key, value: frameJson(key, record) }, eventChange(id, event)]
        })
        await change(id, [], more, fresh, apply)
      })
    },
    lease(id, max, seconds, isStale) {
      const batch = batchOf(id)
      return inTurn(batch, async () => {
        const { shelf } = batch
        await change(id, ticks(batch))
        const stale = [...shelf.ready].filter((group) =>
          isStale(shelf.groups.get(group)?.oldest ?? null, group),
        )
        const events: { group: string; event: LeaseEvent }[] = stale.map((group) => ({
          group,
          event: { type: 'stale' },
        }))
        const leased: LeasedGroup[] = []
        let bytes = 0
        for (const group of shelf.ready) {
          if (leased.length >= max) break
          if (stale.includes(group)) continue
          const read = await readGroup(id, group)
          if (!read) {
            events.push({ group, event: { type: 'lost' } })
            continue
          }
          bytes += read.sealed.reduce((sum, kept) => sum + (kept?.blob.length ?? 0), 0)
          if (leased.length > 0 && bytes > LEASE_BYTES) break
          const lease = randomUUID()
          const until = now() + seconds + ENCODING_SECONDS
          events.push({ group, event: { type: 'lease', id: lease, until } })
          const delivery = (shelf.groups.get(group)?.state.delivery ?? 0) + 1
          leased.push({ ...read, lease: { id: lease, expires_in_s: seconds, delivery } })
          await breathe()
        }
        await change(id, events)
        return leased
      })
    },
    async renew(id, leases, seconds) {
      const until = now() + seconds
      const events = leases.map((one) => ({
        group: one.id,
        event: { type: 'renew', id: one.lease, until } as const,
      }))
      await inTurn(batchOf(id), () => change(id, events))
    },
    async giveUp(id, group) {
      await inTurn(batchOf(id), () => change(id, [{ group, event: { type: 'lost' } }]))
    },
    async peek(id) {
      const { ready, leased } = batchOf(id).shelf
      for (const group of [...ready, ...leased]) {
        const read = await readGroup(id, group)
        if (read) return read
      }
      return null
    },
    ack: (batch, leases) => answer('ack', batch, leases),
    nack: (batch, leases) => answer('nack', batch, leases),
    async reclaim(id, kept) {
      const batch = batchOf(id)
      await inTurn(batch, async () => {
        const { shelf } = batch
        const events = [...shelf.leased].flatMap((group) => {
          const lease = shelf.groups.get(group)?.state.lease
          if (!lease || kept.includes(lease.id)) return []
          return [{ group, event: { type: 'nack', id: lease.id } as const }]
        })
        await change(id, events)
      })
    },
    async note(name) {
      return reader.json<JsonObject>(keys.note(name)) ?? null
    },
    async keepNote(name, value) {
      const key = keys.note(name)
      await commit([{ key, value: value && frameJson(key, value) }])
    },
    deliveries: (id) => ({ ...batchOf(id).shelf.counts }),
    standing() {
      const counts = [...batches.values()].map(({ shelf }) => shelf.counts)
      const sum = (name: Delivery) => counts.reduce((total, count) => total + count[name], 0)
      return { ready: sum('ready'), leased: sum('leased') }
    },
    heldBytes: (id) => batchOf(id).shelf.heldBytes(),
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
    watch(id, listener) {
      const { listeners } = batchOf(id)
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    async close() {
      clearInterval(heart)
      for (const { timer } of batches.values()) if (timer) clearTimeout(timer)
      await commit([]).catch(() => {})
      await store.close()
    },
  }
}

function firstState(as: 'ready' | 'dropped'): LeaseState {
  return as === 'ready'
    ? readyLease()
    : { ...readyLease(), phase: 'settled', settlement: 'dropped' }
}

function withRowBytes({ header, blob }: KeptEpisode): Uint8Array {
  const bytes = new Uint8Array(4 + blob.length)
  new DataView(bytes.buffer).setUint32(0, header.row_bytes, true)
  bytes.set(blob, 4)
  return bytes
}
