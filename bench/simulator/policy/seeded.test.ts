import fc from 'fast-check'
import { expect, test } from 'vitest'
import { draw, hashIds, pickWeighted } from './seeded.ts'

const ids = fc.array(fc.nat(151_668))

test('the hash of ids is a fold: hashing two parts one after the other hashes the whole', () => {
  fc.assert(
    fc.property(ids, ids, (first, second) => {
      expect(hashIds(second, hashIds(first))).toBe(hashIds([...first, ...second]))
    }),
  )
})

test('a draw lies in [0, 1), is the same for the same parts, and tells apart where parts are cut', () => {
  fc.assert(
    fc.property(fc.array(fc.string()), (parts) => {
      expect(draw(...parts)).toBe(draw(...parts))
      expect(draw(...parts)).toBeGreaterThanOrEqual(0)
      expect(draw(...parts)).toBeLessThan(1)
    }),
  )
  expect(draw('ab', 'c')).not.toBe(draw('a', 'bc'))
})

test('draws are spread evenly: each tenth of [0, 1) holds about a tenth of them', () => {
  const tenths = Array.from({ length: 10 }, () => 0)
  for (let i = 0; i < 10_000; i++) {
    const tenth = Math.floor(draw('seed', i) * 10)
    tenths[tenth] = (tenths[tenth] ?? 0) + 1
  }
  // Ten standard deviations of a binomial count of 10,000 draws at 1/10 are 300.
  for (const count of tenths) expect(Math.abs(count - 1000)).toBeLessThan(300)
})

test.each([
  [[0.5, 0.25, 0.25], 0.49, 0],
  [[0.5, 0.25, 0.25], 0.5, 1],
  [[0.5, 0.25, 0.25], 0.8, 2],
  [[0, 1], 0, 1],
  [[2, 2], 0.75, 1],
])('of weights %j the draw %d falls on %d', (weights, drawn, index) => {
  expect(pickWeighted(weights, drawn)).toBe(index)
})
