// Keeps a server busy as a trainer would: batches submitted ahead, groups leased and acknowledged; counts from /metrics.

import { unpack } from '../../protocol/msgpack.ts'

export interface ServerRates {
  turnsPerSecond: number
  episodesPerSecond: number
  /** How much later than due the main thread came to its timers, over the measurement, seconds. */
  loopDelayP99: number
  residentMb: number
}

export interface Load {
  warm(): Promise<void>
  measure(seconds: number): Promise<ServerRates>
}

const GROUP_SIZE = 8
const LEASE = { max: 64, lease_s: 60, wait_s: 5 }

interface Leased {
  groups: { id: string; lease: { id: string } }[]
  done: boolean
}

/** Batches that are open at once: the server never waits for the next one. */
const OPEN_BATCHES = 3

/** The metric is the time between two firings of a 10 ms timer: a loop that is never late shows 0.01 (perf_hooks). */
const SAMPLING_SECONDS = 0.01

/** One sampling seed for every batch: the same requests again, which the simulator has answers prepared for. */
const SAMPLING = { temperature: 1, max_tokens: 1024, seed: 7 }

export function createLoad(url: string, tasks: readonly string[]): Load {
  async function post(path: string, body: unknown, accept = 'application/json'): Promise<Response> {
    const headers = { 'content-type': 'application/json', accept }
    const response = await fetch(url + path, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return response
  }

  /** Submits one batch and takes all its groups. */
  async function runBatch(): Promise<void> {
    const request = {
      tasks: tasks.map((task) => ({ task })),
      group_size: GROUP_SIZE,
      policy: { backend: 'main', sampling: SAMPLING },
    }
    const { id } = (await (await post('/v1/batches', request)).json()) as { id: string }
    for (;;) {
      // As a trainer takes tapes: the sealed bytes, which nobody turns into numbers in text.
      const answer = await post(`/v1/batches/${id}/lease`, LEASE, 'application/msgpack')
      const { groups, done } = unpack(new Uint8Array(await answer.arrayBuffer())) as Leased
      if (done) return
      if (groups.length > 0)
        await post(`/v1/batches/${id}/ack`, {
          groups: groups.map((group) => ({ id: group.id, lease: group.lease.id })),
        })
    }
  }

  return {
    async warm() {
      await runBatch()
      await Promise.all(Array.from({ length: OPEN_BATCHES }, runBatch))
    },
    async measure(seconds) {
      let open = true
      const loops = Array.from({ length: OPEN_BATCHES }, async () => {
        while (open) await runBatch()
      })
      await new Promise((resolve) => setTimeout(resolve, 500))
      const before = await scrape(url)
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
      const after = await scrape(url)
      open = false
      await Promise.all(loops)
      const span = after.at - before.at
      const rate = (name: string) => (after.sum(name) - before.sum(name)) / span
      return {
        turnsPerSecond: rate('paddock_parser_turns_total'),
        episodesPerSecond: rate('paddock_episodes_finished_total'),
        loopDelayP99: Math.max(0, after.sum('nodejs_eventloop_lag_p99_seconds') - SAMPLING_SECONDS),
        residentMb: after.sum('process_resident_memory_bytes') / 2 ** 20,
      }
    },
  }
}

/** The server's figures now; the event-loop delay is that since the last scrape. */
async function scrape(url: string): Promise<{ at: number; sum(name: string): number }> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const at = performance.now() / 1000
  return {
    at,
    sum: (name) =>
      text
        .split('\n')
        .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
        .reduce((total, line) => total + Number(line.slice(line.lastIndexOf(' ') + 1)), 0),
  }
}
