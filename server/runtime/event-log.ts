// A batch's events in memory, numbered from 1 without gaps and bounded: the oldest are dropped first.
import type { BatchEvent, EventLog } from '../service.ts'

export interface WritableEventLog extends EventLog {
  /** Adds an event; `json` is an object's text that does not hold `n` and `at` yet. `at` is unix seconds. */
  append(type: string, json: string, at: number): void
  end(): void
}

/** Events are dropped in runs of this many, so that dropping costs next to nothing an event. */
const DROP = 1024

export function createEventLog(capacity: number): WritableEventLog {
  const listeners = new Set<() => void>()
  let events: BatchEvent[] = []
  let newest = 0
  let ended = false

  const log: WritableEventLog = {
    get oldest() {
      return events[0]?.n ?? 0
    },
    get newest() {
      return newest
    },
    get ended() {
      return ended
    },
    append(type, json, at) {
      newest++
      events.push({
        n: newest,
        type,
        json: `{"n":${newest},"at":${at.toFixed(3)},${json.slice(1)}`,
      })
      if (events.length >= capacity + DROP) events = events.slice(events.length - capacity)
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
