// Replies kept as bytes under a hash of their request, so that a load test measures its server and not its policy.
import { createHash } from 'node:crypto'
import type { SampledRecord } from './stats.ts'
import type { Payload } from './wire/transport.ts'

export interface PreparedReply {
  payload: Payload
  latencyMs: number
  /** The request, as it came. */
  body: Buffer
  record: SampledRecord
}

export interface PreparedReplies {
  get(key: string): PreparedReply | undefined
  set(key: string, reply: PreparedReply): void
  clear(): void
  requests(): { path: string; body: string }[]
  /** Ends the running measurement: a request that was not prepared is about to cost time. */
  pause(): void
  report(): { kept: number; replies: number; cpu_us_per_reply: number | null }
}

/** Bytes of replies kept; the oldest go first. */
const MAX_BYTES = 512 * 1024 * 1024

export function requestKey(path: string, body: Buffer): string {
  return createHash('sha1').update(path).update(body).digest('base64')
}

/**
 * A store that also measures itself: the process's CPU time between the first and the last of unbroken runs of prepared
 * replies, per reply. It holds all that a reply costs, the reading of the request included.
 */
export function createPreparedReplies(): PreparedReplies {
  const kept = new Map<string, PreparedReply>()
  let bytes = 0
  let run: { since: NodeJS.CpuUsage; replies: number } | null = null
  const measured = { replies: 0, cpuUs: 0 }
  const cpuUsOfRun = () => {
    if (!run) return 0
    const { user, system } = process.cpuUsage(run.since)
    return user + system
  }
  return {
    get(key) {
      const reply = kept.get(key)
      if (!reply) return undefined
      if (run) run.replies += 1
      else run = { since: process.cpuUsage(), replies: 0 }
      return reply
    },
    set(key, reply) {
      kept.set(key, reply)
      bytes += reply.payload.bytes.length
      for (const [oldest, { payload }] of kept) {
        if (bytes <= MAX_BYTES) break
        kept.delete(oldest)
        bytes -= payload.bytes.length
      }
    },
    requests: () =>
      [...kept.values()].map(({ record, body }) => ({ path: record.path, body: body.toString() })),
    clear() {
      kept.clear()
      bytes = 0
    },
    pause() {
      if (!run) return
      measured.cpuUs += cpuUsOfRun()
      measured.replies += run.replies
      run = null
    },
    report() {
      const replies = measured.replies + (run?.replies ?? 0)
      const cpuUs = measured.cpuUs + cpuUsOfRun()
      return {
        kept: kept.size,
        replies,
        cpu_us_per_reply: replies === 0 ? null : Math.round((cpuUs / replies) * 10) / 10,
      }
    },
  }
}
