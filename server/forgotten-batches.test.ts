// What a server remembers of batches that are done: the newest, up to so many episodes, whatever their sizes.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type House, openHouse } from './testkit/house.testkit.ts'

let house: House
beforeAll(async () => {
  house = await openHouse({ tokens: false, settings: { limits: { keep_episodes: 6 } } })
}, 60_000)
afterAll(() => house.close())

async function play(id: string, groups: number): Promise<void> {
  const tasks = Array.from({ length: groups }, (_, index) => ({ task: `arithmetic/sum-${index}` }))
  await house.api.submit({ id, tasks, group_size: 2, mode: 'eval' })
  for (;;) {
    const leased = await house.api.lease(id, { max: 8, lease_s: 60, wait_s: 20 })
    if (leased.groups.length > 0) await house.api.ack(id, leased.groups)
    if (leased.done) return
  }
}
const status = async (id: string) => (await fetch(`${house.url}/v1/batches/${id}`)).status

test('older batches are forgotten by the episodes that newer ones hold, the newest never; their ids stay taken', async () => {
  await play('a', 1)
  await play('b', 2)
  await play('c', 1)
  // Two, four and two episodes are done when the next is submitted: with `a` there would be eight.
  await play('large', 5)
  expect(await Promise.all(['a', 'b', 'c', 'large'].map(status))).toEqual([410, 200, 200, 200])
  // Ten are more than are kept, but these are the last that anyone waited for.
  await play('last', 1)
  expect(await Promise.all(['b', 'c', 'large', 'last'].map(status))).toEqual([410, 410, 200, 200])
  const again = await house.api.submit({
    id: 'a',
    tasks: [{ task: 'arithmetic/sum-0' }],
    group_size: 2,
    mode: 'eval',
  })
  expect(again.id).toBe('a')
})
