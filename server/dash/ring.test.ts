// The ring: bounded in moments and series, and in order after it has gone round.
import { expect, test } from 'vitest'
import { seriesIn } from './evaluate.ts'
import { createRing, type Ring } from './ring.ts'

const named = (ring: Ring, name: string) => seriesIn(ring.table(name))
const sample = (name: string, value: number, labels = {}) => ({ name, labels, value })

test('after it has gone round, the newest moments are there in their order', () => {
  const ring = createRing(3, 10)
  for (let at = 1; at <= 5; at++) ring.add(at, [sample('a', 10 * at)])
  const [series] = named(ring, 'a')
  expect([...series!.times]).toEqual([3, 4, 5])
  expect([...series!.values]).toEqual([30, 40, 50])
})

test('a series is NaN where it was not read', () => {
  const ring = createRing(3, 10)
  ring.add(1, [sample('a', 1)])
  ring.add(2, [sample('a', 2), sample('b', 7)])
  ring.add(3, [sample('b', 8)])
  expect([...named(ring, 'a')[0]!.values]).toEqual([1, 2, Number.NaN])
  expect([...named(ring, 'b')[0]!.values]).toEqual([Number.NaN, 7, 8])
})

test('series beyond the bound are left out and counted', () => {
  const ring = createRing(2, 2)
  for (const at of [1, 2])
    ring.add(at, [
      sample('a', 1, { env: 'x' }),
      sample('a', 1, { env: 'y' }),
      sample('a', 1, { env: 'z' }),
    ])
  expect(named(ring, 'a').map(({ labels }) => labels)).toEqual([{ env: 'x' }, { env: 'y' }])
  expect(ring.left()).toBe(1)
})
