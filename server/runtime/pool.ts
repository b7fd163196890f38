// The thread pool: queued jobs in batches to ready threads, and another thread where one failed.
import { EventEmitter } from 'node:events'
import { type ErrorCode, PaddockError } from '../../protocol/errors.ts'
import type { Job, JobAnswer, JobKind, Jobs } from './jobs.ts'
import { createLane, type Lane, type LaneOptions, type WorkerExit } from './lane.ts'

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
/** Jobs that cross in one message: waking a thread and being woken costs more than a turn on a virtual machine. */
const MAX_BATCH = 8
/** Batches that a thread holds: the one that it works on and the next, so that it never waits for the main loop. */
const MAX_GIVEN = 2

interface Waiting extends Job {
  tries: number
  /** Its thread was lost before: it runs alone, so that no other job is lost with it again. */
  alone: boolean
  /** Where it failed last: another thread is preferred. */
  avoid: Place | null
  resolve: (out: never) => void
  reject: (error: Error) => void
}

interface Place {
  lane: Lane<Waiting>
  state: 'starting' | 'ready' | 'dead'
  /** It has a job that runs alone, and is given nothing beside it. */
  reserved: boolean
  /** Since when it has something to do, milliseconds; null while it has not. */
  busySince: number | null
}

/** Starts `threads` threads; jobs may be run at once and wait for the first that is ready. */
export function createPool(options: PoolOptions): Pool {
  const queue: Waiting[] = []
  const exits = new EventEmitter<{ exit: [WorkerExit] }>()
  let busySeconds = 0
  let closed = false
  /** Why a thread could not be started last. */
  let startFailure: Error | null = null
  const places = Array.from({ length: options.threads }, createPlace)
  const warmed = Promise.all(places.map(start))
  // Whoever calls ready() hears of it; nobody has to.
  warmed.catch(() => {})

  function createPlace(): Place {
    const lane = createLane<Waiting>(options, {
      answered(batch, answers) {
        for (const [index, answer] of answers.entries()) settle(batch[index] as Waiting, answer)
        if (lane.given() === 0) rest(place)
        dispatch()
      },
      lost(unanswered, failed, error) {
        rest(place)
        lost(place, unanswered, failed, error)
      },
      diedIdle() {
        if (closed) return
        exits.emit('exit', 'crash')
        start(place).catch(() => {})
      },
    })
    const place: Place = { lane, state: 'starting', reserved: false, busySince: null }
    return place
  }

  async function start(place: Place): Promise<void> {
    place.state = 'starting'
    try {
      await place.lane.start()
      place.state = 'ready'
      dispatch()
    } catch (error) {
      place.state = 'dead'
      startFailure = error as Error
      if (!closed) dispatch()
      throw error
    }
  }

  /** Its thread has nothing to do. */
  function rest(place: Place): void {
    busySeconds += busyFor(place)
    place.busySince = null
    place.reserved = false
  }

  /** No thread can start: what waits cannot ever run. */
  function failAll(cause: Error): void {
    for (const waiting of queue.splice(0))
      waiting.reject(new WorkerLost('crash', `no worker thread starts: ${cause.message}`, cause))
  }

  /** A first batch to every thread before a second to any. */
  function dispatch(): void {
    if (startFailure && places.every(({ state }) => state === 'dead')) failAll(startFailure)
    for (let given = 0; given < MAX_GIVEN; given++)
      for (const place of places) {
        if (queue.length === 0) return
        if (place.state === 'ready' && !place.reserved && place.lane.given() === given) give(place)
      }
  }

  function give(place: Place): void {
    const batch = takeBatch(place)
    const [first] = batch
    if (!first) return
    try {
      place.lane.give(batch)
    } catch (error) {
      // An input that cannot be copied to a thread.
      for (const waiting of batch) waiting.reject(error as Error)
      return
    }
    place.busySince ??= performance.now()
    place.reserved = first.alone
  }

  /** The first job that this thread may run now, and those right behind it that may share its batch. */
  function takeBatch(place: Place): Waiting[] {
    const other = places.some((one) => one !== place && one.state !== 'dead')
    const at = queue.findIndex(({ avoid }) => !(other && avoid === place))
    if (at < 0) return []
    if (queue[at]?.alone) return place.lane.given() === 0 ? queue.splice(at, 1) : []
    // No thread takes what another could begin with at once.
    const most = Math.min(MAX_BATCH, Math.ceil(queue.length / places.length))
    let count = 1
    while (count < most && queue[at + count]?.alone === false) count++
    return queue.splice(at, count)
  }

  /** Replaces the thread and plays its jobs again, elsewhere and each alone. Only the one that ran counts a try. */
  function lost(place: Place, unanswered: readonly Waiting[], failed: Waiting, error: Error): void {
    if (closed) {
      for (const waiting of unanswered) waiting.reject(error)
      return
    }
    const exit = exitOf(error)
    exits.emit('exit', exit)
    failed.tries++
    failed.avoid = place
    if (failed.tries >= TRIES) {
      const message = `${failed.kind} failed on ${TRIES} threads: ${describe(exit, error, options)}`
      failed.reject(new WorkerLost(exit, message, error))
    }
    const again = unanswered.filter(({ tries }) => tries < TRIES)
    for (const waiting of again) waiting.alone = true
    queue.unshift(...again)
    start(place).catch(() => {})
    dispatch()
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
      busy: places.filter(({ busySince }) => busySince !== null).length,
      starting: places.filter(({ state }) => state === 'starting').length,
      queued: queue.length,
      busySeconds: places.reduce((sum, place) => sum + busyFor(place), busySeconds),
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

/** Seconds since it was last without work. */
function busyFor({ busySince }: Place): number {
  return busySince === null ? 0 : (performance.now() - busySince) / 1000
}

function settle(waiting: Waiting, answer: JobAnswer<JobKind>): void {
  if (answer.ok) waiting.resolve(answer.out as never)
  else waiting.reject(new PaddockError(answer.code as ErrorCode, answer.message, answer))
}

function exitOf(error: Error & { code?: string }): WorkerExit {
  if (error.name === 'AbortError') return 'hang_killed'
  return error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'oom' : 'crash'
}

function describe(exit: WorkerExit, error: Error, options: PoolOptions): string {
  if (exit === 'hang_killed') return `no answer within ${options.maxTurnSeconds} s`
  if (exit === 'oom') return `out of memory at ${options.heapMb} MB of heap`
  return error.message
}
