// A batch's events as server-sent events: resumable by number, at the pace of the reader, bounded by what the log keeps.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { PaddockError } from '../protocol/errors.ts'
import { httpError } from './problems.ts'
import type { BatchEvent, EventLog } from './service.ts'

/** Events of one write. A reader that stops costs these and the socket's buffer, nothing more. */
const EVENTS_PER_WRITE = 256

/**
 * Refuses a place in the log from which no gapless reading is possible: one of the future (400), one whose events are
 * dropped (410). From 0 means from the oldest that is kept.
 */
export function checkResume(log: EventLog, after: number): void {
  if (after > log.newest)
    throw new PaddockError(
      'invalid_request',
      `after ${after}: expected 0 to ${log.newest}, the newest event of this batch`,
      { path: 'after' },
    )
  if (isExpired(log, after))
    throw httpError(
      410,
      `the events after ${after} up to ${log.oldest - 1} are no longer kept: resume after ${log.oldest - 1}, or with after=0, and take the gap into account`,
    )
}

/** True where the event after `after` has been dropped; 0 asks for whatever is kept. */
function isExpired(log: EventLog, after: number): boolean {
  return after > 0 && after < log.oldest - 1
}

/**
 * The stream of the events after `after`. It ends when the log has ended, when `closing` aborts, or after an `expired` event (without id)
 * where the reader was so slow that its next event is gone. Heartbeats are comments, so that every id is a real event.
 */
export function eventStream(
  log: EventLog,
  after: number,
  closing: AbortSignal,
  heartbeatMs: number,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const gone = new AbortController()
  let cursor = after
  return new ReadableStream(
    {
      async pull(controller) {
        for (;;) {
          if (isExpired(log, cursor)) {
            controller.enqueue(encoder.encode(expired(log, cursor)))
            return controller.close()
          }
          const events = log.read(cursor, EVENTS_PER_WRITE)
          if (events.length > 0) {
            cursor = events.at(-1)!.n
            // A socket that takes everything at once would else keep the thread until the log is out.
            await nextTurn()
            return controller.enqueue(encoder.encode(events.map(frame).join('')))
          }
          if (log.ended || closing.aborted) return controller.close()
          const woken = await nextAppend(log, heartbeatMs, [closing, gone.signal])
          if (gone.signal.aborted) return
          if (closing.aborted) continue
          if (!woken) return controller.enqueue(encoder.encode(': heartbeat\n\n'))
        }
      },
      cancel() {
        gone.abort()
      },
    },
    // Nothing is read from the log before the socket takes it.
    { highWaterMark: 0 },
  )
}

/** Resolves with true at the next append or end of the log, with false after `ms` or when one of `signals` aborts. */
function nextAppend(log: EventLog, ms: number, signals: AbortSignal[]): Promise<boolean> {
  return new Promise((resolve) => {
    const finish = (woken: boolean) => {
      clearTimeout(timer)
      for (const signal of signals) signal.removeEventListener('abort', onAbort)
      unsubscribe()
      resolve(woken)
    }
    const onAbort = () => finish(false)
    const timer = setTimeout(finish, ms, false)
    const unsubscribe = log.subscribe(() => finish(true))
    for (const signal of signals) signal.addEventListener('abort', onAbort)
  })
}

function frame({ n, type, json }: BatchEvent): string {
  return `id: ${n}\nevent: ${type}\ndata: ${json}\n\n`
}

function expired(log: EventLog, after: number): string {
  const data = { type: 'expired', after, oldest: log.oldest, newest: log.newest }
  return `event: expired\ndata: ${JSON.stringify(data)}\n\n`
}
