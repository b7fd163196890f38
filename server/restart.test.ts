// kill -9 and a start on the same folder, as a trainer sees it: what was finished is there, what was not goes on.
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it, test } from 'vitest'
import { type Simulator, startSimulator } from '../bench/simulator/server.ts'
import { generateTask } from '../envs/arithmetic/tasks.ts'
import type { BatchProgress } from '../protocol/batch.ts'
import type { DeliveredGroup } from '../protocol/group.ts'
import type { JsonObject } from '../protocol/json.ts'
import { requestSeed } from '../rollout/request-seed.ts'
import { createApiClient } from './runtime/api-client.ts'
import { type CountingPolicy, openCountingPolicy } from './torture/counting-policy.ts'
import { type ServerProcess, startServerProcess } from './torture/server-process.ts'

/**
 * A ledger by the first commit that kept one (README.md beside it), whose server was killed: of the four groups of two
 * episodes of batch `kept`, kept.g0 is acknowledged, kept.g1 ready after a nack, kept.g2 on a lease, and of kept.g3 one
 * episode has ended and the other has had one of its two replies.
 */
const FIXTURE = new URL('ledger/testdata/schema-1/', import.meta.url)
/** Of kept.g2 in it: a day. */
const KEPT_LEASE = 'd43b7a53-8035-4ebe-8bdb-2768758572f7'
const TASKS = 12
/** A start from the sources takes seconds, and more on a busy machine. */
const LONG = 240_000
let simulator: Simulator
const opened: (() => Promise<void> | void)[] = []

beforeAll(async () => {
  const tasks = Array.from({ length: TASKS }, (_, index) => generateTask(index, 1))
  const kept = readFileSync(new URL('scripts.jsonl', FIXTURE), 'utf8').trim().split('\n')
  const scripts = [
    ...tasks.map(({ request, transcripts }) => ({ match: request, transcripts })),
    ...kept.map((line) => JSON.parse(line)),
  ]
  const style = { format: 'hermes' as const, thinking: false, mix: { correct: 0.5, wrong: 0.5 } }
  simulator = await startSimulator({ scripts: scripts as never, style })
}, 60_000)
afterAll(() => simulator.close())
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close()
})

interface Town {
  policy: CountingPolicy
  api: ReturnType<typeof createApiClient>
  url: string
  folder: string
  /** kill -9, `meanwhile`, and a start on the same folder. */
  restart(meanwhile?: () => void | Promise<void>): Promise<void>
  requests(): number
}

/** A server in a process of its own, with the twelve tasks of the pack `sums` and a policy that counts. */
async function openTown(
  hangs: (seed: number) => boolean = () => false,
  ledger: URL | null = null,
): Promise<Town> {
  const folder = mkdtempSync(join(tmpdir(), 'paddock-restart-'))
  if (ledger) cpSync(ledger, join(folder, 'ledger'), { recursive: true })
  opened.push(() => rmSync(folder, { recursive: true, force: true }))
  const policy = openCountingPolicy(simulator.url, hangs)
  opened.push(() => policy.close())
  writePack(folder, 1)
  const config = join(folder, 'paddock.yaml')
  const start = async () => {
    const url = await policy.nextLife()
    const settings: JsonObject = {
      server: { port: 0 },
      shipped_packs: false,
      packs: ['pack'],
      backends: { main: { dialect: 'vllm', url, model: 'qwen3-8b' } },
      runtime: { threads: 1, max_episodes: 128 },
      ledger: { path: 'ledger', min_free_bytes: 0 },
    }
    writeFileSync(config, JSON.stringify(settings))
    return startServerProcess(config)
  }
  let server: ServerProcess = await start()
  opened.push(() => server.kill())
  const town: Town = {
    policy,
    api: createApiClient(server.url),
    url: server.url,
    folder,
    async restart(meanwhile = () => {}) {
      await server.kill()
      await meanwhile()
      server = await start()
      town.url = server.url
      town.api = createApiClient(server.url)
    },
    requests: () => [...policy.seen.values()].flat().length,
  }
  return town
}

function writePack(folder: string, seed: number): void {
  mkdirSync(join(folder, 'pack'), { recursive: true })
  const generated = `{count: ${TASKS}, seed: ${seed}}`
  writeFileSync(
    join(folder, 'pack', 'pack.yaml'),
    `name: sums\nenvironment: arithmetic\ngenerated: ${generated}\n`,
  )
}

const sums = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ task: `sums/sum-${index}` }))

