// Public reports of metrics that misled, played through the server.
import { once } from 'node:events'
import { createServer, request as forward } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { request } from 'undici'
import { afterEach, expect, it, test, vi } from 'vitest'
import { WebSocket } from 'ws'
import type { JsonObject } from '../../protocol/json.ts'
import { batchSummary } from '../commands/batch-summary.ts'
import { evaluate } from '../commands/eval.ts'
import { evaluationText } from '../commands/eval-table.ts'
import { keptStreams } from '../commands/streams.testkit.ts'
import type { PanelData, PanelHead } from '../dash/board.ts'
import { type House, openHouse } from '../testkit/house.testkit.ts'
import { scrape } from './scrape.testkit.ts'
import { CUTS, INVENTED, openUnevenHouse, SHORT_AND_FLAT, uneven } from './uneven.testkit.ts'

// Servers on a busy machine.
vi.setConfig({ testTimeout: 300_000 })

const houses: House[] = []
afterEach(async () => {
  vi.restoreAllMocks()
  await Promise.all(houses.splice(0).map((house) => house.close()))
})

async function openUneven(settings: JsonObject = {}, tokens = true): Promise<House> {
  const house = await openUnevenHouse(settings, tokens)
  houses.push(house)
  return house
}

test('M01: a reward counts once an episode, however many turns and samples it has', async () => {
  const house = await openUneven()
  const { streams, out, err } = keptStreams()
  await house.setFaults(...CUTS)
  const options = { url: house.url, episodes: 5, backend: 'main', temperature: 1, maxTokens: 200 }
  await evaluate(['uneven'], { ...options, k: [1], seed: 1 }, streams)
  const id = /^batch (\S+):/.exec(err())?.[1] ?? ''
  const progress = await house.api.progress(id)
  expect(progress.episodes).toMatchObject({ finished: 10, outcomes: { ok: 10 } })
  expect(progress.episodes.mean_reward).toBeCloseTo(0.4, 12)
  expect(out()).toMatch(/^all +2 +0\.400 +0\.400 /m)
  expect(out()).toContain('mean reward 0.400 over episodes')

  const { sum } = await scrape(house.url)
  expect(sum('reward_count')).toBe(10)
  expect(sum('reward_positive_sum_total') / sum('reward_count')).toBeCloseTo(0.4, 12)
  // Four of two turns and six of eight; the mean over turns would be 8 / 56.
  expect(sum('episode_turns_sum')).toBe(56)
  // Seven of one sample and three of three; the mean over samples would be 4 / 16.
  expect(sum('episode_samples_total')).toBe(16)
  const report = await house.api.evaluation(id, 'k=1')
  expect(report.mean_reward).toBeCloseTo(0.4, 12)
  expect(report.pass[0]?.rates?.pass_at_k).toBeCloseTo(0.4, 12)
})

test('M03: a mean over episodes and a mean over groups have each their name and number everywhere', async () => {
  const house = await openUneven({ dashboard: { interval_s: 1 } })
  const { groups, progress } = await house.run(SHORT_AND_FLAT)
  expect(groups.map(({ stats }) => stats).sort((a, b) => a.scored - b.scored)).toMatchObject([
    { n: 8, scored: 2, mean: 1 },
    { n: 8, scored: 8, mean: 0 },
  ])
  expect(progress.episodes.mean_reward).toBe(0.2)
  expect(progress.groups.mean_group_reward).toBe(0.5)
  expect(batchSummary(progress)).toContain('mean reward 0.200 over episodes, 0.500 over groups')

  const { sum } = await scrape(house.url)
  expect(sum('reward_count')).toBe(10)
  expect(sum('reward_positive_sum_total') / sum('reward_count')).toBe(0.2)
  // The dashboard's own query, as it is asked of Prometheus; two samples after the batch have to be in.
  const panel = await panelOf(house, 'Reward mean and std')
  expect(panel.description).toMatch(/^Over scored episodes/)
  await expect
    .poll(() => lastOf(house, panel.id, 'mean uneven train'), { timeout: 30_000 })
    .toBeCloseTo(0.2, 9)
})

test('M03: an evaluation says over what each of its means is', async () => {
  const house = await openUneven()
  const { progress } = await house.run({ ...SHORT_AND_FLAT, mode: 'eval' })
  const report = await house.api.evaluation(progress.id, '')
  expect(report).toMatchObject({ mean_reward: 0.2, reward: { mean: 0.5 } })
  const text = evaluationText(report)
  expect(text).toMatch(/^family +tasks +mean over tasks /m)
  expect(text).toMatch(/^all +2 +0\.500 /m)
  expect(text).toContain('mean reward 0.200 over episodes')
})

