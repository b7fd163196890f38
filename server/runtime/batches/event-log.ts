// A batch's events in memory, numbered from 1 without gaps and bounded: the oldest are dropped first.
import type { BatchEvent, EventLog } from '../../service.ts'

export interface WritableEventLog extends EventLog {
  /** Adds an event; `json` is an object's text that does not hold `n` and `at` yet. `at` is unix seconds. */
  append(type: string, json: string, at: number): void
  end(): void
}

/** Events are dropped in runs of this many, so that dropping costs next to nothing an event. */
const DROP = 1024
/** UTF-16 units of event text that one batch keeps: observations may be long. */
const MAX_UNITS = 16 * 2 ** 20

/** Events are numbered from here on for each restart: no log before it was as long. */
const A_LIFE = 2 ** 36

/** `life`: how often the server was restarted. What a log before that held is gone, and its numbers do not come again. */
export function createEventLog(capacity: number, life = 0, maxUnits = MAX_UNITS): WritableEventLog {
  const listeners = new Set<() => void>()
  let events: BatchEvent[] = []
  let units = 0
  const first = life * A_LIFE
  let newest = first
  let ended = false

  /** Down to the newest `capacity` events, and to three quarters of `maxUnits`. */
  function dropOldest(): void {
    let first = Math.max(0, events.length - capacity)
    for (const { json } of events.slice(0, first)) units -= json.length
    while (units > 0.75 * maxUnits && first < events.length - 1)
      units -= events[first++]?.json.length ?? 0
    events = events.slice(first)
  }

  const log: WritableEventLog = {
    get oldest() {
      return events[0]?.n ?? (first > 0 ? newest + 1 : 0)
    },
    get newest() {
      return newest
    },
    get ended() {
      return ended
    },
    append(type, json, at) {
      newest++
      const text = `{"n":${newest},"at":${at.toFixed(3)},${json.slice(1)}`
      events.push({ n: newest, type, json: text })
      units += text.length
      if (events.length >= capacity + DROP || units >= maxUnits) dropOldest()
      for (const listener of listeners) listener()
    },
    end() {
      ended = true
      for (const listener of listeners) listener()
    },
    read(after, limit) {
      const first = Math.max(0, after - log.oldest + 1)
      return events.slice(first, first + limit)
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
  return log
}
