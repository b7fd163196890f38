// What is read at a scrape says what its name says: a queue holds what waits in it, and silence is measured on one clock.
import { afterEach, expect, test, vi } from 'vitest'
import { type House, openHouse } from '../testkit/house.testkit.ts'
import { createMetrics } from './metrics.ts'
import { QUIET } from './quiet.testkit.ts'
import { scrape } from './scrape.testkit.ts'

vi.setConfig({ testTimeout: 120_000 })

let house: House | null = null
afterEach(async () => {
  await house?.close()
  house = null
})

test('a batch that is played waits no more, whether its groups are read or not', async () => {
  // A limit of one: what counts against it is what waits.
  house = await openHouse({ settings: { limits: { max_batches: 1 } } })
  const submit = (id: string) =>
    house!.api.submit({ id, tasks: [{ task: 'arithmetic/sum-0' }], group_size: 2 })
  const played = (id: string) =>
    expect.poll(async () => (await house!.api.progress(id)).state, { timeout: 60_000 })
  for (const id of ['first', 'second']) {
    await submit(id)
    await played(id).toBe('finished')
  }
  const { sum } = await scrape(house.url)
  expect(sum('queue_depth', { queue: 'ready' })).toBe(2)
  expect(sum('queue_capacity', { queue: 'submit' })).toBe(1)
  expect(sum('queue_depth', { queue: 'submit' })).toBe(0)
  expect(sum('queue_oldest_age_seconds', { queue: 'submit' })).toBe(0)
})

test('a trainer is silent since its last word, else since the server began, whatever the wall clocks say', async () => {
  let ms = 5000
  const lists = { env: [], backend: [], component: {}, version: '1', node: 'v20' }
  const metrics = createMetrics(lists, QUIET, () => ms)
  const silent = async () =>
    Number(/^paddock_trainer_silent_seconds (\S+)$/m.exec((await metrics.text('plain')).text)?.[1])
  ms += 7000
  expect(await silent()).toBe(7)
  metrics.trainerSeen(1_900_000_000)
  expect(await silent()).toBe(0)
  ms += 61_000
  expect(await silent()).toBe(61)
  metrics.heartbeat(3, null, 1_000_000_000)
  ms += 2000
  expect(await silent()).toBe(2)
})
