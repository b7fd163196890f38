// The pushing half of a stream: a batch's events and groups, each only as far as the client's credit goes.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { z } from 'zod'
import type { Outbox } from './outbox.ts'
import type { LeaseAnswer, Service } from './service.ts'
import { createSignal } from './signal.ts'
import { checkResume } from './sse.ts'

export const subscribeSchema = z.strictObject({
  type: z.literal('subscribe'),
  batch: z.string(),
  after: z.int().min(0).default(0),
  events: z.boolean().default(true),
  groups: z.boolean().default(true),
  lease_s: z.number().gt(0).max(86_400).default(60),
  /** `msgpack`: a group comes as a binary frame, the body of a MessagePack lease. */
  encoding: z.enum(['json', 'msgpack']).default('json'),
})
export type Subscribe = z.output<typeof subscribeSchema>

export interface Subscription {
  readonly batch: string
  /** True once `done` was sent, the subscription failed, or `end` was called. */
  readonly ended: boolean
  /** Lets so many more events and groups be pushed. */
  grant(credit: { events: number; groups: number }): void
  end(): void
}

/** Messages that are put out before the thread looks at anything else. */
const EVENTS_PER_READ = 256
/** A waiting lease is asked for anew after this, as an HTTP client would. */
const LEASE_WAIT_S = 20

/**
 * Begins to push; nothing goes out before the first grant. Throws PaddockError `not_found` for an unknown batch, and
 * as `checkResume` does for a place in the log that cannot be resumed from. `tell` reports what fails later.
 */
export function createSubscription(
  service: Service,
  request: Subscribe,
  outbox: Outbox,
  tell: (error: unknown) => Promise<void>,
): Subscription {
  const { batch, lease_s, encoding } = request
  const log = service.events(batch)
  if (request.events) checkResume(log, request.after)

  const credit = { events: 0, groups: 0 }
  const changed = createSignal()
  const gone = new AbortController()
  const unsubscribe = log.subscribe(changed.fire)
  let cursor = request.after

  async function pushEvents(): Promise<void> {
    while (!gone.signal.aborted) {
      // What a slow reader did not fetch in time may be gone by now.
      if (cursor > 0) checkResume(log, cursor)
      const events =
        credit.events > 0 ? log.read(cursor, Math.min(credit.events, EVENTS_PER_READ)) : []
      for (const event of events) {
        cursor = event.n
        credit.events--
        await outbox.send(`{"type":"event","batch":${JSON.stringify(batch)},"event":${event.json}}`)
      }
      if (events.length > 0) {
        // A socket that takes everything at once would else keep the thread until the log is out.
        await nextTurn()
        continue
      }
      if (log.ended && cursor === log.newest) return
      await changed.wait()
    }
  }

  async function pushGroups(): Promise<void> {
    while (!gone.signal.aborted && !log.ended) {
      if (credit.groups === 0) {
        await changed.wait()
        continue
      }
      const lease = { max: 1, lease_s, wait_s: LEASE_WAIT_S }
      const answer = await service.lease(batch, lease, encoding, gone.signal)
      if (answer.groups.length === 0) continue
      credit.groups--
      await outbox.send(encoding === 'msgpack' ? answer.body : groupMessage(answer))
    }
  }

  async function push(): Promise<void> {
    try {
      await Promise.all([request.events && pushEvents(), request.groups && pushGroups()])
      if (!gone.signal.aborted) await outbox.send('{"type":"done"}')
    } catch (error) {
      await tell(error)
    }
    end()
  }

  function end(): void {
    unsubscribe()
    gone.abort()
    changed.fire()
  }

  void push()
  return {
    batch,
    get ended() {
      return gone.signal.aborted
    },
    grant({ events, groups }) {
      credit.events += events
      credit.groups += groups
      changed.fire()
    },
    end,
  }
}

const HEAD = '{"groups":['

/** The one group of a JSON lease, cut out of the answer's text: parsing megabytes of tokens would hold up everyone. */
function groupMessage({ body }: LeaseAnswer): string {
  const text = new TextDecoder().decode(body)
  const end = text.lastIndexOf('],"done":')
  if (!text.startsWith(HEAD) || end === -1) {
    const [group] = (JSON.parse(text) as { groups: unknown[] }).groups
    return JSON.stringify({ type: 'group', group })
  }
  return `{"type":"group","group":${text.slice(HEAD.length, end)}}`
}
