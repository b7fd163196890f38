// What a batch does to others, to memory and to itself when it is extreme: bounds are its own, and it always ends.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Client } from 'undici'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JsonObject } from '../protocol/json.ts'
import { type House, openHouse } from './testkit/house.testkit.ts'
import { writeLab } from './testkit/lab-environment.testkit.ts'

const lab = writeLab()
let house: House
let count = 0
beforeAll(async () => {
  house = await openHouse({
    tokens: false,
    simulator: { style: { format: 'hermes', thinking: false, mix: { correct: 1, wrong: 1 } } },
    settings: {
      environments: { lab: lab.module },
      limits: { max_groups_ready: 4, max_bytes: 40_000 },
    },
  })
}, 60_000)
afterAll(() => house.close())

const sums = (...indexes: number[]) => indexes.map((index) => ({ task: `arithmetic/sum-${index}` }))

const batch = (some: JsonObject = {}): JsonObject => ({
  id: `robust-${count++}`,
  tasks: sums(0),
  group_size: 4,
  policy: { sampling: { max_tokens: 256, seed: 5 } },
  ...some,
})

/** A lab task whose reward is what it says. */
const paid = (quality: number) => ({
  spec: { request: 'Measure.', rewards: { quality } },
  environment: 'lab',
})
const wideContract = {
  name: 'wide',
  version: 1,
  fields: { quality: { type: 'number', required: true } },
  scalar: 'quality',
}

describe('estimators that look at the whole batch', () => {
  test('divide by one deviation over all groups, not by each group’s own', async () => {
    // Two flat groups far apart, and the same two alone: only the batch's deviation tells them apart.
    const advantage = { estimator: 'grpo', settings: { scale: 'batch_std' } }
    const { groups } = await house.run(
      batch({
        tasks: sums(0, 1, 2),
        group_size: 8,
        advantage,
        groups: { zero_variance: 'deliver' },
      }),
    )
    const rewards = groups.map(({ episodes }) => episodes.map(({ reward }) => reward ?? Number.NaN))
    const all = rewards.flat()
    const mean = (values: number[]) => values.reduce((a, b) => a + b, 0) / values.length
    const center = mean(all)
    const std = Math.sqrt(all.reduce((sum, r) => sum + (r - center) ** 2, 0) / (all.length - 1))
    expect(groups).toHaveLength(3)
    for (const [index, { episodes }] of groups.entries()) {
      const own = rewards[index] as number[]
      for (const [k, { advantage }] of episodes.entries())
        expect(advantage).toBeCloseTo(((own[k] as number) - mean(own)) / (std + 1e-6), 6)
    }
  })

  test('come to their end however small the bound on waiting bytes is', async () => {
    const { groups, progress } = await house.run(
      batch({
        tasks: sums(...Array(20).keys()),
        advantage: { estimator: 'reinforce_pp_baseline' },
      }),
    )
    expect(progress.done).toBe(true)
    expect(groups).toHaveLength(20)
  }, 40_000)
})

test('a reward whose square no double holds is delivered as it is', async () => {
  const { groups } = await house.run(
    batch({
      tasks: [paid(1e160)],
      reward: { contract: wideContract },
      groups: { zero_variance: 'deliver' },
    }),
  )
  expect(groups[0]?.episodes.map(({ reward }) => reward)).toEqual(Array(4).fill(1e160))
})

test('failed members that were topped up leave nothing behind', async () => {
  for (let round = 0; round < 6; round++) {
    const spec = { request: 'Measure.', trouble: 'throw', at: 'grade' }
    const tasks = [{ spec: { ...spec, padding: 'x'.repeat(3000) }, environment: 'lab' }]
    await house.run(batch({ tasks, groups: { on_short: 'top_up', attempts: 1 } }))
  }
  const { groups } = await house.run(batch())
  expect(groups).toHaveLength(1)
}, 40_000)

test('a batch that nobody reads holds itself and says so; its neighbour is played', async () => {
  const unread = await house.api.submit(batch({ tasks: sums(...Array(30).keys()) }))
  const { progress } = await house.run(batch({ tasks: sums(31, 32) }))
  expect(progress.groups.finished).toBe(2)
  const held = await house.api.progress(unread.id)
  expect(held.state).toBe('running')
  expect(held.admission).toBe('held')
  expect(held.groups.ready).toBeLessThan(30)
  const rest = await house.run({ ...batch({ tasks: sums(...Array(30).keys()) }), id: unread.id })
  expect(rest.progress).toMatchObject({ done: true, admission: 'open' })
}, 40_000)

test('a held batch goes on when its neighbour is over, though nobody has leased of it', async () => {
  const first = await house.api.submit(
    batch({ tasks: sums(...Array(6).keys()), group_size: 1, mode: 'eval' }),
  )
  const second = await house.api.submit(batch({ tasks: sums(30, 31), group_size: 1, mode: 'eval' }))
  await house.run({ ...batch({ tasks: sums(30, 31), group_size: 1, mode: 'eval' }), id: second.id })
  // Alone it may hold four of its six groups; beside another it could hold two.
  const events = await fetch(`${house.url}/v1/batches/${first.id}/events`)
  let verdicts = 0
  for await (const chunk of events.body as ReadableStream<Uint8Array>) {
    verdicts += Buffer.from(chunk).toString().split('event: verdict').length - 1
    if (verdicts >= 4) break
  }
  expect(verdicts).toBeGreaterThanOrEqual(4)
  const { progress } = await house.run({
    ...batch({ tasks: sums(...Array(6).keys()), group_size: 1, mode: 'eval' }),
    id: first.id,
  })
  expect(progress.done).toBe(true)
}, 20_000)

test('a paused backend stops its own batches and no others', async () => {
  const pause = (paused: boolean) =>
    fetch(`${house.url}/v1/policy`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ backend: 'main', pause: paused }),
    })
  await pause(true)
  const waiting = await house.api.submit(batch())
  expect(await house.api.progress(waiting.id)).toMatchObject({
    admission: 'paused',
    episodes: { started: 0 },
  })
  await pause(false)
  const { progress } = await house.run({ ...batch(), id: waiting.id })
  expect(progress).toMatchObject({ done: true, admission: 'open' })
})

const keys = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, k) => [`k${k}`, k]))

test.each([
  ['9,000 tasks with a typo', { tasks: Array(9000).fill({ tsk: 'a/b' }) }],
  ['200,000 unknown keys', keys(200_000)],
  ['a spec of 300,000 keys', { tasks: [{ spec: keys(300_000) }] }],
])(
  'a body with %s is refused without holding up the others',
  async (_, some) => {
    const body = JSON.stringify(batch(some as JsonObject))
    const large = JSON.stringify(keys(300_000))
    const began = performance.now()
    JSON.parse(large)
    const parseMs = performance.now() - began
    const headers = { 'content-type': 'application/json' }
    const delay = monitorEventLoopDelay({ resolution: 5 })
    delay.enable()
    // On a connection of its own: one that was kept may have been closed while the text was made.
    const client = new Client(house.url)
    const path = '/v1/batches'
    const response = await client.request({ path, method: 'POST', headers, body })
    const problem = (await response.body.json()) as { detail: string }
    delay.disable()
    await client.close()
    expect([400, 422]).toContain(response.statusCode)
    expect(problem.detail.length).toBeLessThan(4000)
    // The largest is parsed once and made text twice here. Sorting its keys takes four times as long, and was done thrice.
    expect(delay.max / 1e6).toBeLessThan(8 * parseMs)
  },
  90_000,
)
