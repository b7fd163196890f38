// Custom graders for whoever cannot wait: the gate, and commands that play in their own process. The same threads, asked at once.
import {
  MessageChannel,
  type MessagePort,
  receiveMessageOnPort,
  type Worker,
} from 'node:worker_threads'
import type { Answer, GraderAsk } from '../../../envs/environment.ts'
import type { GraderBook } from '../../../envs/graded.ts'
import { graderRequest, readGrader } from '../../../rollout/asking/grader.ts'
import {
  CALL_MS,
  type GraderAnswer,
  type GraderSource,
  START_MS,
  startGraderThread,
  tooLong,
} from './grader-setup.ts'

/**
 * The registered graders as the gate takes them. A call blocks this thread until its answer or its limit. A grader that was
 * lost once is not asked again: the gate asks a hundred times, and would wait each time.
 */
export function createGradersNow(
  sources: Record<string, GraderSource>,
  callMs: number = CALL_MS,
): GraderBook {
  const askers = new Map<string, (body: Uint8Array) => GraderAnswer>()
  return {
    names: Object.keys(sources),
    answer(ask) {
      const source = sources[ask.grader]
      if (!source) return answerOf(ask, { ok: false, reason: 'no loaded pack registers it' })
      const asker = askers.get(ask.grader) ?? createAsker(source, callMs)
      askers.set(ask.grader, asker)
      return answerOf(ask, asker(graderRequest(ask, 0).body))
    },
  }
}

function answerOf(ask: GraderAsk, answer: GraderAnswer): Answer {
  const body = answer.ok ? answer.bytes : new TextEncoder().encode(answer.reason)
  const read = readGrader(ask, { status: answer.ok ? 200 : 0, headers: {}, body })
  return read.status === 'violation'
    ? { status: 'error', reason: read.reason, by: { grader: ask.grader } }
    : read
}

function createAsker(source: GraderSource, callMs: number): (body: Uint8Array) => GraderAnswer {
  const signal = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  const { port1, port2 } = new MessageChannel()
  const worker = startGraderThread({ ...source, port: port2, signal })
  worker.on('error', () => {})
  port1.unref()
  let lost: GraderAnswer | null = null
  let answers = 0

  function next(ms: number): GraderAnswer {
    Atomics.wait(signal, 0, answers, ms)
    const received = receiveMessageOnPort(port1) as { message: GraderAnswer } | undefined
    if (received) {
      answers++
      return received.message
    }
    lost = { ok: false, reason: tooLong(ms) }
    end(worker, port1)
    return lost
  }

  const started = next(START_MS)
  if (!started.ok) lost ??= started
  return (body) => {
    if (lost) return lost
    port1.postMessage(body)
    return next(callMs)
  }
}

function end(worker: Worker, port: MessagePort): void {
  port.close()
  worker.terminate().catch(() => {})
}
