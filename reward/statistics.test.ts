import { describe, expect, test } from 'vitest'
import { moments } from './statistics.ts'

describe('moments', () => {
  // Expected: Python's statistics.mean, stdev and pstdev, which compute in exact fractions.
  test.each([
    [[2, 4, 4, 4, 5, 5, 7, 9], 5, 2.138089935299395, 2],
    [[1e9, 1e9 + 1, 1e9 + 2], 1e9 + 1, 1, 0.816496580927726],
    [[0.5, 0.5000005], 0.50000025, 3.535533905641881e-7, 2.4999999997943334e-7],
  ])('of %j', (values, mean, sample, population) => {
    expect(moments(values, 'sample').mean).toBeCloseTo(mean, 12)
    expect(moments(values, 'sample').std / sample).toBeCloseTo(1, 12)
    expect(moments(values, 'population').std / population).toBeCloseTo(1, 12)
  })

  test('of values whose squares would vanish or overflow keep their deviation', () => {
    expect(moments([0, 2e-200], 'population').std).toBe(1e-200)
    expect(moments([0, 2e200], 'population').std).toBe(1e200)
  })

  test('of values whose distance is no double keep their mean, and the deviation that is one', () => {
    const largest = Number.MAX_VALUE
    expect(moments([largest, -largest], 'population')).toMatchObject({ mean: 0, std: largest })
    expect(moments([largest, largest / 2], 'sample').mean).toBe(0.75 * largest)
    expect(moments([largest, -largest], 'sample').std).toBe(Number.POSITIVE_INFINITY)
  })

  test('of nothing, one and equal values have deviation 0', () => {
    expect(moments([], 'sample')).toEqual({ n: 0, mean: 0, std: 0, deviations: [] })
    expect(moments([0.7], 'sample')).toEqual({ n: 1, mean: 0.7, std: 0, deviations: [0] })
    const seven = moments(
      Array.from({ length: 7 }, () => 0.7),
      'sample',
    )
    expect(seven).toMatchObject({ mean: 0.7, std: 0, deviations: [0, 0, 0, 0, 0, 0, 0] })
  })
})
