// A custom grader's thread as its two hosts start it: what it is given, what it answers, and its limits.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { type MessagePort, Worker } from 'node:worker_threads'
import { fromSource } from '../../from-source.ts'

/** A grader that a pack registers: its text and the SHA-256 of it. */
export interface GraderSource {
  source: string
  hash: string
}

export interface GraderSetup extends GraderSource {
  port: MessagePort
  /** Grows by one with each answer, for a host that waits without a loop; null for one that listens. */
  signal: Int32Array | null
}

/** The first answer says that the module is loaded. */
export type GraderAnswer = { ok: true; bytes: Uint8Array } | { ok: false; reason: string }

/** Longest that one call may take, milliseconds. An honest one takes far less than one. */
export const CALL_MS = 2000
/** The same of a thread's start. */
export const START_MS = 30_000
/** Heap of one thread, megabytes. */
const HEAP_MB = 64

const url = new URL(`./grader-thread.${fromSource ? 'ts' : 'js'}`, import.meta.url)

/** The thread's first file; it reads TypeScript only where one that is none has started the loader. */
function entry(): URL {
  if (!fromSource) return url
  const tsx = createRequire(import.meta.url)
    .resolve('tsx/esm/api')
    .replace(/\.cjs$/, '.mjs')
  const load = `import { register } from ${JSON.stringify(pathToFileURL(tsx).href)}; register()`
  return new URL(`data:text/javascript,${load}; import(${JSON.stringify(url.href)})`)
}

/** The port goes over to the thread. */
export function startGraderThread(setup: GraderSetup): Worker {
  const worker = new Worker(entry(), {
    workerData: setup,
    transferList: [setup.port],
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
    // What a grader prints is nobody's business: standard output belongs to the command.
    stdout: true,
    stderr: true,
    execArgv: [],
  })
  worker.unref()
  return worker
}

export const tooLong = (ms: number): string => `gave no answer within ${ms / 1000} s`