/** Follows the batch's events until its progress is as wanted. */
async function until(town: Town, id: string, wanted: (progress: BatchProgress) => boolean) {
  const stop = new AbortController()
  const { body } = await fetch(`${town.url}/v1/batches/${id}/events`, { signal: stop.signal })
  for await (const _ of body as ReadableStream<Uint8Array>)
    if (wanted(await town.api.progress(id))) break
  stop.abort()
}

const payload = ({ lease: _, ...group }: DeliveredGroup) =>
  createHash('sha256').update(JSON.stringify(group)).digest('hex')

/** Leases and acknowledges until the batch is done. */
async function drain(town: Town, id: string): Promise<DeliveredGroup[]> {
  const groups: DeliveredGroup[] = []
  for (;;) {
    const leased = await town.api.lease(id, { max: 16, lease_s: 60, wait_s: 20 })
    if (leased.groups.length > 0) await town.api.ack(id, leased.groups)
    groups.push(...leased.groups)
    if (leased.done) return groups
  }
}

describe('after kill -9 and a start on the same folder', () => {
  it(
    'O04: ready and leased groups are delivered with the same bytes, acknowledged ones never again, nothing is asked',
    async () => {
      const town = await openTown()
      const request = { id: 'o04', tasks: sums(10), group_size: 2, mode: 'eval' }
      await town.api.submit(request)
      await until(town, 'o04', ({ groups }) => groups.ready === 10)
      const all = (await town.api.lease('o04', { max: 10, lease_s: 600, wait_s: 0 })).groups
      const before = new Map(all.map((group) => [group.id, payload(group)]))
      await nack(town, 'o04', all)
      const four = (await town.api.lease('o04', { max: 4, lease_s: 5, wait_s: 0 })).groups
      await town.api.ack('o04', four.slice(0, 2))
      const asked = town.requests()

      await town.restart()
      expect(await town.api.submit(request)).toEqual({ id: 'o04', groups: 10, episodes: 20 })
      const ready = (await town.api.lease('o04', { max: 16, lease_s: 600, wait_s: 0 })).groups
      expect(ready.length).toBeGreaterThanOrEqual(6)
      await town.api.ack('o04', ready)
      const groups = [...ready, ...(await drain(town, 'o04'))]
      const acked = four.slice(0, 2).map(({ id }) => id)
      expect(groups.map(({ id }) => id).sort()).toEqual(
        [...before.keys()].filter((id) => !acked.includes(id)).sort(),
      )
      for (const group of groups) expect(payload(group)).toBe(before.get(group.id))
      expect(town.requests()).toBe(asked)
      expect((await town.api.progress('o04')).groups.settled).toEqual({ acked: 10 })
    },
    LONG,
  )

  it(
    'M10: a lease has what was left of it, neither over at once nor anew',
    async () => {
      const town = await openTown()
      await town.api.submit({ id: 'm10', tasks: sums(1), group_size: 2, mode: 'eval' })
      const lease = { max: 1, lease_s: 60, wait_s: 60 }
      const [held] = (await town.api.lease('m10', lease)).groups
      await wait(20_000)
      await town.restart(() => wait(5_000))
      const back = performance.now()
      const [again] = (await town.api.lease('m10', lease)).groups
      const left = (performance.now() - back) / 1000
      expect(again).toMatchObject({ id: held?.id, lease: { delivery: 2 } })
      expect(left).toBeGreaterThanOrEqual(35)
      expect(left).toBeLessThanOrEqual(40)
      expect((await town.api.ack('m10', [held as DeliveredGroup])).groups[0]?.result).toBe('late')
      expect((await town.api.ack('m10', [again as DeliveredGroup])).groups[0]?.result).toBe('acked')
    },
    LONG,
  )

  it(
    'O01: a member that hangs costs its own place once; the others are leased meanwhile and not played again',
    async () => {
      const place = { policy: { seedBase: 'o01' }, groupIndex: 3, index: 5 }
      const hung = new Set(
        [1, 2, 3].flatMap((attempt) =>
          [0, 1, 2].map((turn) => requestSeed({ ...place, attempt } as never, turn)),
        ),
      )
      const town = await openTown((seed) => hung.has(seed))
      await town.api.submit({
        id: 'o01',
        tasks: sums(12),
        group_size: 8,
        groups: { attempts: 2, min_scored: 7 },
        limits: { turn_timeout_s: 15, group_timeout_s: 120 },
      })
      await until(
        town,
        'o01',
        ({ groups, episodes }) => groups.finished >= 11 && (episodes.retried.timeout ?? 0) >= 1,
      )
      const others = (await town.api.lease('o01', { max: 16, lease_s: 600, wait_s: 0 })).groups
      expect(others).toHaveLength(11)
      const asked = new Map([...town.policy.seen].map(([seed, lives]) => [seed, lives.length]))

      await town.restart()
      await until(town, 'o01', ({ groups }) => groups.finished === 12)
      const [last] = (await town.api.lease('o01', { max: 1, wait_s: 0 })).groups
      expect(last).toMatchObject({ id: 'o01.g3', stats: { n: 8, scored: 7 } })
      expect(['valid', 'zero_variance']).toContain(last?.verdict)
      expect(last?.episodes[5]).toMatchObject({ attempt: 2, outcome: 'timeout', reward: null })
      for (const [seed, lives] of town.policy.seen)
        if (!hung.has(seed)) expect(lives).toHaveLength(asked.get(seed) ?? 0)
      expect((await town.api.ack('o01', others)).groups.map(({ result }) => result)).toEqual(
        Array(11).fill('acked'),
      )
    },
    LONG,
  )

  test(
    'a batch whose pack has changed settles what had not finished as infra, and says so',
    async () => {
      const hung = new Set([0, 1].map((index) => seedOf('changed', 1, index)))
      const town = await openTown((seed) => hung.has(seed))
      const request = { id: 'changed', tasks: sums(2), group_size: 2, groups: { attempts: 1 } }
      await town.api.submit(request)
      await until(town, 'changed', ({ groups }) => groups.finished === 1)
      await town.restart(() => writePack(town.folder, 2))
      const groups = await drain(town, 'changed')
      expect(groups.map(({ id }) => id)).toEqual(['changed.g0'])
      const progress = await town.api.progress('changed')
      expect(progress.groups).toMatchObject({ verdicts: { infra: 1 }, settled: { dropped: 1 } })
      expect(progress.groups.dropped[0]?.reason).toMatch(/pack sums has changed since the batch/)
    },
    LONG,
  )

  test(
    'what a trainer announced is known: a step back is refused, a paused backend stays paused',
    async () => {
      const town = await openTown()
      const announce = (body: JsonObject) =>
        fetch(`${town.url}/v1/policy`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        })
      expect((await announce({ version: 57, pause: true })).status).toBe(200)
      await town.restart()
      expect((await announce({ version: 1 })).status).toBe(409)
      expect(await (await announce({ version: 58 })).json()).toMatchObject({ paused: true })
    },
    LONG,
  )
})

