// What a store holds when a server opens it: batches with their history, and how their finished groups stand.
import type { BatchEntry, BatchEvent, Resumed, ResumedBatch } from '../../rollout/ports.ts'
import { keys, nameOf } from './keys.ts'
import { type LeaseState, readyLease } from './lease.ts'
import { todaysEvent } from './older-records.ts'
import type { Reader } from './reader.ts'
import type { Gone } from './retention.ts'
import { createShelf, type Shelf } from './shelf.ts'
import type { Store } from './store.ts'

/** Seconds that servers have run with the ledger, and how often it was opened before. */
export interface ClockRecord {
  seconds: number
  life: number
}

/** A batch and when it was submitted. */
export interface BatchRecord {
  at: number
  entry: BatchEntry
}

/** An event with the moment of the ledger's clock; `bytes` of what was sealed at an `end`. */
export interface EventRecord {
  at: number
  event: BatchEvent
  bytes: number
}

export interface DeliveryRecord {
  state: LeaseState
  oldest: number | null
}

export interface ReadLedger {
  /** Where the clock stood. */
  clock: number
  resumed: Resumed
  shelves: { id: string; shelf: Shelf; nextEvent: number }[]
  gone: { number: number; gone: Gone }[]
}

/** Bad records are set aside by the reader; what they leave open is told as `damage` of their batch. */
export function readLedger(store: Store, reader: Reader): ReadLedger {
  const clock = reader.json<ClockRecord>(keys.clock)
  const life = clock ? clock.life + 1 : 0
  // Set aside by a server before this one.
  const aside = store.keys(keys.bad('batch/')).map(nameOf)
  const resumed: Resumed = { batches: [], submitted: new Map(), damaged: new Set(aside), life }
  for (const key of store.keys('submitted/'))
    resumed.submitted.set(nameOf(key), reader.json<string>(key) ?? '')
  const kept = store.keys('batch/').flatMap((key) => {
    const record = reader.json<BatchRecord>(key)
    if (!record) resumed.damaged.add(nameOf(key))
    return record ?? []
  })
  const shelves = kept
    .sort((a, b) => a.at - b.at)
    .map(({ entry }) => {
      const { batch, shelf, nextEvent } = readBatch(entry, store, reader)
      resumed.batches.push(batch)
      return { id: entry.id, shelf, nextEvent }
    })
  const gone = store.keys('gone/').flatMap((key) => {
    const one = reader.json<Gone>(key)
    return one ? [{ number: Number(nameOf(key)), gone: one }] : []
  })
  return { clock: clock?.seconds ?? 0, resumed, shelves, gone }
}

function readBatch(
  entry: BatchEntry,
  store: Store,
  reader: Reader,
): { batch: ResumedBatch; shelf: Shelf; nextEvent: number } {
  const { id } = entry
  const shelf = createShelf()
  const events: ResumedBatch['events'] = []
  const places = store.keys(`event/${id}/`)
  let bad = 0
  for (const key of places) {
    const record = reader.json<EventRecord>(key)
    if (!record) {
      bad++
      continue
    }
    const { at, bytes } = record
    const event = todaysEvent(record.event)
    events.push({ at, event })
    const group = 'group' in event ? `${id}.g${event.group}` : ''
    if (event.type === 'end') shelf.hold(group, `${group}.e${event.index}`, bytes)
    if (event.type === 'settle') shelf.put(group, standingOf(id, group, reader))
  }
  for (const [group, { state }] of shelf.groups) if (state.phase === 'settled') shelf.release(group)
  const damage = bad > 0 ? `${bad} records of what happened to batch ${id} cannot be read` : null
  const last = places.at(-1)
  const nextEvent = last === undefined ? 0 : Number(nameOf(last)) + 1
  return { batch: { entry, events, damage }, shelf, nextEvent }
}

/** Where nobody can say how a finished group stands, it is not handed out: it may have been acknowledged. */
function standingOf(batch: string, group: string, reader: Reader) {
  const record = reader.json<DeliveryRecord>(keys.delivery(batch, group))
  if (record) return record
  const state: LeaseState = { ...readyLease(), phase: 'settled', settlement: 'undeliverable' }
  return { state, oldest: null }
}
