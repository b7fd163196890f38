// One worker thread: it answers batches of jobs, each job under its own limit, and is replaced when it is lost.
import { Piscina } from 'piscina'
import type { ErrorCode } from '../../protocol/errors.ts'
import { PaddockError } from '../../protocol/errors.ts'
import { type Job, type JobAnswer, type JobKind, PROGRESS, type WorkerSetup } from './jobs.ts'

export interface LaneOptions extends WorkerSetup {
  /** Longest that one job may run, seconds; then its thread is killed and replaced. */
  maxTurnSeconds: number
  /** Heap of one thread, megabytes. Array buffers are not covered by it. */
  heapMb: number
}

/** Why a thread was lost. */
export type WorkerExit = 'crash' | 'oom' | 'hang_killed'

export interface Lane {
  /** Resolves when the thread has loaded what it needs; rejects with the reason where it cannot. */
  warm(): Promise<void>
  /** Runs jobs one after the other. Rejects where the thread is lost; `running()` is then the job it failed under. */
  run(jobs: readonly Job[]): Promise<JobAnswer<JobKind>[]>
  /** Place in its batch of the job that the thread began last. */
  running(): number
  close(): Promise<void>
}

/** Loading a tokenizer takes 2 to 3 s on an idle core; a user's modules may take longer. */
const START_SECONDS = 60
/**
 * Room for short-lived objects, megabytes. A turn leaves a few hundred KB of them; in V8's own 16 MB they are
 * collected every few dozen turns, and each collection copies what a turn under way holds.
 */
const YOUNG_GENERATION_MB = 64

const fromSource = import.meta.url.endsWith('.ts')
const workerUrl = new URL(`./worker.${fromSource ? 'ts' : 'js'}`, import.meta.url)

/** Starts a thread. `onLateExit` hears of one that dies between its jobs, which is replaced too. */
export function startLane(options: LaneOptions, onLateExit: () => void): Lane {
  const { environments, models, heapMb, maxTurnSeconds } = options
  const progress = new BigInt64Array(new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT))
  const setup: WorkerSetup = { environments, models }
  // A pool of one thread, so that a job can be given to another thread than the one it failed on.
  const piscina = new Piscina({
    filename: workerUrl.href,
    ...(fromSource && { execArgv: ['--import', 'tsx'] }),
    minThreads: 1,
    maxThreads: 1,
    concurrentTasksPerWorker: 1,
    // With 'sync', what a job throws after its answer is swallowed and the poisoned thread lives on.
    atomics: 'disabled',
    resourceLimits: {
      maxOldGenerationSizeMb: heapMb,
      maxYoungGenerationSizeMb: YOUNG_GENERATION_MB,
    },
    workerData: { setup, progress },
  })
  // Without a listener the event would end the process.
  piscina.on('error', onLateExit)

  /** One timer a batch: where the job that runs has begun since, it is given what is left of its own limit. */
  async function run(jobs: readonly Job[], seconds: number): Promise<JobAnswer<JobKind>[]> {
    const limit = new AbortController()
    progress[PROGRESS.index] = 0n
    progress[PROGRESS.startedAt] = process.hrtime.bigint()
    let timer = setTimeout(check, seconds * 1000)
    function check(): void {
      const ran = process.hrtime.bigint() - Atomics.load(progress, PROGRESS.startedAt)
      const left = seconds * 1000 - Number(ran) / 1e6
      if (left <= 0) limit.abort()
      else timer = setTimeout(check, Math.ceil(left))
    }
    try {
      return await piscina.run(jobs, { signal: limit.signal })
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    async warm() {
      const [answer] = await run([{ kind: 'warm', input: null }], START_SECONDS)
      if (answer?.ok) return
      throw new PaddockError((answer?.code ?? 'internal') as ErrorCode, answer?.message ?? '', {
        path: answer?.path,
      })
    },
    run: (jobs) => run(jobs, maxTurnSeconds),
    running: () => Number(Atomics.load(progress, PROGRESS.index)),
    close: () => piscina.destroy(),
  }
}

export function exitOf(error: Error & { code?: string }): WorkerExit {
  if (error.name === 'AbortError') return 'hang_killed'
  return error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'oom' : 'crash'
}

export function describeExit(exit: WorkerExit, error: Error, options: LaneOptions): string {
  if (exit === 'hang_killed') return `no answer within ${options.maxTurnSeconds} s`
  if (exit === 'oom') return `out of memory at ${options.heapMb} MB of heap`
  return error.message
}
