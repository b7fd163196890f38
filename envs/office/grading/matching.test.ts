// Maximum matching against all assignments tried by brute force.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { maximumMatching } from './matching.ts'

/** The most items that can be served, by trying every assignment. */
function bruteForce(
  fits: readonly (readonly number[])[],
  taken: ReadonlySet<number> = new Set(),
): number {
  const [first, ...rest] = fits
  if (!first) return 0
  const without = bruteForce(rest, taken)
  const served = first
    .filter((candidate) => !taken.has(candidate))
    .map((candidate) => 1 + bruteForce(rest, new Set([...taken, candidate])))
  return Math.max(without, ...served)
}

test('an item gives way where another candidate serves it', () => {
  expect(maximumMatching([[0, 1], [0]])).toEqual([1, 0])
})

test('one candidate never serves two items', () => {
  const matched = maximumMatching([[0], [0], [0]])
  expect(matched.filter((candidate) => candidate === 0)).toHaveLength(1)
})

test('as many items are served as any assignment can', () => {
  const fits = fc.array(fc.uniqueArray(fc.integer({ min: 0, max: 5 }), { maxLength: 4 }), {
    maxLength: 6,
  })
  fc.assert(
    fc.property(fits, (accepts) => {
      const matched = maximumMatching(accepts)
      const used = matched.filter((candidate) => candidate !== null)
      expect(new Set(used).size).toBe(used.length)
      for (const [item, candidate] of matched.entries())
        if (candidate !== null) expect(accepts[item]).toContain(candidate)
      expect(used).toHaveLength(bruteForce(accepts))
    }),
  )
})
