// The thread pool: queued jobs in batches to ready threads, and another thread where one failed.
import { EventEmitter } from 'node:events'
import { type ErrorCode, PaddockError } from '../../../protocol/errors.ts'
import { createJobQueue } from './job-queue.ts'
import type { Job, JobAnswer, JobKind, Jobs } from './jobs.ts'
import { createLane, exitOf, type Lane, type LaneOptions, type WorkerExit } from './lane.ts'
import type { Patience } from './patience.ts'
import type { Spent } from './timed-environment.ts'

export type { WorkerExit } from './lane.ts'

export interface PoolOptions extends LaneOptions {
  /** One more is started for good where jobs wait and each of these has been at one job for seconds. */
  threads: number
}

export interface Pool {
  /**
   * Runs a job on the next ready thread. The input is copied and kept until the answer is here: a job whose thread is
   * lost runs again on another, `TRIES` times in all. Throws PaddockError where the job itself refuses its input, and
   * WorkerLost after the last try. Jobs start in the order of their calls, those that somebody waits for before turns.
   * Where patience ends first, waiting or running, throws GivenUp: a thread that has begun works on for its own limit,
   * and what it answers is dropped.
   */
  run<Kind extends JobKind>(
    kind: Kind,
    input: Jobs[Kind]['in'],
    patience?: Patience,
  ): Promise<Jobs[Kind]['out']>
  stats(): PoolStats
  /** Waits until every thread has loaded; rejects with the reason where one cannot. */
  ready(): Promise<void>
  /** Calls back with what a job spent in its environment. */
  onSpent(listener: (spent: Spent) => void): void
  /** Calls back when a thread is lost. */
  onExit(listener: (exit: WorkerExit) => void): void
  close(): Promise<void>
}

export interface PoolStats {
  threads: number
  busy: number
  starting: number
  queued: number
  /** Seconds since the oldest of them came; 0 where none waits. */
  oldestQueued: number
  /** Seconds spent on jobs so far, by thread; one that was replaced goes on where the lost one ended. */
  busySeconds: number[]
}

/** A job that failed on `TRIES` threads: the fault is the job's or ours, never the policy's. */
export class WorkerLost extends Error {
  readonly exit: WorkerExit
  /** 0 where no thread could be started for it. */
  readonly tries: number

  constructor(exit: WorkerExit, message: string, cause: unknown, tries = 0) {
    super(message, { cause })
    this.name = 'WorkerLost'
    this.exit = exit
    this.tries = tries
  }
}

/** A job that nobody waits for any more. */
export class GivenUp extends Error {
  constructor(kind: JobKind) {
    super(`${kind} was given up before its answer came`)
    this.name = 'GivenUp'
  }
}

/** Tries of one job, each on another thread where there is one. */
const TRIES = 3
/** A hang costs a thread for its whole limit, and a pure job that hung once hangs again. */
const HANG_TRIES = 2
/** Tries to start a thread again in a place where one has run before. */
const RESTARTS = 3
/** Jobs that cross in one message: waking a thread and being woken costs more than a turn on a virtual machine. */
const MAX_BATCH = 8
/** Batches that a thread holds: the one that it works on and the next, so that it never waits for the main loop. */
const MAX_GIVEN = 2
/** Jobs wait so long behind threads that are all at a long job, milliseconds; then a spare thread is worth its memory. */
const SPARE_AFTER_MS = 1500

interface Waiting extends Job {
  /** Threads that it was lost with. From the first on it runs alone, so that no other job is lost with it. */
  tries: number
  givenUp: boolean
  /** When it came, milliseconds. */
  since: number
  /** Where it failed last: another thread is preferred. */
  avoid: Place | null
  resolve: (out: never) => void
  reject: (error: Error) => void
}

interface Place {
  lane: Lane<Waiting>
  state: 'starting' | 'ready' | 'dead'
  /** It has a job that failed before, which runs alone: it is given nothing beside it. */
  reserved: boolean
  /** A thread has run here, so that what it loads can be loaded. */
  hasRun: boolean
  /** Since when it has something to do, milliseconds; null while it has not. */
  busySince: number | null
  /** What it was busy for before. */
  busySeconds: number
}