it(
  'R5: a task that ends the process is found by who was played, ends its own attempt, and the others go on',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'paddock-deadly-'))
    opened.push(() => rmSync(folder, { recursive: true, force: true }))
    writeFileSync(join(folder, 'deadly.mjs'), DEADLY)
    const config = join(folder, 'paddock.yaml')
    const settings: JsonObject = {
      server: { port: 0 },
      shipped_packs: false,
      environments: { deadly: './deadly.mjs' },
      backends: { main: { dialect: 'vllm', url: simulator.url, model: 'qwen3-8b' } },
      runtime: { threads: 2 },
      ledger: { path: 'ledger', min_free_bytes: 0 },
    }
    writeFileSync(config, JSON.stringify(settings))
    const request = String(generateTask(0, 1).request)
    const specs = [{ kills: true }, {}, {}].map((some) => ({ request, ...some }))
    const batch = {
      id: 'deadly',
      mode: 'eval',
      tasks: specs.map((spec) => ({ spec, environment: 'deadly' })),
      group_size: 1,
      groups: { attempts: 1 },
      policy: { sampling: { max_tokens: 64 } },
    }
    let deaths = 0
    for (;;) {
      expect(deaths).toBeLessThan(20)
      // It may die while it still starts.
      const server = await startServerProcess(config).catch(() => null)
      const town = server && ({ url: server.url, api: createApiClient(server.url) } as Town)
      const played = town?.api
        .submit(batch)
        .then(() => until(town, 'deadly', ({ groups }) => groups.finished === 3))
        .then(() => drain(town, 'deadly'))
      const groups = await Promise.race([
        played?.catch(() => null) ?? null,
        server?.ended.then(() => null) ?? null,
      ])
      if (server) await server.kill()
      if (groups === null) {
        deaths++
        continue
      }
      const outcomes = groups.map(({ episodes }) => episodes.map(({ outcome }) => outcome))
      expect(outcomes).toEqual([['infra_worker'], ['ok'], ['ok']])
      expect(groups[0]?.episodes[0]?.reason).toContain('ended 3 times while this attempt')
      break
    }
  },
  2 * LONG,
)

