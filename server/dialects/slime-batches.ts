// The batches of a slime run in the service: submitted with their instances, leased from, accounted for, let go.
import type { BatchRequest } from '../../protocol/batch.ts'
import { PaddockError } from '../../protocol/errors.ts'
import type { Service } from '../service.ts'
import type { GroupFigures } from './slime-answer.ts'
import { instanceOf, type SlimeForm } from './slime-items.ts'
import { type HandedOut, placeOf, type SlimeEvent, type SlimeRun } from './slime-run.ts'

/** What is handed out: `bodies` are lists of items as JSON text, one for each lease. */
interface Leased {
  handed: HandedOut[]
  bodies: Uint8Array[]
  figures: GroupFigures[]
  instances: number[]
}

/** What has become of batches since they were last looked at. */
export interface News {
  /** Groups that never come, batches that the server has lost. */
  events: SlimeEvent[]
  /** Why a batch has paused. */
  paused: string | null
  /** Groups that wait to be leased. */
  ready: number
  /** Whether more groups may get ready though none is leased. */
  more: boolean
}

export interface SlimeBatches {
  submit(request: BatchRequest): Promise<void>
  news(run: SlimeRun): Promise<News>
  /** Up to `room` ready groups of the run's batches, oldest batch first. */
  lease(run: SlimeRun, room: number, form: SlimeForm): Promise<Leased>
  ack(handed: readonly HandedOut[]): Promise<void>
  nack(handed: readonly HandedOut[]): Promise<void>
  /** Those of an answer that reached nobody. */
  takeBack(handed: readonly HandedOut[]): Promise<void>
  /** Takes back leases of the run's batches that no answer of it has: the server died before it could note them. */
  reclaim(run: SlimeRun): Promise<void>
  /** Keeps batches of the run that are done from being forgotten: what became of their groups has still to be read. */
  hold(batches: Iterable<string>): Promise<void>
  release(batches: Iterable<string>): Promise<void>
  /** Releases what a server held that died before its run named it, or after it named it no more; holds what it names. */
  holdAgain(run: SlimeRun): Promise<void>
  /** Withdraws what plays; what has finished stays to be leased. */
  cancel(run: SlimeRun): Promise<void>
  /** Withdraws what plays, and lets go of what has finished. */
  discard(run: SlimeRun): Promise<void>
}

/** A group whose lease runs out before the next poll comes back and is then acknowledged: it was handed out. */
const LEASE_S = 600
/** The largest lease that the service takes. */
const MAX_LEASE = 1024

/** Every batch of a run is called so: `slime-1.0`. */
const BATCH_PREFIX = 'slime-'

const FLAT = new Set(['zero_variance'])
const MACHINERY = new Set(['infra', 'timeout', 'aborted'])

