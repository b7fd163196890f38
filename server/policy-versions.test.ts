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
