// One worker thread and what was given to it: batches of jobs, each job under its own limit; a lost thread is replaced.
import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import { Piscina } from 'piscina'
import { type ErrorCode, PaddockError } from '../../../protocol/errors.ts'
import {
  JOB,
  type Job,
  type JobAnswer,
  type JobKind,
  type LaneSetup,
  type LaneTask,
  LOADING,
  SKIP_TO,
  STARTED_AT,
  type WorkerSetup,
} from './jobs.ts'

export interface LaneOptions extends WorkerSetup {
  /** Longest that one job may run, seconds; then its thread is killed and replaced. */
  maxTurnSeconds: number
  /** Heap of one thread, megabytes. Array buffers are not covered by it. */
  heapMb: number
  /** Longest that one module or the model folders may load, seconds; by default 60. */
  startSeconds?: number
}

/** Of one batch, in its order; null for a job that was left out. */
type Answers = readonly (JobAnswer<JobKind> | null)[]

/** Why a thread was lost. */
export type WorkerExit = 'crash' | 'oom' | 'hang_killed'

export interface LaneHooks<Given extends Job> {
  answered(batch: readonly Given[], answers: readonly JobAnswer<JobKind>[]): void
  /** What stood behind a job that runs long, and will not be run here: give it to another thread. */
  handedBack(jobs: readonly Given[]): void
  /** After an answer: more may be given. */
  hasRoom(): void
  /**
   * The thread is gone and with it all that was not answered. `failed` is the job that it ran; null where it ran none, so
   * that something earlier has ended it. Start it again.
   */
  lost(unanswered: readonly Given[], failed: Given | null, error: Error): void
  /** A thread that had nothing to do has died. Start it again. */
  diedIdle(): void
}

export interface Lane<Given extends Job> {
  /** Resolves when the thread has loaded what it needs; rejects with the reason where it cannot. */
  start(): Promise<void>
  /** Has it run behind what was given before. The inputs are copied now. */
  give(batch: readonly Given[]): void
  /** Batches that were given and not answered. */
  given(): number
  /** Its job runs long: whatever is given now would wait for it. */
  isSlow(): boolean
  close(): Promise<void>
}

/** Loading a tokenizer takes 2 to 3 s on an idle core; a user's modules may take longer. */
const START_SECONDS = 60

/** A job that has run so long lets what stands behind it go elsewhere: most turns take a few milliseconds. */
const SLOW_MS = 500

const fromSource = import.meta.url.endsWith('.ts')
const workerUrl = new URL(`./worker.${fromSource ? 'ts' : 'js'}`, import.meta.url)

/**
 * Jobs go through a port of the thread's own. It takes the next batch from there without waiting for the main loop, whose
 * round takes longer than a batch; piscina, which runs the thread, is told only to work until the port is empty.
 */