async function panelOf({ url }: House, title: string): Promise<PanelHead> {
  const { rows } = await read<{ rows: { panels: PanelHead[] }[] }>(`${url}/v1/dashboard`)
  return rows.flatMap(({ panels }) => panels).find((panel) => panel.title === title) as PanelHead
}

async function lastOf({ url }: House, panel: number, line: string): Promise<number> {
  const { series } = await read<PanelData>(`${url}/v1/dashboard/panels/${panel}?minutes=5`)
  return series.find(({ name }) => name === line)?.values.at(-1) ?? Number.NaN
}

async function read<T>(url: string): Promise<T> {
  return (await (await fetch(url)).json()) as T
}

test('M06: names that come from outside make no series, and a scrape stays quick', async () => {
  const house = await openUneven({}, false)
  const broken = (count: number) => ({
    tasks: Array.from({ length: count / 100 }, (_, place) => uneven('broken', `in place ${place}`)),
    group_size: 100,
    groups: { attempts: 1 },
  })
  // Each kind once, so that what it has of series is there.
  for (const ask of [...SCANS, ...BAD_BATCHES]) await ask(house.url, -1)
  // Of two members, so that how many openings differ is known.
  await house.run({ ...INVENTED, group_size: 2 })
  await house.run(broken(100))
  const before = await scrape(house.url)

  const statuses = [
    ...(await many(5000, SCANS, house.url)),
    ...(await many(5000, BAD_BATCHES, house.url)),
  ]
  expect(statuses.filter((status) => status < 400)).toEqual([])
  const { progress: invented } = await house.run({ ...INVENTED, group_size: 25 })
  expect(invented.episodes.outcomes).toEqual({ ok: 625 })
  const { progress: failed } = await house.run(broken(500))
  expect(failed.episodes.outcomes).toEqual({ infra_env: 500 })
  expect(new Set(failed.groups.dropped.map(({ reason }) => reason)).size).toBe(5)

  const after = await scrape(house.url)
  const grew = (name: string, labels: Record<string, string> = {}) =>
    after.sum(name, labels) - before.sum(name, labels)
  expect(after.series).toBe(before.series)
  expect(grew('requests_rejected_total')).toBe(10_000)
  expect(grew('label_overflow_total', { label: 'tool' })).toBe(5000)
  expect(grew('episodes_finished_total', { outcome: 'infra_env' })).toBe(500)
  const scrapes: number[] = []
  // The least of some: a busy machine lets any of them wait.
  for (let round = 0; round < 20; round++) {
    const started = performance.now()
    await (await fetch(`${house.url}/metrics`)).arrayBuffer()
    scrapes.push(performance.now() - started)
  }
  expect(Math.min(...scrapes)).toBeLessThan(50)
})

type Ask = (url: string, index: number) => Promise<number>

const METHODS = ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'] as const

/** Paths and methods that nobody serves. */
const SCANS: Ask[] = [
  (url, index) => status(`${url}/scan/${index}.php`),
  (url, index) => status(`${url}/${index}`, { method: METHODS[Math.abs(index) % METHODS.length] }),
  (url, index) => status(`${url}/v1/batches/b-${index}`),
  (url, index) => status(`${url}/v1/batches/${index}`, { method: 'PUT' }),
  (url, index) => status(`${url}/v1/batches/${index}/groups`),
]

/** Batches that name what there is not. */
const BAD_BATCHES: Ask[] = [
  (index: number): JsonObject => ({ tasks: [{ task: `office/t${index}` }] }),
  (index: number): JsonObject => ({
    tasks: [uneven('long')],
    policy: { backend: `model-${index}` },
  }),
  (index: number): JsonObject => ({ tasks: [uneven('long')], reward: { contract: `c${index}@1` } }),
  (index: number): JsonObject => ({ tasks: [{ spec: {}, environment: `env-${index}` }] }),
].map(
  (body): Ask =>
    (url, index) =>
      status(`${url}/v1/batches`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ...body(index), group_size: 1 }),
      }),
)

/** Each over a connection of its own: one that is kept may end on the other side just when it is used again. */
async function status(url: string, init: Parameters<typeof request>[1] = {}): Promise<number> {
  const { statusCode, body } = await request(url, { ...init, reset: true })
  await body.dump()
  return statusCode
}