/** Ends the whole process where its spec says so. */
const DEADLY = `export default {
  contract: { name: 'deadly', version: 1, fields: { score: { type: 'number', min: 0, max: 1 } }, scalar: 'score' },
  problems: () => [],
  describe: (task) => ({ title: 'deadly' }),
  reset(task, seed) {
    if (task.spec.kills) process.kill(process.pid, 'SIGKILL')
    return { spec: task.spec }
  },
  open: (state) => [{ role: 'user', content: state.spec.request }],
  tools: () => [],
  step: (state) => ({ state, observation: { content: 'none', is_error: true }, audit: {} }),
  hear: (state) => state,
  reply: (state) => ({ state, end: 'final' }),
  grade: () => ({ status: 'scored', rewards: { score: 1 } }),
  anchor: () => 'here',
}
`

test(
  'a batch whose record is damaged is told as lost, and its id is not taken for one that was accepted',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'paddock-damaged-'))
    cpSync(FIXTURE, folder, { recursive: true })
    const bytes = readFileSync(join(folder, 'data.mdb'))
    const at = bytes.indexOf('"entry":{"id":"kept"') + 3
    bytes[at] = (bytes[at] ?? 0) ^ 1
    writeFileSync(join(folder, 'data.mdb'), bytes)
    const town = await openTown(undefined, pathToFileURL(`${folder}/`))
    for (const _ of ['at the start that finds it', 'at the next']) {
      await expect(town.api.progress('kept')).rejects.toThrow(
        /410 .*batch kept is lost: its record/,
      )
      const again = { id: 'kept', tasks: sums(1), group_size: 2, mode: 'eval' }
      await expect(town.api.submit(again)).rejects.toThrow(/lost/)
      await town.restart()
    }
    await town.api.submit({ id: 'fresh', tasks: sums(1), group_size: 2, mode: 'eval' })
    expect(await drain(town, 'fresh')).toHaveLength(1)
  },
  LONG,
)

describe('a ledger that the first schema wrote', () => {
  test(
    'opens, goes on where it was, and delivers; its leases hold',
    async () => {
      const town = await openTown(undefined, FIXTURE)
      const leased = { id: 'kept.g2', lease: { id: KEPT_LEASE } } as DeliveredGroup
      expect((await town.api.ack('kept', [leased])).groups).toEqual([
        { id: 'kept.g2', result: 'acked' },
      ])
      const groups = await drain(town, 'kept')
      expect(groups.map(({ id, lease }) => [id, lease.delivery])).toEqual([
        ['kept.g1', 2],
        ['kept.g3', 1],
      ])
      for (const { episodes } of groups)
        expect(episodes.map(({ outcome, reward }) => [outcome, reward])).toEqual([
          ['ok', 1],
          ['ok', 1],
        ])
      // The second turn of the episode that was under way, and nothing else.
      expect([...town.policy.seen.keys()]).toEqual([seedOf('kept', 3, 1, 1)])
      expect((await town.api.progress('kept')).groups.settled).toEqual({ acked: 4 })
    },
    LONG,
  )

  test(
    'gives what a trainer and a person read today, with nothing missing',
    async () => {
      const town = await openTown(undefined, FIXTURE)
      const leased = { id: 'kept.g2', lease: { id: KEPT_LEASE } } as DeliveredGroup
      await nack(town, 'kept', [leased])
      const old = await drain(town, 'kept')
      await town.api.submit({ id: 'fresh', tasks: sums(3), group_size: 2, mode: 'eval' })
      const [fresh] = await drain(town, 'fresh')
      expect(old).toHaveLength(3)
      for (const group of old) expect(shapeOf(group)).toEqual(shapeOf(fresh))
      for (const read of [town.api.progress, (id: string) => town.api.explain(`${id}.g1`)])
        expect(shapeOf(await read('kept'))).toEqual(shapeOf(await read('fresh')))
    },
    LONG,
  )
})

/** Maps whose names are free, and what need not be known. */
const OPEN = 'components metadata grade outcomes verdicts explanation level seconds'.split(' ')

/** Names and kinds of all that a value holds. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, 1).map(shapeOf)
  if (value === null || typeof value !== 'object') return value === null ? 'null' : typeof value
  const parts = Object.entries(value).map(([name, one]) => [
    name,
    OPEN.includes(name) ? 'open' : shapeOf(one),
  ])
  return Object.fromEntries(parts)
}

async function nack(town: Town, id: string, groups: readonly DeliveredGroup[]): Promise<void> {
  const body = JSON.stringify({ groups: groups.map(({ id, lease }) => ({ id, lease: lease.id })) })
  const headers = { 'content-type': 'application/json' }
  await fetch(`${town.url}/v1/batches/${id}/nack`, { method: 'POST', headers, body })
}

function seedOf(batch: string, groupIndex: number, index: number, turn = 0): number {
  const plan = { policy: { seedBase: batch }, groupIndex, index, attempt: 1 }
  return requestSeed(plan as never, turn)
}