export function createLane<Given extends Job>(
  options: LaneOptions,
  hooks: LaneHooks<Given>,
): Lane<Given> {
  const {
    environments,
    models,
    graders = {},
    heapMb,
    maxTurnSeconds,
    startSeconds = START_SECONDS,
  } = options
  const progress = new BigInt64Array(new SharedArrayBuffer(4 * BigInt64Array.BYTES_PER_ELEMENT))
  let piscina = createThread()
  let started = false

  /** A pool of one thread, so that a job can be given to another thread than the one it failed on. */
  function createThread(): Piscina {
    const thread = new Piscina({
      filename: workerUrl.href,
      ...(fromSource && { execArgv: ['--import', 'tsx'] }),
      minThreads: 1,
      maxThreads: 1,
      concurrentTasksPerWorker: 1,
      // With 'sync', what a job throws after its answer is swallowed and the poisoned thread lives on.
      atomics: 'disabled',
      resourceLimits: { maxOldGenerationSizeMb: heapMb },
      workerData: { setup: { environments, models, graders }, progress } satisfies LaneSetup,
    })
    // Without a listener the event would end the process.
    thread.on('error', () => {})
    // Where the thread works, its task fails too, and tells why. Else piscina puts a new one in its place right after this.
    thread.on('workerDestroy', () =>
      queueMicrotask(() => {
        if (thread === piscina && port && !working)
          lose(new Error('the thread died between two jobs'))
      }),
    )
    return thread
  }

  let port: MessagePort | null = null
  /** Given and not answered, the oldest first; `first` is the number of its first job since the thread's start. */
  let batches: { first: number; jobs: readonly Given[]; handedBack: Set<Given> }[] = []
  let jobsGiven = 0
  let batchesGiven = 0
  let working = false
  let slow = false

  /** The thread's task under a limit that begins anew with each job: one timer, whatever the number of jobs. */
  async function run<T>(task: LaneTask, seconds: number, transfer: MessagePort[] = []): Promise<T> {
    const limit = new AbortController()
    Atomics.store(progress, STARTED_AT, process.hrtime.bigint())
    const check = () => {
      const ran = process.hrtime.bigint() - Atomics.load(progress, STARTED_AT)
      const left = seconds * 1000 - Number(ran) / 1e6
      const slowIn = SLOW_MS - Number(ran) / 1e6
      if (slowIn <= 0) handBack()
      if (left <= 0) limit.abort()
      else timer = setTimeout(check, Math.ceil(Math.min(left, slowIn > 0 ? slowIn : SLOW_MS)))
    }
    let timer = setTimeout(check, Math.min(seconds * 1000, SLOW_MS))
    try {
      return await piscina.run(task, { signal: limit.signal, transferList: transfer })
    } finally {
      clearTimeout(timer)
    }
  }

  async function work(): Promise<void> {
    working = true
    try {
      let taken = 0
      while (taken < batchesGiven) taken = await run<number>({ kind: 'work' }, maxTurnSeconds)
      working = false
    } catch (error) {
      working = false
      lose(error as Error)
    }
  }

  /** Lets go of all that has not begun. Of a job that begins at this moment the thread's answer tells whether it did. */
  function handBack(): void {
    slow = batches.length > 0
    Atomics.store(progress, SKIP_TO, BigInt(jobsGiven))
    const begun = Number(Atomics.load(progress, JOB))
    const jobs = batches.flatMap((batch) => {
      const behind = batch.jobs.filter(
        (job, index) => batch.first + index > begun && !batch.handedBack.has(job),
      )
      for (const job of behind) batch.handedBack.add(job)
      return behind
    })
    if (jobs.length > 0) hooks.handedBack(jobs)
  }

  /** What the thread threw beside a job comes after the job's answer, which may still lie in the port. */
  function lose(error: Error): void {
    const dead = port
    port = null
    for (let left = dead && receiveMessageOnPort(dead); left; left = receiveMessageOnPort(dead!))
      takeAnswers(left.message as Answers)
    dead?.close()
    const at = Number(Atomics.load(progress, JOB)) - (batches[0]?.first ?? 0)
    const failed = batches.flatMap(({ jobs }) => jobs)[at] ?? null
    const unanswered = batches.flatMap(({ jobs, handedBack }) =>
      jobs.filter((job) => !handedBack.has(job)),
    )
    batches = []
    const isOurs = failed !== null && unanswered.includes(failed)
    if (unanswered.length > 0) hooks.lost(unanswered, isOurs ? failed : null, error)
    else hooks.diedIdle()
  }

  function takeAnswers(answers: Answers): void {
    const batch = batches.shift()
    if (!batch) return
    slow = false
    const kept = batch.jobs.flatMap((job, index) => {
      const answer = answers[index]
      return answer ? [{ job, answer }] : []
    })
    const skipped = batch.jobs.filter((job, index) => !answers[index] && !batch.handedBack.has(job))
    hooks.answered(
      kept.map(({ job }) => job),
      kept.map(({ answer }) => answer),
    )
    if (skipped.length > 0) hooks.handedBack(skipped)
  }

  /** A thread that ends while it loads says nothing: what it was at stands in the shared memory. */
  function loadFailure(error: Error): PaddockError {
    const at = Number(Atomics.load(progress, LOADING))
    const environment = Object.entries(environments)[at]
    const loaded = environment
      ? `environment ${environment[0]}: ${environment[1]}`
      : at >= 0 && Object.keys(models).length > 0
        ? Object.entries(models)
            .map(([name, folder]) => `backends.${name}.model_dir ${folder}`)
            .join(', ')
        : 'a worker thread'
    const whys = {
      hang_killed: `has not loaded within ${startSeconds} s`,
      oom: `needs more memory to load than ${heapMb} MB of heap: raise runtime.heap_mb`,
      crash: `ended its thread while it was loaded: ${error.message}`,
    }
    return new PaddockError('invalid_config', `${loaded} ${whys[exitOf(error)]}`, { cause: error })
  }

  function listen(mine: MessagePort): void {
    mine.on('message', (answers: Answers) => {
      takeAnswers(answers)
      if (batches.length === 0) mine.unref()
      hooks.hasRoom()
    })
    // A thread without work keeps no process alive.
    mine.unref()
  }

  return {
    async start() {
      // What was thrown leaves piscina's thread alive, with whatever the job did to it.
      if (started) {
        await piscina.destroy()
        piscina = createThread()
      }
      started = true
      const { port1, port2 } = new MessageChannel()
      Atomics.store(progress, JOB, -1n)
      Atomics.store(progress, LOADING, -1n)
      Atomics.store(progress, SKIP_TO, 0n)
      slow = false
      jobsGiven = 0
      batchesGiven = 0
      port = port1
      listen(port1)
      const task: LaneTask = { kind: 'start', port: port2 }
      working = true
      const answer = await run<JobAnswer<'warm'>>(task, startSeconds, [port2])
        .catch((error: Error) => {
          // The place has no thread to lose.
          port1.close()
          port = null
          throw loadFailure(error)
        })
        .finally(() => {
          working = false
        })
      if (answer.ok) return
      throw new PaddockError(answer.code as ErrorCode, answer.message, { path: answer.path })
    },
    give(jobs) {
      port?.postMessage(jobs.map(({ kind, input }) => ({ kind, input })))
      port?.ref()
      batches.push({ first: jobsGiven, jobs, handedBack: new Set() })
      jobsGiven += jobs.length
      batchesGiven++
      if (!working) void work()
    },
    given: () => batches.length,
    isSlow: () => slow,
    async close() {
      port?.close()
      port = null
      await piscina.destroy()
    },
  }
}

/** Why a thread was lost, by the error of the task that it ran. */
export function exitOf(error: Error & { code?: string }): WorkerExit {
  if (error.name === 'AbortError') return 'hang_killed'
  return error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'oom' : 'crash'
}
