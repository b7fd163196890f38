// What went wrong with environments elsewhere, played end to end: leaks, torn bytes, states that depend on history.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import type { DeliveredGroup } from '../protocol/group.ts'
import type { JsonObject } from '../protocol/json.ts'
import { unpack } from '../protocol/msgpack.ts'
import { createApiClient } from './runtime/api-client.ts'
import { arithmeticRequest, type House, openHouse } from './testkit/house.testkit.ts'
import { userModule } from './testkit/user-module.testkit.ts'

const housed = (part: string, settings: JsonObject = {}) =>
  openHouse({
    tokens: false,
    settings: { environments: { user: userModule(part) }, ...settings },
  })

/** A server in a process of its own, whose memory is nobody else's: little of it, since V8 takes what it may before it looks for what is free. */
async function serveApart(settings: JsonObject) {
  const file = join(mkdtempSync(join(tmpdir(), 'paddock-server-')), 'paddock.yaml')
  writeFileSync(file, JSON.stringify(settings))
  const main = fileURLToPath(new URL('./main.ts', import.meta.url))
  const child = spawn(process.execPath, [
    '--max-old-space-size=96',
    '--import',
    'tsx',
    main,
    'serve',
    file,
  ])
  const url = await new Promise<string>((resolve, reject) => {
    let log = ''
    child.once('exit', () => reject(new Error(`the server ended: ${log}`)))
    child.stderr.on('data', (chunk) => {
      log += chunk
      const [found] = log.match(/http:\/\/127\.0\.0\.1:\d+/) ?? []
      if (found) resolve(found)
    })
  })
  return {
    api: createApiClient(url),
    residentBytes() {
      const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
      return Number(/VmRSS:\s+(\d+)/.exec(status)![1]) * 1024
    },
    async stop() {
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  }
}

interface Trajectory {
  state_hash: string
  messages: { role: string; content: string }[]
  turns: {
    anchor: string
    state_hash: string
    observations: { content: string; is_error: boolean; replaced?: true }[]
  }[]
}
const trajectory = async (house: House, episode: string): Promise<Trajectory> =>
  (await fetch(`${house.url}/v1/episodes/${episode}`)).json() as Promise<Trajectory>

describe('E01: resets and graders that fail take nothing away', () => {
  const GROUP_SIZE = 8
  const TASKS = 250
  const AT_ONCE = 64
  /** Played before: a process that has just started is not yet as large as it will stay. */
  const WARM_UP_TASKS = 100
  const TENTH = (TASKS * GROUP_SIZE) / 10
  const failing = `
    reset: (task, seed) => { if (task.spec.n % 10 === 0) throw new Error('no room left'); return base.reset(task, seed) },
    grade: (state) => { if (state.n % 10 === 1) throw new Error('no verdict'); return base.grade(state) }`

  test('every episode is accounted for, the slots stay full, and memory does not grow', async () => {
    const simulator = await openHouse({ tokens: false })
    const server = await serveApart({
      server: { port: 0 },
      backends: { main: { dialect: 'vllm', url: simulator.policyUrl, model: 'qwen3-8b' } },
      environments: { user: userModule(failing) },
      runtime: { max_episodes: AT_ONCE, heap_mb: 64 },
      // What has left is not to be read any more: else it is kept, up to its bound, and counts as memory.
      ledger: { keep_bytes: 0 },
      limits: { max_events: 1000 },
    })
    const submit = (tasks: number) =>
      server.api.submit({
        tasks: Array.from({ length: tasks }, (_, n) => ({
          spec: { n, request: arithmeticRequest(n % 20) },
          environment: 'user',
        })),
        group_size: GROUP_SIZE,
        mode: 'eval',
        policy: { sampling: { max_tokens: 256 } },
        groups: { attempts: 1 },
      })
    const takeSome = async (id: string) => {
      const leased = await server.api.lease(id, { max: 8, lease_s: 60, wait_s: 10 })
      if (leased.groups.length > 0) await server.api.ack(id, leased.groups)
      return leased
    }
    try {
      const warmUp = await submit(WARM_UP_TASKS)
      while (!(await takeSome(warmUp.id)).done);
      const { id } = await submit(TASKS)
      const groups: DeliveredGroup[] = []
      const inFlight: number[] = []
      const memory: number[] = []
      for (;;) {
        const leased = await takeSome(id)
        groups.push(...leased.groups)
        const { episodes } = await server.api.progress(id)
        inFlight.push(episodes.in_flight)
        // While more wait than there are slots, the slots are taken but those that are changing hands.
        if (TASKS * GROUP_SIZE - episodes.finished > 2 * AT_ONCE)
          expect(episodes.in_flight).toBeGreaterThan(AT_ONCE / 2)
        if (groups.length * GROUP_SIZE >= 200) memory.push(server.residentBytes())
        if (leased.done) break
      }
      expect(Math.max(...inFlight)).toBe(AT_ONCE)
      const ended = groups.flatMap((group) => group.episodes)
      const counted = (outcome: string) => ended.filter((episode) => episode.outcome === outcome)
      expect(ended).toHaveLength(TASKS * GROUP_SIZE)
      expect(counted('infra_env')).toHaveLength(TENTH)
      expect(counted('verifier_error')).toHaveLength(TENTH)
      for (const { outcome, reward } of ended)
        expect(reward === null, outcome).toBe(outcome !== 'ok' && outcome !== 'ok_truncated')
      expect(ended.filter(({ reward }) => reward !== null)).toHaveLength(8 * TENTH)
      const { episodes } = await server.api.progress(id)
      const all = TASKS * GROUP_SIZE
      expect(episodes).toMatchObject({ started: all, finished: all, in_flight: 0 })
      expect(memory.at(-1)! / memory[0]!).toBeLessThan(1.1)
    } finally {
      await server.stop()
      await simulator.close()
    }
  }, 400_000)
})

describe('E02: a tool that answers with bytes that are no text', () => {
  const torn = `step: (state) => ({ ...base.step(state), observation: { content: Buffer.from([0x66, 0xff, 0x6f, 0xf0, 0x9f]), is_error: false } })`

  test('is read with replacement, flagged, and the episode goes on and is graded', async () => {
    const house = await housed(torn)
    try {
      const { groups } = await house.run({
        tasks: [{ spec: { request: arithmeticRequest(0) }, environment: 'user' }],
        group_size: 2,
        mode: 'eval',
        policy: { sampling: { max_tokens: 256 } },
      })
      for (const { id, outcome, reward } of groups[0]!.episodes) {
        expect([outcome, typeof reward]).toEqual(['ok', 'number'])
        const answer = await fetch(`${house.url}/v1/episodes/${id}`)
        const bytes = new Uint8Array(await answer.arrayBuffer())
        // Throws where it is not UTF-8.
        const { turns } = JSON.parse(
          new TextDecoder('utf-8', { fatal: true }).decode(bytes),
        ) as Trajectory
        expect(turns[0]!.observations).toMatchObject([
          { content: 'f\uFFFDo\uFFFD', replaced: true },
        ])
      }
    } finally {
      await house.close()
    }
  }, 60_000)

  test('is valid UTF-8 in the event stream and in MessagePack too', async () => {
    const house = await housed(torn)
    try {
      const { id } = await house.api.submit({
        tasks: [{ spec: { request: arithmeticRequest(0) }, environment: 'user' }],
        group_size: 1,
        mode: 'eval',
        policy: { sampling: { max_tokens: 256 } },
      })
      const events = await fetch(`${house.url}/v1/batches/${id}/events`)
      const lease = await fetch(`${house.url}/v1/batches/${id}/lease`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/msgpack' },
        body: '{"wait_s": 20}',
      })
      const packed = unpack(new Uint8Array(await lease.arrayBuffer())) as {
        groups: DeliveredGroup[]
      }
      const group = packed.groups[0]!
      expect(JSON.stringify(group.episodes[0]!.grade).isWellFormed()).toBe(true)
      await house.api.ack(id, [group])
      const told = new TextDecoder('utf-8', { fatal: true }).decode(await events.arrayBuffer())
      expect(told).toContain('event: observation')
      expect(told).toContain('\uFFFD')
    } finally {
      await house.close()
    }
  }, 60_000)
})

