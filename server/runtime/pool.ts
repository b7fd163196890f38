// The thread pool: queued jobs in batches to ready threads, and another thread where one failed.
import { EventEmitter } from 'node:events'
import { type ErrorCode, PaddockError } from '../../protocol/errors.ts'
import type { Job, JobAnswer, JobKind, Jobs } from './jobs.ts'
import {
  describeExit,
  exitOf,
  type Lane,
  type LaneOptions,
  startLane,
  type WorkerExit,
} from './lane.ts'

export type { WorkerExit } from './lane.ts'

export interface PoolOptions extends LaneOptions {
  threads: number
}

export interface Pool {
  /**
   * Runs a job on the next ready thread. The input is copied and kept until the answer is here: a job whose thread is
   * lost runs again on another, `TRIES` times in all. Throws PaddockError where the job itself refuses its input, and
   * WorkerLost after the last try. Jobs start in the order of their calls.
   */
  run<Kind extends JobKind>(kind: Kind, input: Jobs[Kind]['in']): Promise<Jobs[Kind]['out']>
  stats(): PoolStats
  /** Waits until every thread has loaded; rejects with the reason where one cannot. */
  ready(): Promise<void>
  /** Calls back when a thread is lost. */
  onExit(listener: (exit: WorkerExit) => void): void
  close(): Promise<void>
}

export interface PoolStats {
  threads: number
  busy: number
  starting: number
  queued: number
  /** Thread-seconds spent on jobs so far. */
  busySeconds: number
}

/** A job that failed on `TRIES` threads: the fault is the job's or ours, never the policy's. */
export class WorkerLost extends Error {
  readonly exit: WorkerExit

  constructor(exit: WorkerExit, message: string, cause: unknown) {
    super(message, { cause })
    this.name = 'WorkerLost'
    this.exit = exit
  }
}

/** Tries of one job, each on another thread where there is one. */
const TRIES = 3
/**
 * Turns handed to a thread in one message. Waking a thread and being woken costs up to a millisecond on a virtual
 * machine, more than a turn; eight turns keep a thread busy for longer than that, and nobody waits long for the eighth.
 */
const MAX_BATCH = 8
/** What is short enough to share a batch. */
const BATCHED: ReadonlySet<JobKind> = new Set(['begin', 'advance', 'conclude'])

interface Place {
  lane: Lane
  state: 'starting' | 'idle' | 'busy' | 'dead'
}

interface Waiting extends Job {
  tries: number
  /** Its thread was lost before: it runs alone, so that no other job is lost with it again. */
  alone: boolean
  /** Where it failed last: another thread is preferred. */
  avoid: Place | null
  resolve: (out: never) => void
  reject: (error: Error) => void
}

/** Starts `threads` threads; jobs may be run at once and wait for the first that is ready. */
export function createPool(options: PoolOptions): Pool {
  const queue: Waiting[] = []
  const exits = new EventEmitter<{ exit: [WorkerExit] }>()
  let busySeconds = 0
  let closed = false
  const places = Array.from(
    { length: options.threads },
    (): Place => ({
      lane: startLane(options, () => exits.emit('exit', 'crash')),
      state: 'starting',
    }),
  )
  const warmed = Promise.all(places.map(warm))
  // Whoever calls ready() hears of it; nobody has to.
  warmed.catch(() => {})

  async function warm(place: Place): Promise<void> {
    place.state = 'starting'
    try {
      await place.lane.warm()
      place.state = 'idle'
      dispatch()
    } catch (error) {
      place.state = 'dead'
      if (!closed && places.every((one) => one.state === 'dead')) failAll(error as Error)
      throw error
    }
  }

  /** No thread can start: what waits cannot ever run. */
  function failAll(cause: Error): void {
    for (const waiting of queue.splice(0))
      waiting.reject(new WorkerLost('crash', `no worker thread starts: ${cause.message}`, cause))
  }

  function dispatch(): void {
    for (const place of places) {
      if (place.state !== 'idle') continue
      const batch = takeBatch(place)
      if (batch.length > 0) void work(place, batch)
    }
  }

  /** The first job that this thread may run, and those right behind it that may share its batch. */
  function takeBatch(place: Place): Waiting[] {
    const other = places.some((one) => one !== place && one.state !== 'dead')
    const fits = (waiting: Waiting) => !(other && waiting.avoid === place)
    const at = queue.findIndex(fits)
    if (at < 0) return []
    // No thread takes what another could begin with at once.
    const most = Math.min(MAX_BATCH, Math.ceil(queue.length / places.length))
    let count = 1
    if (mayShare(queue[at])) while (count < most && mayShare(queue[at + count])) count++
    return queue.splice(at, count)
  }

  async function work(place: Place, batch: Waiting[]): Promise<void> {
    const started = performance.now()
    place.state = 'busy'
    try {
      const answers = await place.lane.run(batch.map(({ kind, input }) => ({ kind, input })))
      place.state = 'idle'
      for (const [index, answer] of answers.entries()) settle(batch[index] as Waiting, answer)
    } catch (error) {
      lost(place, batch, error as Error)
    }
    busySeconds += (performance.now() - started) / 1000
    dispatch()
  }

  /** The thread failed: replace it, and play the jobs again, elsewhere and each alone. Only the one that ran counts a try. */
  function lost(place: Place, batch: Waiting[], error: Error): void {
    if (closed) {
      for (const waiting of batch) waiting.reject(error)
      return
    }
    const exit = exitOf(error)
    exits.emit('exit', exit)
    const failed = batch[place.lane.running()]
    if (failed) Object.assign(failed, { tries: failed.tries + 1, avoid: place })
    const again = batch.filter((waiting) => waiting.tries < TRIES)
    for (const waiting of again) waiting.alone = true
    queue.unshift(...again)
    if (failed && failed.tries >= TRIES) {
      const message = `${failed.kind} failed on ${TRIES} threads: ${describeExit(exit, error, options)}`
      failed.reject(new WorkerLost(exit, message, error))
    }
    warm(place).catch(() => {})
  }

  return {
    run(kind, input) {
      if (closed) return Promise.reject(new PaddockError('draining', 'the server is stopping'))
      return new Promise((resolve, reject) => {
        queue.push({ kind, input, tries: 0, alone: false, avoid: null, resolve, reject })
        dispatch()
      })
    },
    stats: () => ({
      threads: places.length,
      busy: places.filter(({ state }) => state === 'busy').length,
      starting: places.filter(({ state }) => state === 'starting').length,
      queued: queue.length,
      busySeconds,
    }),
    async ready() {
      await warmed
    },
    onExit: (listener) => void exits.on('exit', listener),
    async close() {
      closed = true
      failAll(new Error('the pool is closed'))
      await Promise.all(places.map(({ lane }) => lane.close()))
    },
  }
}

function mayShare(waiting: Waiting | undefined): boolean {
  return waiting !== undefined && !waiting.alone && BATCHED.has(waiting.kind)
}

function settle(waiting: Waiting, answer: JobAnswer<JobKind>): void {
  if (answer.ok) waiting.resolve(answer.out as never)
  else waiting.reject(new PaddockError(answer.code as ErrorCode, answer.message, answer))
}
