// What waits for a trainer lies in the ledger and not on the heap; and when there is too much of it, no more is taken.
import { expect, it, test } from 'vitest'
import { scrape } from '../metrics/scrape.testkit.ts'
import { openHouse } from '../testkit/house.testkit.ts'
import { endOf, openBench, place } from './ledger.testkit.ts'
import { StoreFailed } from './store.ts'

it('O05: finished members of open groups lie in the ledger: memory stays where it was', async () => {
  const bench = await openBench('lmdb', { maxBytes: 2 ** 34 })
  const { ledger } = bench
  await ledger.submit({ id: 'b', request: '{}', digest: 'd', plan: {} })
  const before = process.memoryUsage()
  // 31 finished members of each of 10 groups, with tapes of 100,000 tokens at 9 bytes.
  for (let group = 0; group < 10; group++)
    await Promise.all(
      Array.from({ length: 31 }, (_, index) => {
        const blob = new Uint8Array(900_000).fill(index)
        const sealed = { header: { row_bytes: 1 } as never, blob }
        return ledger.end(place('b', group, index), endOf(group, index), sealed)
      }),
    )
  expect(ledger.heldBytes('b')).toBe(10 * 31 * 900_000)
  globalThis.gc?.()
  const { arrayBuffers, heapUsed } = process.memoryUsage()
  const grown = arrayBuffers + heapUsed - before.arrayBuffers - before.heapUsed
  // All of it would be 279 MB; what a collector has not come to yet is that of two groups.
  expect(grown).toBeLessThan(120e6)
  await bench.close()
}, 120_000)

it('O05: when the ready store is full a new batch is answered 429 with Retry-After, until groups are taken', async () => {
  const house = await openHouse({
    tokens: false,
    settings: { limits: { max_groups_ready: 2 } },
  })
  try {
    const tasks = [0, 1].map((index) => ({ task: `arithmetic/sum-${index}` }))
    const request = { id: 'full', tasks, group_size: 1, mode: 'eval' }
    await house.api.submit(request)
    const all = await house.api.lease('full', { max: 2, lease_s: 60, wait_s: 20 })
    while (all.groups.length < 2)
      all.groups.push(
        ...(await house.api.lease('full', { max: 2, lease_s: 60, wait_s: 20 })).groups,
      )
    const headers = { 'content-type': 'application/json' }
    const handles = all.groups.map(({ id, lease }) => ({ id, lease: lease.id }))
    const nack = JSON.stringify({ groups: handles })
    await fetch(`${house.url}/v1/batches/full/nack`, { method: 'POST', headers, body: nack })
    const submit = () =>
      fetch(`${house.url}/v1/batches`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ ...request, id: 'next' }),
      })
    const refused = await submit()
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await refused.json()).toMatchObject({ code: 'queue_full' })
    const told = await scrape(house.url)
    expect(told.sum('requests_rejected_total', { reason: 'ready_full' })).toBe(1)
    expect(told.sum('requests_rejected_total')).toBe(1)
    const again = await house.api.lease('full', { max: 2, lease_s: 60, wait_s: 20 })
    await house.api.ack('full', again.groups)
    expect((await submit()).status).toBe(202)
  } finally {
    await house.close()
  }
}, 120_000)

test('after the store is closed nothing is acknowledged any more', async () => {
  const { ledger, store, close } = await openBench('lmdb')
  await store.close()
  await expect(ledger.keepNote('a', {})).rejects.toBeInstanceOf(StoreFailed)
  await close()
})
