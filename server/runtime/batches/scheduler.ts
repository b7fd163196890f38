// Decides whose turn it is to start: a bounded number of episodes at once, fair over batches, in order within one.
import type { BatchProgress } from '../../../protocol/batch.ts'

/** One episode that may start. */
export interface Start {
  /** Resolves when the slot is free again. */
  run(): Promise<void>
  /** Whether it would be the first of its group: such a start waits while groups are held. */
  opensGroup(): boolean
}

export type Gate = BatchProgress['admission']

export interface Scheduler {
  /** Puts a start into its batch's queue; `first` in front of it, for groups that are under way. */
  enqueue(batch: string, start: Start, place?: 'first' | 'last'): void
  /** Forgets what a batch has not started yet. */
  remove(batch: string): void
  /** Nothing of any batch starts while paused; what runs goes on. */
  pause(paused: boolean): void
  /** What of one batch may start: everything, only what goes on with a group, or nothing. */
  gate(batch: string, gate: Gate): void
  gateOf(batch: string): Gate
  running(): number
  waiting(): number
  /** Seconds since the oldest start came that waits; 0 where none does. */
  oldest(): number
  /** Resolves when nothing runs and nothing could start. */
  idle(): Promise<void>
}

/** At most `capacity` starts run at once. Batches take turns: the next start is of the batch that waited longest. */
export function createScheduler(capacity: number): Scheduler {
  /** Batches that have something to start, in the order of their next turn. */
  const queues = new Map<string, Start[]>()
  const since = new WeakMap<Start, number>()
  const whenIdle: (() => void)[] = []
  let running = 0
  let paused = false
  /** Batches that are not open. */
  const gates = new Map<string, Gate>()

  /** The next batch whose first start may run now. */
  function next(): [string, Start[]] | undefined {
    if (paused) return undefined
    if (gates.size === 0) return queues.entries().next().value
    return [...queues].find(([batch, [start]]) => {
      const gate = gates.get(batch)
      return gate === undefined || (gate === 'held' && start?.opensGroup() === false)
    })
  }

  function pump(): void {
    let found = next()
    while (found && running < capacity) {
      const [batch, queue] = found
      const start = queue.shift()
      queues.delete(batch)
      if (queue.length > 0) queues.set(batch, queue)
      if (start) void run(start)
      found = next()
    }
    if (running === 0 && !found) for (const resolve of whenIdle.splice(0)) resolve()
  }

  async function run(start: Start): Promise<void> {
    running++
    try {
      await start.run()
    } finally {
      running--
      pump()
    }
  }

  return {
    enqueue(batch, start, place = 'last') {
      since.set(start, performance.now())
      const queue = queues.get(batch)
      if (!queue) queues.set(batch, [start])
      else if (place === 'first') queue.unshift(start)
      else queue.push(start)
      pump()
    },
    remove(batch) {
      queues.delete(batch)
      gates.delete(batch)
      pump()
    },
    pause(now) {
      paused = now
      pump()
    },
    gate(batch, gate) {
      if (gate === 'open') gates.delete(batch)
      else gates.set(batch, gate)
      pump()
    },
    gateOf: (batch) => gates.get(batch) ?? 'open',
    running: () => running,
    waiting: () => [...queues.values()].reduce((sum, queue) => sum + queue.length, 0),
    oldest() {
      const now = performance.now()
      return [...queues.values()]
        .flat()
        .reduce((most, start) => Math.max(most, (now - (since.get(start) ?? now)) / 1000), 0)
    },
    idle() {
      return new Promise((resolve) => {
        whenIdle.push(resolve)
        pump()
      })
    },
  }
}