/** Starts `threads` threads; jobs may be run at once and wait for the first that is ready. */
export function createPool(options: PoolOptions): Pool {
  const queue = createJobQueue<Waiting>()
  const events = new EventEmitter<{ exit: [WorkerExit]; spent: [Spent] }>()
  let closed = false
  /** Why a thread could not be started last. */
  let startFailure: Error | null = null
  const places = Array.from({ length: options.threads }, createPlace)
  const warmed = Promise.all(places.map(start))
  // Whoever calls ready() hears of it; nobody has to.
  warmed.catch(() => {})
  let spareSoon: NodeJS.Timeout | null = null

  function createPlace(): Place {
    const lane = createLane<Waiting>(options, {
      answered(batch, answers) {
        for (const [index, answer] of answers.entries()) {
          if (answer.ok && answer.spent) events.emit('spent', answer.spent)
          settle(batch[index] as Waiting, answer)
        }
        if (lane.given() === 0) rest(place)
      },
      handedBack(jobs) {
        queue.putBack(jobs.filter((waiting) => !waiting.givenUp))
        dispatch()
      },
      hasRoom: () => dispatch(),
      lost(unanswered, failed, error) {
        rest(place)
        lost(place, unanswered, failed, error)
      },
      diedIdle() {
        if (closed) return
        events.emit('exit', 'crash')
        start(place).catch(() => {})
      },
    })
    const place: Place = {
      lane,
      state: 'starting',
      reserved: false,
      hasRun: false,
      busySince: null,
      busySeconds: 0,
    }
    return place
  }

  async function start(place: Place): Promise<void> {
    place.state = 'starting'
    try {
      await startLane(place)
      place.state = 'ready'
      place.hasRun = true
      dispatch()
    } catch (error) {
      place.state = 'dead'
      startFailure = error as Error
      if (!closed) dispatch()
      throw error
    }
  }

  /** A thread may be ended while it loads by what it ran before; what has never loaded is not tried again. */
  async function startLane({ lane, hasRun }: Place): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        return await lane.start()
      } catch (error) {
        if (closed || !hasRun || tries >= RESTARTS) throw error
      }
    }
  }

  /** Its thread has nothing to do. */
  function rest(place: Place): void {
    place.busySeconds += busyFor(place)
    place.busySince = null
    place.reserved = false
  }

  /** No thread can start: what waits cannot ever run. */
  function failAll(cause: Error): void {
    for (const waiting of queue.takeAll())
      waiting.reject(new WorkerLost('crash', `no worker thread starts: ${cause.message}`, cause))
  }

  /** A first batch to every thread before a second to any; of those with as many, the one that has worked least. */
  function dispatch(): void {
    if (startFailure && places.every(({ state }) => state === 'dead')) failAll(startFailure)
    if (queue.size() === 0) return
    const rested = places.toSorted((a, b) => a.busySeconds - b.busySeconds)
    for (let given = 0; given < MAX_GIVEN; given++)
      for (const place of rested) {
        if (queue.size() === 0) return
        if (mayTake(place) && place.lane.given() === given) give(place)
      }
    if (isStuck()) spareSoon ??= setTimeout(startSpare, SPARE_AFTER_MS).unref()
  }

  /** Jobs wait, and each thread is at one that may hang: all would stand still for its whole limit. */
  function isStuck(): boolean {
    const slow = places.every(({ state, lane }) => state === 'ready' && lane.isSlow())
    return slow && places.length === options.threads && queue.size() > 0
  }

  function startSpare(): void {
    spareSoon = null
    if (closed || !isStuck()) return
    const spare = createPlace()
    places.push(spare)
    start(spare).catch(() => {})
  }

  function mayTake({ state, reserved, lane }: Place): boolean {
    return state === 'ready' && !reserved && !lane.isSlow()
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
    place.reserved = first.tries > 0
  }

  /** What this thread may run now. */
  function takeBatch(place: Place): Waiting[] {
    const alive = places.filter(({ state }) => state !== 'dead').length
    const retrying = mayRetry(alive)
    const may = ({ tries, avoid }: Waiting) =>
      tries === 0 || (retrying && !(alive > 1 && avoid === place))
    return queue.take(may, place.lane.given() === 0, places.length, MAX_BATCH)
  }

  /** What failed before never holds the last thread: fresh jobs keep one, or go first where there is only one. */
  function mayRetry(alive: number): boolean {
    if (alive === 1) return !queue.hasFresh()
    return places.filter(({ reserved }) => reserved).length < alive - 1
  }

  /**
   * Replaces the thread and plays its jobs again. Only the one that ran, if one did, has failed: it goes to the back of
   * the queue, or is told to have failed for good.
   */
  function lost(
    place: Place,
    unanswered: readonly Waiting[],
    failed: Waiting | null,
    error: Error,
  ): void {
    if (closed) {
      for (const waiting of unanswered) waiting.reject(error)
      return
    }
    const exit = exitOf(error)
    events.emit('exit', exit)
    queue.putBack(unanswered.filter((waiting) => waiting !== failed && !waiting.givenUp))
    if (failed && !failed.givenUp) tryAgain(failed, place, exit, error)
    start(place).catch(() => {})
    dispatch()
  }

  function tryAgain(failed: Waiting, place: Place, exit: WorkerExit, error: Error): void {
    failed.tries++
    failed.avoid = place
    if (failed.tries < (exit === 'hang_killed' ? HANG_TRIES : TRIES)) {
      queue.push(failed)
      return
    }
    const cause = describe(exit, error, options)
    const message = `${failed.kind} failed on ${failed.tries} threads: ${cause}`
    failed.reject(new WorkerLost(exit, message, error, failed.tries))
  }

  return {
    run(kind, input, patience) {
      if (closed) return Promise.reject(new PaddockError('draining', 'the server is stopping'))
      if (patience?.ended()) return Promise.reject(new GivenUp(kind))
      return new Promise((resolve, reject) => {
        const since = performance.now()
        const waiting = {
          kind,
          input,
          tries: 0,
          givenUp: false,
          since,
          avoid: null,
          resolve,
          reject,
        }
        patience?.onEnd(() => {
          waiting.givenUp = true
          queue.remove(waiting)
          reject(new GivenUp(kind))
        })
        queue.push(waiting)
        dispatch()
      })
    },
    stats: () => ({
      threads: places.length,
      busy: places.filter(({ busySince }) => busySince !== null).length,
      starting: places.filter(({ state }) => state === 'starting').length,
      queued: queue.size(),
      oldestQueued: queue
        .all()
        .reduce((most, { since }) => Math.max(most, (performance.now() - since) / 1000), 0),
      busySeconds: places.map((place) => place.busySeconds + busyFor(place)),
    }),
    async ready() {
      await warmed
    },
    onSpent: (listener) => void events.on('spent', listener),
    onExit: (listener) => void events.on('exit', listener),
    async close() {
      closed = true
      if (spareSoon) clearTimeout(spareSoon)
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

function describe(exit: WorkerExit, error: Error, options: PoolOptions): string {
  if (exit === 'hang_killed')
    return `no answer within ${options.maxTurnSeconds} s (runtime.max_turn_s)`
  if (exit === 'oom') return `out of memory at ${options.heapMb} MB of heap (runtime.heap_mb)`
  return error.message
}
