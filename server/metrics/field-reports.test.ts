// Public reports of metrics that misled, played through the server.
import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { createServer, request as forward } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { EpisodeHeader } from '../../protocol/sealed.ts'
import { type House, openHouse } from '../testkit/house.testkit.ts'
import { createMetrics } from './metrics.ts'
import { scrape } from './scrape.testkit.ts'

// Servers on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

const houses: House[] = []
afterEach(async () => {
  vi.restoreAllMocks()
  await Promise.all(houses.splice(0).map((house) => house.close()))
})

/** One thread, whose environment counts its resets: in each five, two end well after two turns and three badly after eight. */
const UNEVEN = `
let resets = 0
export default {
  contract: { name: 'uneven', version: 1, scalar: 'score', components: ['score'],
    fields: { score: { type: 'number', min: 0, max: 1, required: true } } },
  problems: () => [],
  describe: ({ spec }) => ({ title: spec.request, limits: {} }),
  reset({ spec }) {
    const place = resets++ % (spec.plan === 'short' ? 8 : 5)
    return { spec, calls: 0, wins: spec.plan === 'zero' ? false : place < 2 }
  },
  open: ({ spec }) => [{ role: 'user', content: spec.request }],
  tools: () => [{ type: 'function', function: { name: 'dig', description: 'Digs.', parameters: { type: 'object', properties: {} } } }],
  step(state) {
    if (state.spec.plan === 'short' && !state.wins) throw new Error('the spade broke')
    const next = { ...state, calls: state.calls + 1 }
    const over = next.calls >= (state.wins ? 2 : 8)
    return { state: next, observation: { content: 'earth', is_error: false }, audit: {}, ...(over && { end: 'over' }) }
  },
  hear: (state) => state,
  reply: (state) => ({ state, end: 'final' }),
  grade: ({ wins }) => ({ status: 'scored', rewards: { score: wins ? 1 : 0 }, evidence: {} }),
  anchor: ({ calls }) => 'a' + calls,
}
`
const REQUEST = 'Dig until you find it.'
const digs = Array.from({ length: 8 }, () => ({ call: 'dig', args: {} }))
const SCRIPTS = [{ match: REQUEST, transcripts: { correct: { steps: digs } } }]
const uneven = (plan: string) => ({ spec: { request: REQUEST, plan }, environment: 'uneven' })

async function openUneven(): Promise<House> {
  const module = join(mkdtempSync(join(tmpdir(), 'paddock-uneven-')), 'uneven.mjs')
  writeFileSync(module, UNEVEN)
  const house = await openHouse({
    tokens: false,
    simulator: { scripts: SCRIPTS },
    settings: { environments: { uneven: module }, runtime: { threads: 1 }, shipped_packs: false },
  })
  houses.push(house)
  return house
}

describe('M01', () => {
  it('M01: a reward counts once an episode, however many turns and samples it has', async () => {
    const house = await openUneven()
    const { progress } = await house.run({
      tasks: [uneven('long'), uneven('long')],
      group_size: 5,
      mode: 'eval',
    })
    const { sum } = await scrape(house.url)
    expect(progress.episodes.mean_reward).toBeCloseTo(0.4, 12)
    expect(sum('reward_count')).toBe(10)
    expect(sum('reward_positive_sum_total') / sum('reward_count')).toBeCloseTo(0.4, 12)
    // Four of two turns and six of eight: the mean over turns would be 8 / 56.
    expect(sum('episode_turns_sum')).toBe(56)
    const report = await house.api.evaluation(progress.id, 'k=1')
    expect(report.reward.mean).toBeCloseTo(0.4, 12)
    expect(report.pass[0]?.rates?.pass_at_k).toBeCloseTo(0.4, 12)
  })

  it('M01: samples have a counter of their own', async () => {
    const metrics = createMetrics(LISTS, SOURCES)
    const turn = (sample: number) => ({ sample, start: 0, end: 1, anchor: '', reward: 0 })
    for (let index = 0; index < 10; index++)
      metrics.episodeFinished({
        env: 'office',
        mode: 'train',
        outcome: 'ok',
        header: {
          reward: index < 4 ? 1 : 0,
          rewards: null,
          turns: index < 4 ? [turn(0), turn(0)] : [0, 0, 0, 1, 1, 1, 2, 2].map(turn),
          completion_tokens: 9,
          mean_logprob: null,
        } as unknown as EpisodeHeader,
        seconds: 1,
        playedSeconds: 0,
        backend: 'main',
        group: 'g',
        episode: `e${index}`,
      })
    const { text } = await metrics.text('plain')
    expect(text).toContain('paddock_episode_samples_total{env="office",mode="train"} 22\n')
    expect(text).toContain('paddock_reward_count{env="office",mode="train"} 10\n')
    expect(text).toContain('paddock_reward_positive_sum_total{env="office",mode="train"} 4\n')
  })
})

it('M03: the mean reward is over episodes wherever it is told, and a group tells its own', async () => {
  const house = await openUneven()
  const { groups, progress } = await house.run({
    tasks: [uneven('short')],
    group_size: 8,
    mode: 'eval',
    groups: { attempts: 1, on_short: 'close', min_scored: 2 },
  })
  const flat = await house.run({ tasks: [uneven('zero')], group_size: 8, mode: 'eval' })
  expect(groups[0]?.stats).toMatchObject({ n: 8, scored: 2, mean: 1 })
  expect(flat.groups[0]?.stats).toMatchObject({ n: 8, scored: 8, mean: 0 })
  expect(progress.episodes.mean_reward).toBe(1)
  expect(flat.progress.episodes.mean_reward).toBe(0)
  // Two of ten episodes, not one of two groups.
  const { sum } = await scrape(house.url)
  expect(sum('reward_count')).toBe(10)
  expect(sum('reward_positive_sum_total') / sum('reward_count')).toBe(0.2)
})

