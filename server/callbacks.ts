// Groups of a batch posted to its callback as they get ready: leased, told until they are taken, acknowledged.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { BatchCallback } from '../protocol/batch.ts'
import { PaddockError } from '../protocol/errors.ts'
import type { JsonObject } from '../protocol/json.ts'
import type { CallbackSender } from './callback-sender.ts'
import type { LeaseAnswer, Service } from './service.ts'

/** How long a loop waits for a group at once. */
const WAIT_S = 60
/** After a group that could not be leased or answered for: what was wrong may pass, and nobody else tells of it. */
const PAUSE_MS = 5000

const PREFIX = 'callback-'
const noteOf = (batch: string) => `${PREFIX}${batch}`

/**
 * The service with callbacks: `submit` throws `invalid_request` for a URL that may not be called. A group that is not
 * taken within its lease is delivered again, as to a trainer that leases; so it goes on after a restart.
 */
export function withCallbacks(
  service: Service,
  sender: CallbackSender,
  closing: AbortSignal,
  onFailure: (batch: string, reason: string) => void,
  pauseMs = PAUSE_MS,
): Service {
  const followed = new Set<string>()

  function follow(batch: string, callback: BatchCallback): void {
    if (followed.has(batch)) return
    followed.add(batch)
    deliver(batch, callback)
      .catch(async (error: Error) => {
        // Only what is done is ever forgotten: there is nothing left to tell.
        if (!isGone(error)) throw error
        await service.keepNote(noteOf(batch), null)
      })
      .catch((error: Error) => onFailure(batch, error.message))
      .finally(() => followed.delete(batch))
  }

  async function deliver(batch: string, callback: BatchCallback): Promise<void> {
    while (!closing.aborted) {
      if (!(await service.waitReady(batch, WAIT_S, closing))) {
        if (service.progress(batch).done) break
        continue
      }
      try {
        await deliverNext(batch, callback)
      } catch (error) {
        if (isGone(error as Error) || closing.aborted) throw error
        onFailure(batch, (error as Error).message)
        await sleep(pauseMs, null, { ref: false, signal: closing }).catch(() => {})
      }
    }
    if (!closing.aborted) await service.keepNote(noteOf(batch), null)
  }

  /** Leased once it has a place: what waits for one would use up its lease, and its deliveries, with nobody having heard of it. */
  async function deliverNext(batch: string, { url, encoding, lease_s }: BatchCallback) {
    let held: Promise<LeaseAnswer> | null = null
    let until = Number.POSITIVE_INFINITY
    const lease = async () => {
      const request = { max: 1, lease_s, wait_s: 0 }
      const answer = await service.lease(batch, request, encoding, closing, 'callback')
      until = performance.now() + lease_s * 1000
      return answer
    }
    const taken = await sender.send(url, {
      async body() {
        held ??= lease()
        // Where it failed there is nothing to post, and the reason is thrown below.
        const answer = await held.catch(() => null)
        return answer === null || answer.groups.length === 0 ? null : answer.body
      },
      contentType: `application/${encoding}`,
      isTaken: (status) => status >= 200 && status < 300,
      leftMs: () => until - performance.now(),
      onFailure: (reason) => onFailure(batch, reason),
    })
    if (!held) return
    const { groups } = await (held as Promise<LeaseAnswer>)
    if (groups.length === 0) return
    const leases = groups.map(({ id, lease }) => ({ id, lease: lease.id }))
    if (taken) await service.ack(batch, { groups: leases })
    // After a restart it need not wait until this lease has run out.
    else if (closing.aborted) await service.nack(batch, { groups: leases })
  }

  /** Callbacks of batches that are not done are made again; the others are over, or their batch never came. */
  async function findAgain(): Promise<void> {
    const open = new Set(service.batches().flatMap(({ id, done }) => (done ? [] : [id])))
    for (const name of await service.notes()) {
      if (!name.startsWith(PREFIX)) continue
      const id = name.slice(PREFIX.length)
      const note = open.has(id) ? await service.note(name) : null
      if (note) follow(id, note as unknown as BatchCallback)
      else await service.keepNote(name, null)
    }
  }
  const found = findAgain().catch((error: Error) => onFailure('', error.message))

  return {
    ...service,
    async submit(request) {
      const { callback } = request
      if (!callback) return service.submit(request)
      sender.check(callback.url, 'callback.url')
      await found
      const id = request.id ?? `b-${randomUUID()}`
      const note = noteOf(id)
      // Before the batch: a crash between the two leaves a note of nothing, and no batch that nobody is told of.
      const known = await service.note(note)
      if (!known) await service.keepNote(note, callback as unknown as JsonObject)
      try {
        const accepted = await service.submit({ ...request, id })
        if (!service.progress(id).done) follow(id, callback)
        return accepted
      } catch (error) {
        if (!known) await service.keepNote(note, null)
        throw error
      }
    },
  }
}

function isGone(error: Error): boolean {
  return error instanceof PaddockError && error.code === 'gone'
}
