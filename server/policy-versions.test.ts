// Versions that trainers announce: a step back is refused, or opens an epoch in which what was begun before is stale.
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { JsonObject } from '../protocol/json.ts'
import { type House, openHouse } from './testkit/house.testkit.ts'

let house: House
beforeAll(async () => {
  house = await openHouse()
}, 60_000)
afterAll(() => house.close())

const announce = async (body: JsonObject) => {
  const response = await fetch(`${house.url}/v1/policy`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: (await response.json()) as JsonObject }
}
const batch = (id: string): JsonObject => ({
  id,
  tasks: [{ task: 'arithmetic/sum-0' }, { task: 'arithmetic/sum-1' }],
  group_size: 2,
  mode: 'eval',
  policy: { sampling: { max_tokens: 256 } },
})

test('groups that were begun before an epoch settle as stale, and later ones are delivered', async () => {
  expect(await announce({ version: 5 })).toMatchObject({
    status: 200,
    body: { backend: 'main', version: 5, epoch: 0 },
  })
  await house.api.submit(batch('before'))
  await expect
    .poll(async () => (await house.api.progress('before')).groups.ready, { timeout: 20_000 })
    .toBe(2)

  const back = await announce({ version: 3 })
  expect(back.status).toBe(409)
  expect(back.body).toMatchObject({ code: 'conflict', path: 'version' })
  expect(back.body.detail).toContain('new_epoch')
  expect((await announce({ new_epoch: true, pause: false })).status).toBe(400)

  expect(await announce({ version: 3, new_epoch: true })).toMatchObject({
    status: 200,
    body: { version: 3, epoch: 1, paused: false },
  })
  const leased = await house.api.lease('before', { max: 8, lease_s: 60, wait_s: 0 })
  expect(leased.groups).toEqual([])
  expect((await house.api.progress('before')).groups.settled).toEqual({ stale: 2 })
  expect((await house.api.progress('before')).done).toBe(true)

  const { groups } = await house.run(batch('after'))
  expect(groups).toHaveLength(2)
  // Another backend has epochs of its own.
  expect((await announce({ backend: 'sglang', version: 1 })).body).toMatchObject({ epoch: 0 })
})

test('O08: a version that restarts never makes staleness negative; an event tells what became of the old groups', async () => {
  const backend = 'sglang'
  expect((await announce({ backend, version: 57 })).status).toBe(200)
  const request: JsonObject = {
    ...batch('failover'),
    tasks: [0, 1, 2, 3].map((n) => ({ task: `arithmetic/sum-${n}` })),
    policy: {
      backend,
      mode: 'tokens',
      version: 57,
      max_staleness: 2,
      sampling: { max_tokens: 256 },
    },
  }
  await house.api.submit(request)
  await expect
    .poll(async () => (await house.api.progress('failover')).groups.ready, { timeout: 30_000 })
    .toBe(4)
  expect(await announce({ backend, version: 1 })).toMatchObject({
    status: 409,
    body: { code: 'conflict', path: 'version' },
  })
  expect((await announce({ backend, version: 'default' })).status).toBe(400)
  expect((await announce({ backend, version: 1, new_epoch: true })).status).toBe(200)

  const leased = await house.api.lease('failover', { max: 8, lease_s: 60, wait_s: 0 })
  expect(leased.groups).toEqual([])
  expect((await house.api.progress('failover')).groups.settled).toEqual({ stale: 4 })
  const told = await (await fetch(`${house.url}/v1/batches/failover/events`)).text()
  expect(told).toMatch(/event: stale\ndata: \{[^\n]*"groups":4/)
  const text = await (await fetch(`${house.url}/metrics`)).text()
  const sums = [...text.matchAll(/^paddock_group_staleness_versions_sum\{[^}]*\} (\S+)/gm)]
  expect(sums.length).toBeGreaterThan(0)
  for (const [, sum] of sums) expect(Number(sum)).toBeGreaterThanOrEqual(0)
}, 60_000)