describe('M06', () => {
  it('M06: names that come from outside make no series', async () => {
    const house = await openUneven()
    const post = (path: string, body: unknown) =>
      fetch(house.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    const batch = { tasks: [uneven('long')], group_size: 1 }
    const asked: ((index: number) => Promise<Response>)[] = [
      (index) => fetch(`${house.url}/scan/${index}.php`),
      (index) => fetch(`${house.url}/v1/batches/${index}`, { method: 'PUT' }),
      (index) => fetch(`${house.url}/v1/batches/b-${index}`),
      (index) => post('/v1/batches', { tasks: [{ task: `office/t${index}` }], group_size: 1 }),
      (index) => post('/v1/batches', { ...batch, policy: { backend: `model-${index}` } }),
      (index) => post('/v1/batches', { ...batch, reward: { contract: `c${index}@1` } }),
    ]
    for (const ask of asked) await (await ask(0)).arrayBuffer()
    const before = await scrape(house.url)
    let refused = 0
    for (let index = 0; index < 5_000; index += 50)
      await Promise.all(
        Array.from({ length: 50 }, async (_, at) => {
          const ask = asked[at % asked.length] as (typeof asked)[number]
          const response = await ask(index + at)
          await response.arrayBuffer()
          if (response.status !== 405) refused++
        }),
      )
    const after = await scrape(house.url)
    expect(after.series).toBe(before.series)
    const rejected = (one: typeof after) => one.sum('requests_rejected_total')
    expect(rejected(after) - rejected(before)).toBe(refused)
    expect(after.sum('http_request_duration_seconds_count', { route: 'other' })).toBeGreaterThan(
      800,
    )
  })

  it('M06: calls with invented names are counted as other', async () => {
    const metrics = createMetrics(LISTS, SOURCES)
    const series = async () => (await metrics.text('plain')).text.match(/^paddock_/gm)?.length
    const before = await series()
    for (let index = 0; index < 5_000; index++)
      metrics.spent({
        env: 'office',
        calls: [{ tool: null, outcome: 'bad_args', seconds: 0.001 }],
        graded: null,
        seconds: 0.001,
      })
    expect(await series()).toBe(before)
    const { text } = await metrics.text('plain')
    expect(text).toContain('paddock_label_overflow_total{label="tool"} 5000\n')
  })
})

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

it('M11: a cut connection, fifty times, costs no event and brings none twice', async () => {
  const house = await openUneven()
  const { id } = await house.api.submit({
    tasks: Array.from({ length: 6 }, () => uneven('long')),
    group_size: 5,
    mode: 'eval',
  })
  const url = `${house.url}/v1/batches/${id}/events`
  /** Leaves once it has so many, which cuts the connection. */
  const read = async (headers: Record<string, string>, query: string, cutAfter: number) => {
    const response = await fetch(url + query, { headers })
    const ids: number[] = []
    let text = ''
    for await (const chunk of response.body ?? []) {
      text += new TextDecoder().decode(chunk)
      for (const frame of text.split('\n\n').slice(0, -1))
        ids.push(Number(/^id: (\d+)$/m.exec(frame)?.[1]))
      text = text.slice(text.lastIndexOf('\n\n') + 2)
      if (ids.length >= cutAfter) break
    }
    return ids
  }
  const follow = async (resume: (after: number) => Promise<number[]>) => {
    const got: number[] = []
    for (let round = 0; round < 50; round++) got.push(...(await resume(got.at(-1) ?? 0)))
    got.push(...(await read({}, `?after=${got.at(-1) ?? 0}`, Number.POSITIVE_INFINITY)))
    return got
  }
  const leased = (async () => {
    for (let done = false; !done; ) {
      const answer = await house.api.lease(id, { max: 4, lease_s: 60, wait_s: 5 })
      if (answer.groups.length > 0) await house.api.ack(id, answer.groups)
      done = answer.done
    }
  })()
  const [one, other] = await Promise.all([
    follow((after) => read({ 'last-event-id': String(after) }, '', 3)),
    follow((after) => read({}, `?after=${after}`, 2)),
    leased,
  ])
  const all = Array.from({ length: one.at(-1) ?? 0 }, (_, index) => index + 1)
  expect(all.length).toBeGreaterThan(100)
  expect(one).toEqual(all)
  expect(other).toEqual(all)
  expect((await fetch(`${url}?after=${all.length + 7}`)).status).toBe(400)
}, 120_000)

const LISTS = {
  env: ['office'],
  backend: ['main'],
  component: { office: ['completion'] },
  version: '1',
  node: 'v20',
}
const SOURCES = {
  pool: () => ({ threads: 1, busy: 0, starting: 0, queued: 0, busySeconds: [0] }),
  queueDepth: () => ({ episodes: 0, ready: 0, leased: 0 }),
  queueCapacity: { batches: 1, ready: 1 },
  batches: () => ({ open: 0, heldBytes: 0, paused: new Set<never>() }),
  oldestReady: () => 0,
  backendInFlight: () => 0,
  socketBytes: () => 0,
  store: () => null,
}

function escaped(labels = ''): string {
  return labels.replace(/[{}"\\]/g, '\\$&')
}
