import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { passAtK, passHatK, passReport, type TaskTrials } from './pass-at-k.ts'

function choose(n: number, k: number): number {
  let ways = 1
  for (let draw = 0; draw < k; draw++) ways = (ways * (n - draw)) / (draw + 1)
  return k > n ? 0 : ways
}

function task(name: string, family: string, rewards: (number | null)[]): TaskTrials {
  return { task: name, family, rewards }
}

describe('pass@k of one task', () => {
  test.each([
    // The share of k-subsets with a pass, counted by hand.
    [3, 1, 1, 1 / 3],
    [3, 1, 2, 2 / 3],
    [4, 2, 2, 5 / 6],
    [5, 0, 3, 0],
    [5, 3, 3, 1],
    [3, 3, 3, 1],
  ])('of %i trials with %i passed and k %i is %f', (n, passed, k, expected) => {
    expect(passAtK(n, passed, k)).toBeCloseTo(expected, 12)
  })

  test('has no value with fewer trials than k', () => {
    expect(passAtK(2, 2, 3)).toBeNull()
    expect(passHatK(2, 2, 3)).toBeNull()
  })

  test('is one minus the chance of drawing failures only', () => {
    const trials = fc
      .integer({ min: 1, max: 20 })
      .chain((n) =>
        fc.record({ n: fc.constant(n), c: fc.nat(n), k: fc.integer({ min: 1, max: n }) }),
      )
    fc.assert(
      fc.property(trials, ({ n, c, k }) => {
        expect(passAtK(n, c, k)).toBeCloseTo(1 - choose(n - c, k) / choose(n, k), 12)
        expect(passHatK(n, c, k)!.unbiased).toBeCloseTo(choose(c, k) / choose(n, k), 12)
      }),
    )
  })
})

describe('pass^k of one task', () => {
  test.each([
    [3, 3, 3, { all_passed: 1, power: 1, unbiased: 1 }],
    [3, 2, 3, { all_passed: 0, power: 8 / 27, unbiased: 0 }],
    [4, 2, 2, { all_passed: 0, power: 1 / 4, unbiased: 1 / 6 }],
    [4, 4, 2, { all_passed: 1, power: 1, unbiased: 1 }],
    [4, 3, 1, { all_passed: 0, power: 3 / 4, unbiased: 3 / 4 }],
  ])('of %i trials with %i passed and k %i has three values', (n, passed, k, expected) => {
    const { all_passed, power, unbiased } = passHatK(n, passed, k)!
    expect(all_passed).toBe(expected.all_passed)
    expect(power).toBeCloseTo(expected.power, 12)
    expect(unbiased).toBeCloseTo(expected.unbiased, 12)
  })
})

describe('a report', () => {
  const tasks = [
    task('a1', 'a', [1, 1, 1]),
    task('a2', 'a', [0.75, 0.7, 0]),
    task('a3', 'a', [0, 0, 0]),
    task('b1', 'b', [1, 1, 0.8]),
  ]

  test('passes a trial at the threshold of 0.75', () => {
    const { rates } = passReport([task('t', 'f', [0.75, 0.7499])], { k: 1 })
    expect(rates!.pass_at_k).toBe(0.5)
    const strict = passReport([task('t', 'f', [0.75, 0.7499])], { k: 1, threshold: 0.7499 })
    expect(strict.rates!.pass_at_k).toBe(1)
  })

  test('weighs families by their tasks', () => {
    const report = passReport(tasks, { k: 3 })
    const [a, b] = report.families
    expect(a).toMatchObject({ family: 'a', tasks: 3 })
    expect(a!.rates!.pass_at_k).toBeCloseTo(2 / 3, 12)
    expect(a!.rates!.all_passed).toBeCloseTo(1 / 3, 12)
    expect(b!.rates).toEqual({ pass_at_k: 1, all_passed: 1, power: 1, unbiased: 1 })
    expect(report.rates!.pass_at_k).toBeCloseTo(3 / 4, 12)
    expect(report.rates!.all_passed).toBeCloseTo(2 / 4, 12)
    expect(report.rates!.power).toBeCloseTo((1 + 1 / 27 + 0 + 1) / 4, 12)
    expect(report.intervals).toBeNull()
  })

  test('counts an unscored trial for nothing, and tells tasks that are short of trials', () => {
    const report = passReport([task('t', 'f', [1, null, 1]), task('u', 'f', [1, null, null])], {
      k: 2,
    })
    expect(report).toMatchObject({ tasks: 1, short: 1, scored: 3, unscored: 3 })
    expect(report.rates).toEqual({ pass_at_k: 1, all_passed: 1, power: 1, unbiased: 1 })
  })

  test('has no rates where no task has enough trials', () => {
    const bootstrap = { random: () => 0 }
    const report = passReport([task('t', 'f', [1])], { k: 2, bootstrap })
    expect(report).toMatchObject({ tasks: 0, short: 1, rates: null, intervals: null })
    expect(passReport([], { k: 1, bootstrap })).toMatchObject({ rates: null, families: [] })
  })

  test('refuses a k that is no count', () => {
    expect(() => passReport(tasks, { k: 0 })).toThrow(/k: expected an integer from 1, got 0/)
  })
})

describe('bootstrap intervals', () => {
  // A linear congruential generator (Numerical Recipes) is dice enough for a test.
  function seeded(seed: number): () => number {
    let state = seed
    return () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
      return state / 2 ** 32
    }
  }

  const half = Array.from({ length: 100 }, (_, index) => task(`t${index}`, 'f', [index % 2]))

  test('are near the normal interval of a mean of a hundred coins', () => {
    const { intervals } = passReport(half, {
      k: 1,
      bootstrap: { random: seeded(7), resamples: 2000 },
    })
    const [low, high] = intervals!.pass_at_k!
    // 0.5 +- 1.96 sqrt(0.25 / 100) = 0.402 to 0.598.
    expect(Math.abs(low - 0.402)).toBeLessThan(0.02)
    expect(Math.abs(high - 0.598)).toBeLessThan(0.02)
  })

  test('depend on the generator alone', () => {
    const settings = (seed: number) => ({ k: 1, bootstrap: { random: seeded(seed) } })
    expect(passReport(half, settings(7))).toEqual(passReport(half, settings(7)))
  })

  test('narrow with the level and keep families apart', () => {
    const settings = (level: number) => ({ k: 1, bootstrap: { random: seeded(3), level } })
    const [wideLow, wideHigh] = passReport(half, settings(0.99)).intervals!.pass_at_k!
    const [low, high] = passReport(half, settings(0.5)).intervals!.pass_at_k!
    expect(wideHigh - wideLow).toBeGreaterThan(high - low)
    // Within each family all tasks agree, so drawing within families cannot move the mean: nothing is known of it.
    const split = half.map((each, index) => ({ ...each, family: `f${index % 2}` }))
    expect(passReport(split, settings(0.99)).intervals!.pass_at_k).toBeNull()
  })
})
