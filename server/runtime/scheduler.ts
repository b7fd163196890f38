// Decides whose turn it is to start: a bounded number of episodes at once, fair over batches, in order within one.

export interface Scheduler {
  /** Puts one start into its batch's queue. `start` resolves when the slot is free again. */
  enqueue(batch: string, start: () => Promise<void>): void
  /** Forgets what a batch has not started yet. */
  remove(batch: string): void
  /** Nothing starts while paused; what runs goes on. */
  pause(paused: boolean): void
  running(): number
  waiting(): number
  /** Resolves when nothing runs and, unless paused, nothing waits. */
  idle(): Promise<void>
}

/** At most `capacity` starts run at once. Batches take turns: the next start is of the batch that waited longest. */
export function createScheduler(capacity: number): Scheduler {
  /** Batches that have something to start, in the order of their next turn. */
  const queues = new Map<string, (() => Promise<void>)[]>()
  const whenIdle: (() => void)[] = []
  let running = 0
  let paused = false

  function pump(): void {
    while (!paused && running < capacity) {
      const next = queues.entries().next()
      if (next.done) break
      const [batch, queue] = next.value
      const start = queue.shift()
      queues.delete(batch)
      if (queue.length > 0) queues.set(batch, queue)
      if (start) void run(start)
    }
    if (running === 0 && (paused || queues.size === 0))
      for (const resolve of whenIdle.splice(0)) resolve()
  }

  async function run(start: () => Promise<void>): Promise<void> {
    running++
    try {
      await start()
    } finally {
      running--
      pump()
    }
  }

  return {
    enqueue(batch, start) {
      const queue = queues.get(batch)
      if (queue) queue.push(start)
      else queues.set(batch, [start])
      pump()
    },
    remove(batch) {
      queues.delete(batch)
      pump()
    },
    pause(now) {
      paused = now
      pump()
    },
    running: () => running,
    waiting: () => [...queues.values()].reduce((sum, queue) => sum + queue.length, 0),
    idle() {
      return new Promise((resolve) => {
        whenIdle.push(resolve)
        pump()
      })
    },
  }
}
