// The thread pool: one turn per ready thread, a limit that starts with the turn, and another thread where one failed.
import { EventEmitter } from 'node:events'
import { Piscina } from 'piscina'
import { type ErrorCode, PaddockError } from '../../protocol/errors.ts'
import type { JobAnswer, JobKind, Jobs, WorkerSetup } from './jobs.ts'

export interface PoolOptions extends WorkerSetup {
  threads: number
  /** Longest that one job may run, seconds; then its thread is killed and replaced. */
  maxTurnSeconds: number
  /** Heap of one thread, megabytes. Array buffers are not covered by it. */
  heapMb: number
}

/** Why a thread was lost. */
export type WorkerExit = 'crash' | 'oom' | 'hang_killed'

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
/** Loading a tokenizer takes 2 to 3 s on an idle core; a user's modules may take longer. */
const START_SECONDS = 60

interface Lane {
  piscina: Piscina
  state: 'starting' | 'idle' | 'busy' | 'dead'
}

interface Waiting {
  kind: JobKind
  input: unknown
  tries: number
  /** The lane on which it failed last: another one is preferred. */
  avoid: Lane | null
  resolve: (out: never) => void
  reject: (error: Error) => void
}

const fromSource = import.meta.url.endsWith('.ts')
const workerUrl = new URL(`./worker.${fromSource ? 'ts' : 'js'}`, import.meta.url)

/** Starts `threads` threads; jobs may be run at once and wait for the first that is ready. */
export function createPool(options: PoolOptions): Pool {
  const queue: Waiting[] = []
  const exits = new EventEmitter<{ exit: [WorkerExit] }>()
  let busySeconds = 0
  let closed = false
  const lanes = Array.from({ length: options.threads }, () =>
    startLane(options, () => exits.emit('exit', 'crash')),
  )
  const warmed = Promise.all(lanes.map(warm))
  // Whoever calls ready() hears of it; nobody has to.
  warmed.catch(() => {})

  async function warm(lane: Lane): Promise<void> {
    lane.state = 'starting'
    try {
      const answer: JobAnswer<'warm'> = await lane.piscina.run(
        { kind: 'warm', input: null },
        { signal: AbortSignal.timeout(START_SECONDS * 1000) },
      )
      if (!answer.ok) throw new PaddockError(answer.code as ErrorCode, answer.message, answer)
      lane.state = 'idle'
      dispatch()
    } catch (error) {
      lane.state = 'dead'
      if (!closed && lanes.every((one) => one.state === 'dead')) failAll(error as Error)
      throw error
    }
  }

  /** No thread can start: what waits cannot ever run. */
  function failAll(cause: Error): void {
    for (const waiting of queue.splice(0))
      waiting.reject(new WorkerLost('crash', `no worker thread starts: ${cause.message}`, cause))
  }

  function dispatch(): void {
    for (const lane of lanes) {
      if (lane.state !== 'idle' || queue.length === 0) continue
      const other = lanes.some((one) => one !== lane && one.state !== 'dead')
      const at = queue.findIndex((waiting) => !(other && waiting.avoid === lane))
      const [waiting] = at < 0 ? [] : queue.splice(at, 1)
      if (waiting) void work(lane, waiting)
    }
  }

  async function work(lane: Lane, waiting: Waiting): Promise<void> {
    const { kind, input } = waiting
    const signal = AbortSignal.timeout(Math.ceil(options.maxTurnSeconds * 1000))
    const started = performance.now()
    lane.state = 'busy'
    try {
      const answer: JobAnswer<JobKind> = await lane.piscina.run({ kind, input }, { signal })
      lane.state = 'idle'
      if (answer.ok) waiting.resolve(answer.out as never)
      else waiting.reject(new PaddockError(answer.code as ErrorCode, answer.message, answer))
    } catch (error) {
      lost(lane, waiting, error as Error)
    }
    busySeconds += (performance.now() - started) / 1000
    dispatch()
  }

  /** The thread failed under the job: replace what was lost, and play the job again elsewhere. */
  function lost(lane: Lane, waiting: Waiting, error: Error): void {
    if (closed) {
      waiting.reject(error)
      return
    }
    const exit = exitOf(error)
    exits.emit('exit', exit)
    waiting.tries++
    if (waiting.tries >= TRIES) {
      const message = `${waiting.kind} failed on ${TRIES} threads: ${describe(exit, error, options)}`
      waiting.reject(new WorkerLost(exit, message, error))
    } else {
      waiting.avoid = lane
      queue.unshift(waiting)
    }
    warm(lane).catch(() => {})
  }

  return {
    run(kind, input) {
      if (closed) return Promise.reject(new PaddockError('draining', 'the server is stopping'))
      return new Promise((resolve, reject) => {
        queue.push({ kind, input, tries: 0, avoid: null, resolve, reject })
        dispatch()
      })
    },
    stats: () => ({
      threads: lanes.length,
      busy: lanes.filter((lane) => lane.state === 'busy').length,
      starting: lanes.filter((lane) => lane.state === 'starting').length,
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
      await Promise.all(lanes.map((lane) => lane.piscina.destroy()))
    },
  }
}

/** A pool of one thread each, so that a job can be given to another thread than the one it failed on. */
function startLane(options: PoolOptions, onLateExit: () => void): Lane {
  const { environments, models, heapMb } = options
  const piscina = new Piscina({
    filename: workerUrl.href,
    ...(fromSource && { execArgv: ['--import', 'tsx'] }),
    minThreads: 1,
    maxThreads: 1,
    concurrentTasksPerWorker: 1,
    // With 'sync', what a job throws after its answer is swallowed and the poisoned thread lives on.
    atomics: 'disabled',
    resourceLimits: { maxOldGenerationSizeMb: heapMb },
    workerData: { setup: { environments, models } satisfies WorkerSetup },
  })
  // A thread that dies between jobs is replaced by piscina; without a listener the event would end the process.
  piscina.on('error', onLateExit)
  return { piscina, state: 'starting' }
}

function exitOf(error: Error & { code?: string }): WorkerExit {
  if (error.name === 'AbortError' || error.name === 'TimeoutError') return 'hang_killed'
  return error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'oom' : 'crash'
}

function describe(exit: WorkerExit, error: Error, options: PoolOptions): string {
  if (exit === 'hang_killed') return `no answer within ${options.maxTurnSeconds} s`
  if (exit === 'oom') return `out of memory at ${options.heapMb} MB of heap`
  return error.message
}