export function createSlimeBatches(service: Service): SlimeBatches {
  const answer = async (how: 'ack' | 'nack' | 'takeBack', handed: readonly HandedOut[]) => {
    for (const batch of new Set(handed.map((group) => group.batch))) {
      const groups = handed
        .filter((group) => group.batch === batch)
        .map(({ id, lease }) => ({ id, lease }))
      for (let at = 0; at < groups.length; at += MAX_LEASE)
        await known(async () => {
          const some = groups.slice(at, at + MAX_LEASE)
          if (how === 'takeBack') await service.takeBack(batch, some)
          else await service[how](batch, { groups: some })
        })
    }
  }

  const hold = async (ids: Iterable<string>) => {
    for (const id of ids) await service.keepNote(id, { held_by: 'slime' })
  }
  const release = async (ids: Iterable<string>) => {
    for (const id of ids) await service.keepNote(id, null)
  }

  async function newsOf(batch: string): Promise<News> {
    const progress = await known(async () => service.progress(batch))
    if (!progress) return { events: [{ type: 'lost', batch }], paused: null, ready: 0, more: false }
    const { groups, admission, done, pause } = progress
    const dropped = groups.dropped.map(({ id, verdict }): SlimeEvent => {
      const why = FLAT.has(verdict) ? 'flat' : MACHINERY.has(verdict) ? 'machinery' : 'task'
      return { type: 'dropped', batch, index: indexOf(id), why }
    })
    // What is open in a batch that is over went as stale, or was given up undelivered.
    const over: SlimeEvent[] = done ? [{ type: 'lost', batch }] : []
    return {
      events: [...dropped, ...over],
      paused: pause?.message ?? null,
      ready: groups.ready,
      // One that is held starts no group until some are leased; what it has begun ends.
      more: groups.in_flight > 0 || (groups.finished < groups.total && admission !== 'held'),
    }
  }

  /** Groups that were handed out before their lease ran out are not handed out again. */
  async function leaseOf(run: SlimeRun, batch: string, max: number, form: SlimeForm) {
    for (;;) {
      const { signal } = new AbortController()
      const request = { max, lease_s: LEASE_S, wait_s: 0 }
      const { body, groups: heads } = await service.lease(batch, request, form, signal)
      const handed = heads.map((head) => {
        return { batch, index: indexOf(head.id), id: head.id, lease: head.lease.id }
      })
      const arrived = handed.filter((group) => placeOf(run, group) === null)
      if (arrived.length === 0) return { body, heads, handed }
      await answer('ack', arrived)
      await answer(
        'takeBack',
        handed.filter((group) => !arrived.includes(group)),
      )
    }
  }

  return {
    async submit(request) {
      await service.submit(request)
    },

    async news({ batches }) {
      const all = await Promise.all(batches.map(({ id }) => newsOf(id)))
      return {
        events: all.flatMap(({ events }) => events),
        paused: all.map((one) => one.paused).find((reason) => reason !== null) ?? null,
        ready: all.reduce((sum, { ready }) => sum + ready, 0),
        more: all.some(({ more }) => more),
      }
    },

    async lease(run, room, form) {
      const leased: Leased = { handed: [], bodies: [], figures: [], instances: [] }
      // One lease has no more groups than one body can be made of.
      for (const { id: batch } of run.batches)
        for (;;) {
          const max = Math.min(room - leased.handed.length, MAX_LEASE)
          if (max <= 0) return leased
          const { body, heads, handed } = await leaseOf(run, batch, max, form)
          if (handed.length === 0) break
          leased.bodies.push(body)
          leased.handed.push(...handed)
          leased.instances.push(...heads.map(instanceOf))
          leased.figures.push(
            ...heads.map(({ stats }) => ({ n: stats.scored, mean: stats.mean ?? 0 })),
          )
        }
      return leased
    },

    ack: (handed) => answer('ack', handed),
    nack: (handed) => answer('nack', handed),
    takeBack: (handed) => answer('takeBack', handed),

    async reclaim({ batches, answer }) {
      const kept = answer?.groups.map(({ lease }) => lease) ?? []
      for (const { id } of batches) await known(() => service.reclaim(id, kept))
    },

    hold,
    release,
    async holdAgain({ batches }) {
      const named = new Set(batches.map(({ id }) => id))
      const held = (await service.notes()).filter((name) => name.startsWith(BATCH_PREFIX))
      await release(held.filter((name) => !named.has(name)))
      await hold([...named].filter((id) => !held.includes(id)))
    },

    async cancel({ batches }) {
      for (const { id } of batches) await known(() => service.cancel(id))
    },

    async discard({ batches }) {
      for (const { id } of batches) await known(() => service.discard(id))
    },
  }
}

/** `slime-1.0.g3` is the group at 3 of its batch. */
function indexOf(group: string): number {
  return Number(group.slice(group.lastIndexOf('.g') + 2))
}

/** Null where the server does not know the batch any more. */
async function known<T>(ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask()
  } catch (error) {
    const gone = error instanceof PaddockError && ['not_found', 'gone'].includes(error.code)
    if (gone) return null
    throw error
  }
}
