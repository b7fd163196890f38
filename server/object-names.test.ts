// Names that every object of JavaScript has are names like any other, wherever one comes from outside.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JsonObject } from '../protocol/json.ts'
import { type House, openHouse } from './testkit/house.testkit.ts'

const NAMES = [...Object.getOwnPropertyNames(Object.prototype)]

let house: House
beforeAll(async () => {
  house = await openHouse({ tokens: false })
}, 60_000)
afterAll(() => house.close())

const batch = (some: JsonObject): JsonObject => ({
  tasks: [{ task: 'arithmetic/sum-0' }],
  group_size: 1,
  ...some,
})

async function post(path: string, body: JsonObject): Promise<{ status: number; text: string }> {
  const answer = await fetch(house.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: answer.status, text: await answer.text() }
}

describe.each(NAMES)('%s', (name) => {
  test('as the id of a batch is played and delivered, or refused as an id', async () => {
    const submitted = await post('/v1/batches', batch({ id: name, mode: 'eval' }))
    if (submitted.status === 400) {
      expect(JSON.parse(submitted.text)).toMatchObject({ path: 'id' })
      return
    }
    expect(submitted.status).toBe(202)
    const leased = await post(`/v1/batches/${name}/lease`, { wait_s: 20 })
    expect(JSON.parse(leased.text).groups).toHaveLength(1)
  })

  test.each([
    ['task', '/v1/batches', batch({ tasks: [{ task: name }] })],
    ['environment', '/v1/batches', batch({ tasks: [{ spec: {}, environment: name }] })],
    ['backend', '/v1/batches', batch({ policy: { backend: name } })],
    ['contract', '/v1/batches', batch({ reward: { contract: name } })],
    ['contract with a version', '/v1/batches', batch({ reward: { contract: `${name}@1` } })],
    ['field that is read', '/v1/batches', batch({ reward: { reads: [name] } })],
    ['estimator', '/v1/batches', batch({ advantage: { estimator: name } })],
    [
      'preset',
      '/v1/batches',
      batch({ advantage: { estimator: 'grpo', settings: { preset: name } } }),
    ],
    [
      'pack of slime',
      '/start_rollout',
      { task_type: name, num_repeat_per_sample: 1, num_epoch: 1 },
    ],
  ])('as a %s is refused, and the name is told', async (_, path, body) => {
    const { status, text } = await post(path, body)
    expect(status).toBeGreaterThanOrEqual(400)
    expect(status).toBeLessThan(500)
    expect(text).not.toContain('native code')
  })
})