describe('E08: the scene of a seed does not depend on what was played before', () => {
  const TASKS = ['office/dev-05-share-the-right-file', 'arithmetic/sum-4']
  /** What every member of a group of the task began with: state, anchor, tools and first messages. */
  async function scenes(house: House, task: string, seed: number) {
    const { groups } = await house.run({
      tasks: [{ task, seed }],
      group_size: 8,
      mode: 'eval',
      policy: { sampling: { max_tokens: 256 } },
    })
    const members = groups[0]!.episodes.map(async ({ id }) => {
      const { state_hash, messages, turns } = await trajectory(house, id)
      return { state_hash, anchor: turns[0]!.anchor, opening: messages.slice(0, 2) }
    })
    expect(members).toHaveLength(8)
    return Promise.all(members)
  }

  test('alone, after 500 other resets, in all members, on every thread, and after a restart', async () => {
    const first = await openHouse({ office: true, settings: { runtime: { threads: 1 } } })
    const alone = await Promise.all(TASKS.map((task) => scenes(first, task, 42)))
    await first.close()
    const second = await openHouse({ office: true, settings: { runtime: { threads: 2 } } })
    try {
      await second.run({
        tasks: Array.from({ length: 40 }, (_, n) => ({ task: `arithmetic/sum-${n}`, seed: n })),
        group_size: 13,
        mode: 'eval',
        policy: { sampling: { max_tokens: 256 } },
      })
      for (const [at, task] of TASKS.entries()) {
        const played = [...alone[at]!, ...(await scenes(second, task, 42))]
        expect(played[0]!.state_hash).toMatch(/^[0-9a-f]{64}$/)
        for (const scene of played) expect(scene).toEqual(played[0])
      }
      const other = await scenes(second, TASKS[0]!, 43)
      expect(other[0]!.state_hash).not.toBe(alone[0]![0]!.state_hash)
    } finally {
      await second.close()
    }
  }, 180_000)
})

test('an environment that opens with no message is at fault, and the backend is not asked', async () => {
  const house = await housed('open: () => []')
  try {
    const { groups, progress } = await house.run({
      tasks: [{ spec: { n: 1 }, environment: 'user' }],
      group_size: 1,
      mode: 'eval',
      groups: { attempts: 1, on_short: 'close' },
    })
    expect(progress.episodes.outcomes).toEqual({ infra_env: 1 })
    expect(groups[0]?.episodes[0]?.reason).toContain(
      'user.open must return a list of at least one message',
    )
    expect(Object.keys((await house.stats()).requests)).toEqual(['/simulator/stats'])
  } finally {
    await house.close()
  }
}, 60_000)
