// Custom graders of episodes: each in a thread of its own, one input at a time, under a limit; a lost thread is replaced.
import { MessageChannel, type MessagePort, type Worker } from 'node:worker_threads'
import type { HttpReply } from '../../../rollout/request.ts'
import { openPatience } from '../threads/patience.ts'
import {
  CALL_MS,
  type GraderAnswer,
  type GraderSource,
  START_MS,
  startGraderThread,
  tooLong,
} from './grader-setup.ts'

export interface Graders {
  /** Never rejects: a crash, a hang or an unknown name is a reply of status 0. */
  grade(name: string, body: Uint8Array, deadline: number, signal: AbortSignal): Promise<HttpReply>
  close(): Promise<void>
}

export function createGraders(
  sources: Record<string, GraderSource>,
  callMs: number = CALL_MS,
): Graders {
  const lanes = new Map(
    Object.entries(sources).map(([name, source]) => [name, createGraderLane(source, callMs)]),
  )
  return {
    async grade(name, body, deadline, signal) {
      const lane = lanes.get(name)
      if (!lane) return replyOf({ ok: false, reason: 'no loaded pack registers it' })
      const patience = openPatience(deadline, signal)
      try {
        const givenUp = new Promise<GraderAnswer>((resolve) => {
          patience.onEnd(() => resolve({ ok: false, reason: 'is no longer waited for' }))
        })
        return replyOf(await Promise.race([lane.run(body), givenUp]))
      } finally {
        patience.close()
      }
    },
    async close() {
      await Promise.all([...lanes.values()].map((lane) => lane.close()))
    },
  }
}

function replyOf(answer: GraderAnswer): HttpReply {
  return answer.ok
    ? { status: 200, headers: {}, body: answer.bytes }
    : { status: 0, headers: {}, body: new TextEncoder().encode(answer.reason) }
}

/** One grader's thread, started with its first input and again after each loss. */
function createGraderLane(source: GraderSource, callMs: number) {
  let thread: { worker: Worker; port: MessagePort } | null = null
  let last: Promise<unknown> = Promise.resolve()

  function run(body: Uint8Array): Promise<GraderAnswer> {
    const answer = last.then(() => runNow(body))
    last = answer
    return answer
  }

  async function runNow(body: Uint8Array): Promise<GraderAnswer> {
    if (!thread) {
      const { port1, port2 } = new MessageChannel()
      const worker = startGraderThread({ ...source, port: port2, signal: null })
      thread = { worker, port: port1 }
      const started = await nextAnswer(worker, port1, START_MS)
      if (!started.ok) {
        await lose()
        return started
      }
    }
    const { worker, port } = thread
    port.postMessage(body)
    const answer = await nextAnswer(worker, port, callMs)
    if (answer.lost) await lose()
    return answer
  }

  async function lose(): Promise<void> {
    const lost = thread
    thread = null
    lost?.port.close()
    await lost?.worker.terminate()
  }

  return { run, close: lose }
}

/** What the thread says next; `lost` where it dies or is silent for so long, and the reason says which. */
function nextAnswer(
  worker: Worker,
  port: MessagePort,
  ms: number,
): Promise<GraderAnswer & { lost?: boolean }> {
  return new Promise((resolve) => {
    const end = (answer: GraderAnswer & { lost?: boolean }) => {
      clearTimeout(timer)
      port.removeAllListeners('message')
      worker.removeAllListeners()
      // A thread that dies later, with nothing to do, must not end the process.
      worker.on('error', () => {})
      resolve(answer)
    }
    const lost = (reason: string) => end({ ok: false, reason, lost: true })
    const timer = setTimeout(() => lost(tooLong(ms)), ms)
    port.on('message', end)
    worker.on('error', (error) => lost(`died: ${error.message}`))
    worker.on('exit', (code) => lost(`ended its own thread (exit code ${code})`))
  })
}
