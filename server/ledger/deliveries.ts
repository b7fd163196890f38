// How the finished groups of each batch stand: ready, leased, settled. What changes is durable before it is seen.
import { randomUUID } from 'node:crypto'
import { setImmediate as breathe } from 'node:timers/promises'
import type { AckResult } from '../../protocol/group.ts'
import type { LeasedGroup, Ledger } from '../../rollout/ports.ts'
import type { KeptGroups } from './kept-groups.ts'
import { keys } from './keys.ts'
import { type LeaseEvent, leaseReducer } from './lease.ts'
import { frameJson } from './record.ts'
import type { DeliveryRecord } from './resume.ts'
import type { Gone, Retention } from './retention.ts'
import type { Shelf, Standing } from './shelf.ts'
import type { Change } from './store.ts'
import type { Writer } from './writer.ts'

/** A lease runs from when its holder has it; until then it has so much longer, for its body to be made. */
const ENCODING_SECONDS = 60
/** Sealed bytes that are leased at once: as JSON they are some five times as many, and a text has at most 512 MB. */
const LEASE_BYTES = 32 * 2 ** 20

interface Named {
  id: string
  lease: string
}

interface GroupEvent {
  group: string
  event: LeaseEvent
}

/** Groups that have finished, with what has to be kept beside how they stand. */
interface Fresh {
  standings: ReadonlyMap<string, Standing>
  changes: readonly Change[]
  /** Called in the same step in which the groups begin to be counted. */
  apply(): void
}

interface Open {
  shelf: Shelf
  listeners: Set<() => void>
  /** Changes to its groups are made one after another: each sees what the one before has made durable. */
  last: Promise<unknown>
  timer: NodeJS.Timeout | null
}

/** What the ledger does with groups that have finished, as `Ledger` says it. */
type OfLedger = 'lease' | 'renew' | 'giveUp' | 'peek' | 'takeBack' | 'reclaim' | 'watch'

export interface Deliveries extends Pick<Ledger, OfLedger> {
  open(batch: string, shelf: Shelf): void
  /** Forgets a batch; what takes its groups' standing away. */
  forget(batch: string): Change[]
  /** Throws for a batch that is not open. */
  shelf(batch: string): Shelf
  shelves(): Shelf[]
  settle(batch: string, finished: () => Fresh): Promise<void>
  answer(kind: 'ack' | 'nack', batch: string, leases: readonly Named[]): Promise<AckResult[]>
  stop(): void
}

export interface DeliveriesOptions {
  writer: Writer
  kept: KeptGroups
  retention: Retention
  /** Leases that ran out. */
  onExpired(leases: number): void
}