/** So many requests in all, fifty at once, the kinds in turn. */
async function many(count: number, kinds: readonly Ask[], url: string): Promise<number[]> {
  const statuses: number[] = []
  for (let done = 0; done < count; done += 50) {
    const indices = Array.from({ length: 50 }, (_, at) => done + at)
    const asked = indices.map((index) => (kinds[index % kinds.length] as Ask)(url, index))
    statuses.push(...(await Promise.all(asked)))
  }
  return statuses
}

it('M07: a backend that answers its health and gives no token is down, and up with the first token', async () => {
  let silent = true
  let upstream = ''
  const proxy = createServer((incoming, outgoing) => {
    if (incoming.url === '/health') return outgoing.end('ok')
    if (silent)
      return outgoing.writeHead(200, { 'content-type': 'application/json' }).flushHeaders()
    const { method, headers, url } = incoming
    const sent = forward(new URL(url ?? '', upstream), { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    })
    incoming.pipe(sent)
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const { port } = proxy.address() as AddressInfo
  const house = await openHouse({ tokens: false, backendUrl: `http://127.0.0.1:${port}` })
  houses.push(house)
  upstream = house.policyUrl
  const batch = (id: string) => ({
    id,
    tasks: [{ task: 'arithmetic/sum-1' }],
    group_size: 4,
    mode: 'eval',
    groups: { attempts: 1 },
    limits: { turn_timeout_s: 1 },
  })
  const asked = Date.now() / 1000
  await house.run(batch('silent'))
  expect((await fetch(`http://127.0.0.1:${port}/health`)).status).toBe(200)
  const down = await scrape(house.url)
  expect(down.sum('backend_up', { backend: 'main' })).toBe(0)
  const ready = await fetch(`${house.url}/readyz`)
  expect(ready.status).toBe(503)
  expect(await ready.text()).toContain('backend main gives no tokens')
  await house.api.submit({ ...batch('waits'), limits: { turn_timeout_s: 60 } })
  const { no_tokens_since: since } = await house.api.progress('waits')
  expect(since).toBeGreaterThan(asked)
  expect(since).toBeLessThan(Date.now() / 1000)

  silent = false
  // A breaker that is open waits before it tries again.
  for (let round = 0; ; round++) {
    const { progress } = await house.run(batch(`again-${round}`))
    if (progress.episodes.outcomes.ok) break
    await wait(500)
  }
  expect(await house.api.progress('waits')).not.toHaveProperty('no_tokens_since')
  expect((await scrape(house.url)).sum('backend_up', { backend: 'main' })).toBe(1)
  expect((await fetch(`${house.url}/readyz`)).status).toBe(200)
  proxy.closeAllConnections()
  proxy.close()
}, 120_000)

it('M10: a wall clock that jumps ends no lease and makes no duration', async () => {
  const house = await openUneven()
  const started = performance.now()
  const real = Date.now
  let jump = 0
  vi.spyOn(Date, 'now').mockImplementation(() => real() + jump)
  const { id } = await house.api.submit({ tasks: [uneven('long')], group_size: 5, mode: 'eval' })
  const lease = { max: 1, lease_s: 60, wait_s: 10 }
  const { groups } = await house.api.lease(id, lease)
  jump = -2 * 3_600_000
  await house.api.submit({ tasks: [uneven('long')], group_size: 5, mode: 'eval', id: 'back' })
  jump = 3_600_000
  await house.api.lease('back', lease)
  const acked = await house.api.ack(id, groups)
  expect(acked.groups[0]?.result).toBe('acked')
  const { text, sum } = await scrape(house.url)
  const seconds = (performance.now() - started) / 1000
  const sums = [...text.matchAll(/^(paddock_\w+_seconds)_sum(\{.*\})? (\S+)$/gm)]
  expect(sums.length).toBeGreaterThan(10)
  // Several episodes and requests at once: none can be longer than the test, nor below zero.
  for (const [, name, labels, value] of sums) {
    const count = Number(
      new RegExp(`^${name}_count${escaped(labels)} (\\S+)$`, 'm').exec(text)?.[1],
    )
    expect(Number(value), `${name}${labels}`).toBeGreaterThanOrEqual(0)
    expect(Number(value), `${name}${labels}`).toBeLessThanOrEqual(count * seconds)
  }
  // A heartbeat counts from when it came, whatever its sender's clock says.
  expect(sum('leases_expired_total')).toBe(0)
})

test('M11: fifty cuts right after a heartbeat cost no event and bring none twice, for three readers at once', async () => {
  const house = await openUnevenHouse(
    {
      server: { port: 0, drain_timeout_s: 1, heartbeat_s: 0.05 },
      runtime: { threads: 1, max_episodes: 2 },
    },
    false,
    { kind: 'fixed', ms: 200 },
  )
  houses.push(house)
  const { id } = await house.api.submit({
    tasks: Array.from({ length: 6 }, (_, place) => uneven('long', `in place ${place}`)),
    group_size: 5,
    mode: 'eval',
  })
  const url = `${house.url}/v1/batches/${id}/events`
  const leased = (async () => {
    for (let done = false; !done; ) {
      const answer = await house.api.lease(id, { max: 4, lease_s: 60, wait_s: 5 })
      if (answer.groups.length > 0) await house.api.ack(id, answer.groups)
      done = answer.done
    }
  })()
  const [byHeader, byQuery, bySocket] = await Promise.all([
    cutFiftyTimes((after, cut) => readEvents(url, { 'last-event-id': `${after}` }, cut)),
    cutFiftyTimes((after, cut) => readEvents(`${url}?after=${after}`, {}, cut)),
    cutFiftyTimes((after, cut) => readSocket(house.url, id, after, cut)),
    leased,
  ])
  const all = Array.from({ length: byHeader.at(-1) ?? 0 }, (_, index) => index + 1)
  expect(all.length).toBeGreaterThan(500)
  expect(byHeader).toEqual(all)
  expect(byQuery).toEqual(all)
  expect(bySocket).toEqual(all)
  expect((await readEvents(`${url}?after=0`, {}, false)).ids).toEqual(all)
  const future = all.length + 7
  expect(await status(`${url}?after=${future}`)).toBe(400)
  expect(await status(url, { headers: { 'last-event-id': `${future}` } })).toBe(400)
  await expect(readSocket(house.url, id, future, false)).rejects.toThrow(/after .*: expected 0 to/)
})

interface Events {
  ids: number[]
  /** The last one of the batch is among them. */
  ended: boolean
}

/** Resumes behind the last event after each of fifty cuts, then reads to the end, however often it is cut off. */
async function cutFiftyTimes(resume: (after: number, cut: boolean) => Promise<Events>) {
  const got: number[] = []
  for (let cuts = 0; ; cuts++) {
    const { ids, ended } = await resume(got.at(-1) ?? 0, cuts < 50)
    got.push(...ids)
    // A batch that is over before fifty cuts would show nothing.
    if (ended && cuts < 50) throw new Error(`the batch was over after ${cuts} cuts`)
    if (ended) return got
  }
}

/** To the end, or with `cut` until the first heartbeat, which closes the connection. */
async function readEvents(url: string, headers: Record<string, string>, cut: boolean) {
  const response = await fetch(url, { headers })
  const ids: number[] = []
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += new TextDecoder().decode(chunk)
    const frames = text.split('\n\n')
    text = frames.pop() ?? ''
    for (const frame of frames) {
      if (frame !== ': heartbeat') ids.push(Number(/^id: (\d+)$/m.exec(frame)?.[1]))
      else if (cut) return { ids, ended: false }
    }
  }
  return { ids, ended: true }
}

/** The same over the WebSocket, whose heartbeat is a ping. */
function readSocket(url: string, batch: string, after: number, cut: boolean): Promise<Events> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/stream`)
  const ids: number[] = []
  const say = (message: object) => socket.send(JSON.stringify(message))
  socket.on('open', () => {
    say({ type: 'subscribe', batch, after, groups: false })
    say({ type: 'credit', events: 100_000 })
  })
  return new Promise<Events>((resolve, reject) => {
    socket.on('error', reject)
    socket.on('message', (data) => {
      const message = JSON.parse(String(data))
      if (message.type === 'event') ids.push(message.event.n)
      if (message.type === 'error') reject(new Error(message.detail))
      if (message.type === 'done') resolve({ ids, ended: true })
    })
    socket.on('ping', () => cut && resolve({ ids, ended: false }))
    // A machine that stalls may answer too late for so short a heartbeat.
    socket.on('close', () => resolve({ ids, ended: false }))
  }).finally(() => socket.terminate())
}

function escaped(labels = ''): string {
  return labels.replace(/[{}"\\]/g, '\\$&')
}