export function createDeliveries(options: DeliveriesOptions): Deliveries {
  const { writer, kept, retention, onExpired } = options
  const { now, commit } = writer
  const batches = new Map<string, Open>()

  function batchOf(id: string): Open {
    const batch = batches.get(id)
    if (!batch) throw new Error(`batch ${id} was never submitted`)
    return batch
  }

  /** One after another for each batch. */
  function inTurn<T>(id: string, work: (shelf: Shelf) => Promise<T>): Promise<T> {
    const batch = batchOf(id)
    const mine = batch.last.then(() => work(batch.shelf))
    batch.last = mine.catch(() => {})
    return mine
  }

  /** Feeds events to groups, makes what came of them durable, and only then lets it be seen. */
  async function change(
    id: string,
    events: readonly GroupEvent[],
    fresh?: Fresh,
  ): Promise<(AckResult | null)[]> {
    const batch = batchOf(id)
    const { next, results, expired } = fed(batch.shelf, events)
    for (const [group, standing] of fresh?.standings ?? []) next.set(group, standing)
    if (next.size === 0 && !fresh?.changes.length) return results
    const leaving = [...next].flatMap(([group, { state }]) =>
      state.phase === 'settled' ? [leave(id, group, batch.shelf)] : [],
    )
    await commit([
      ...(fresh?.changes ?? []),
      ...[...next].map(([group, standing]) => standingChange(id, group, standing)),
      ...leaving.map(({ change }) => change),
    ])
    if (expired > 0) onExpired(expired)
    for (const [group, standing] of next) batch.shelf.put(group, standing)
    for (const { number, gone } of leaving) retention.add(number, gone)
    fresh?.apply()
    for (const listener of batch.listeners) listener()
    letGo()
    schedule(id)
    return results
  }

  /** A group that leaves holds its bytes no longer, and is remembered as one that has left. */
  function leave(batch: string, group: string, shelf: Shelf) {
    const held = shelf.release(group)
    const bytes = [...held.values()].reduce((sum, one) => sum + one, 0)
    const gone: Gone = { batch, group, episodes: [...held.keys()], bytes }
    const number = retention.next()
    const key = keys.gone(number)
    return { number, gone, change: { key, value: frameJson(key, gone) } }
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

  function ticks({ leased }: Shelf): GroupEvent[] {
    const event = { type: 'tick' as const, now: now() }
    return [...leased].map((group) => ({ group, event }))
  }

  /** One timer a batch, for the lease that runs out next. */
  function schedule(id: string): void {
    const batch = batchOf(id)
    if (batch.timer) clearTimeout(batch.timer)
    batch.timer = null
    const { groups, leased } = batch.shelf
    const ends = [...leased].map((group) => groups.get(group)?.state.lease?.until ?? 0)
    if (ends.length === 0) return
    const ms = Math.max(0, Math.min(...ends) - now()) * 1000 + 1
    batch.timer = setTimeout(() => {
      inTurn(id, async (shelf) => {
        await change(id, ticks(shelf))
        // Node counts a timer from when its loop last looked at the clock: on a busy one it fires early, and nothing has run out.
        schedule(id)
      }).catch(() => {})
    }, ms)
    batch.timer.unref()
  }

  /** As many of the ready groups as one body can be made of, with the events that lease them or say why they cannot be. */
  async function take(id: string, ready: Iterable<string>, max: number, seconds: number) {
    const events: GroupEvent[] = []
    const leased: LeasedGroup[] = []
    let bytes = 0
    for (const group of ready) {
      if (leased.length >= max) break
      const read = await kept.group(id, group)
      if (!read) {
        events.push({ group, event: { type: 'lost' } })
        continue
      }
      bytes += read.sealed.reduce((sum, one) => sum + (one?.blob.length ?? 0), 0)
      if (leased.length > 0 && bytes > LEASE_BYTES) break
      const lease = randomUUID()
      const until = now() + seconds + ENCODING_SECONDS
      events.push({ group, event: { type: 'lease', id: lease, until } })
      const delivery = (batchOf(id).shelf.groups.get(group)?.state.delivery ?? 0) + 1
      leased.push({ ...read, lease: { id: lease, expires_in_s: seconds, delivery } })
      await breathe()
    }
    return { events, leased }
  }

  return {
    open(id, shelf) {
      batches.set(id, { shelf, listeners: new Set(), last: Promise.resolve(), timer: null })
      schedule(id)
    },
    forget(id) {
      const { timer, shelf } = batchOf(id)
      if (timer) clearTimeout(timer)
      batches.delete(id)
      return [...shelf.groups.keys()].map((group) => ({
        key: keys.delivery(id, group),
        value: null,
      }))
    },
    shelf: (id) => batchOf(id).shelf,
    shelves: () => [...batches.values()].map(({ shelf }) => shelf),
    async settle(id, finished) {
      await inTurn(id, () => change(id, [], finished()))
    },
    lease(id, max, seconds, isStale) {
      return inTurn(id, async (shelf) => {
        await change(id, ticks(shelf))
        const { groups, ready } = shelf
        const stale = [...ready].filter((group) =>
          isStale(groups.get(group)?.oldest ?? null, group),
        )
        const fit = [...ready].filter((group) => !stale.includes(group))
        const { events, leased } = await take(id, fit, max, seconds)
        const passed = stale.map((group): GroupEvent => ({ group, event: { type: 'stale' } }))
        await change(id, [...passed, ...events])
        return leased
      })
    },
    async renew(id, leases, seconds) {
      const until = now() + seconds
      const events = leases.map(
        ({ id: group, lease }): GroupEvent => ({
          group,
          event: { type: 'renew', id: lease, until },
        }),
      )
      await inTurn(id, () => change(id, events))
    },
    async giveUp(id, group) {
      await inTurn(id, () => change(id, [{ group, event: { type: 'lost' } }]))
    },
    async peek(id) {
      const { ready, leased } = batchOf(id).shelf
      for (const group of [...ready, ...leased]) {
        const read = await kept.group(id, group)
        if (read) return read
      }
      return null
    },
    answer(kind, id, leases) {
      return inTurn(id, async (shelf) => {
        const expired = ticks(shelf)
        const events = leases.map(
          ({ id: group, lease }): GroupEvent => ({ group, event: { type: kind, id: lease } }),
        )
        const results = await change(id, [...expired, ...events])
        return results.slice(expired.length).map((result) => result ?? 'unknown')
      })
    },
    async takeBack(id, leases) {
      const events = leases.map(
        ({ id: group, lease }): GroupEvent => ({ group, event: { type: 'takeBack', id: lease } }),
      )
      await inTurn(id, () => change(id, events))
    },
    async reclaim(id, kept) {
      await inTurn(id, async ({ leased, groups }) => {
        const events = [...leased].flatMap((group): GroupEvent[] => {
          const lease = groups.get(group)?.state.lease
          if (!lease || kept.includes(lease.id)) return []
          return [{ group, event: { type: 'nack', id: lease.id } }]
        })
        await change(id, events)
      })
    },
    watch(id, listener) {
      const { listeners } = batchOf(id)
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    stop() {
      for (const { timer } of batches.values()) if (timer) clearTimeout(timer)
    },
  }
}

/** What events make of a shelf's groups: those that stand otherwise now, each event's result, and leases that ran out. */
function fed({ groups }: Shelf, events: readonly GroupEvent[]) {
  const next = new Map<string, Standing>()
  let expired = 0
  const results = events.map(({ group, event }): AckResult | null => {
    const before = next.get(group) ?? groups.get(group)
    if (!before) return 'unknown'
    const { state, result } = leaseReducer(before.state, event)
    if (state !== before.state) next.set(group, { ...before, state })
    if (state !== before.state && event.type === 'tick') expired++
    return result
  })
  return { next, results, expired }
}

function standingChange(batch: string, group: string, { state, oldest }: Standing): Change {
  const key = keys.delivery(batch, group)
  return { key, value: frameJson(key, { state, oldest } satisfies DeliveryRecord) }
}
