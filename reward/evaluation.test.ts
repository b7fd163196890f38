// Evaluation reports: families by their tasks, failures apart, intervals by their seed.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { EPISODE_OUTCOMES, isScored } from '../protocol/outcomes.ts'
import { type EvaluatedTask, evaluationReport, evaluationSettingsSchema } from './evaluation.ts'

const settings = (some: object = {}) => evaluationSettingsSchema.parse({ k: [1, 2], ...some })

const task = (name: string, family: string, rewards: (number | null)[]): EvaluatedTask => ({
  task: name,
  family,
  episodes: rewards.map((reward) => ({
    outcome: reward === null ? ('infra_backend' as const) : ('ok' as const),
    reward,
  })),
})

const mixed = [
  task('a', 'sales', [1, 0, 0, 0]),
  task('b', 'sales', [1, 1, null, 0.75]),
  task('c', 'ops', [0.5, 0.5]),
]

describe('a report', () => {
  test('weighs families by their tasks and tasks alike', () => {
    const { reward } = evaluationReport(mixed, settings())
    // Tasks: 1/4, 2.75/3, 1/2.
    expect(reward.mean).toBeCloseTo((0.25 + 2.75 / 3 + 0.5) / 3, 12)
    expect(reward.families).toEqual([
      { family: 'sales', tasks: 2, mean: expect.closeTo((0.25 + 2.75 / 3) / 2, 12) },
      { family: 'ops', tasks: 1, mean: 0.5 },
    ])
  })

  test('has a rate for each k under the three names of pass^k', () => {
    const [one, two] = evaluationReport(mixed, settings()).pass
    // Passing trials: 1 of 4, 3 of 3, 0 of 2.
    expect(one).toMatchObject({ k: 1, rates: { pass_at_k: expect.closeTo((0.25 + 1) / 3, 12) } })
    // 1 - C(3,2)/C(4,2) = 1/2; (1/4)^2; C(1,2)/C(4,2) = 0.
    expect(two).toMatchObject({
      k: 2,
      rates: {
        pass_at_k: expect.closeTo((0.5 + 1 + 0) / 3, 12),
        all_passed: expect.closeTo(1 / 3, 12),
        power: expect.closeTo((1 / 16 + 1) / 3, 12),
        unbiased: expect.closeTo(1 / 3, 12),
      },
    })
  })

  test('tells what failed apart, and never counts it as 0', () => {
    const report = evaluationReport(mixed, settings())
    expect(report).toMatchObject({ episodes: 10, scored: 9, unscored: { infra_backend: 1 } })
    const lost = evaluationReport([task('a', 'x', [null, null])], settings())
    expect(lost.reward).toMatchObject({ tasks: 0, mean: null, interval: null })
    expect(lost.pass[0]).toMatchObject({ rates: null, short: 1, unscored: 2 })
  })

  test('takes a task that was played in two groups for one', () => {
    const parts = [task('a', 'x', [1]), task('a', 'x', [0])]
    expect(evaluationReport(parts, settings()).pass[1]).toMatchObject({
      tasks: 1,
      rates: { pass_at_k: 1, unbiased: 0 },
    })
  })

  test('draws its intervals by its seed, around the mean', () => {
    const many = Array.from({ length: 40 }, (_, index) => task(`t${index}`, 'f', [index % 2, 1]))
    const first = evaluationReport(many, settings({ seed: 5 }))
    expect(evaluationReport(many, settings({ seed: 5 }))).toEqual(first)
    expect(evaluationReport(many, settings({ seed: 6 })).reward.interval).not.toEqual(
      first.reward.interval,
    )
    // Half of the tasks earn 1 and half 0.5: 0.75 ± 1.96 × 0.25 / sqrt(40) = 0.673 to 0.827.
    const [low, high] = first.reward.interval ?? [0, 0]
    expect(Math.abs(low - 0.673)).toBeLessThan(0.02)
    expect(Math.abs(high - 0.827)).toBeLessThan(0.02)
  })

  test('has no interval and no standard error where one task is all there is', () => {
    const { reward, pass } = evaluationReport([task('a', 'x', [1, 0, 0, 1])], settings())
    expect(reward).toMatchObject({ mean: 0.5, standard_error: null, interval: null })
    const none = { pass_at_k: null, all_passed: null, power: null, unbiased: null }
    for (const one of pass) expect(one).toMatchObject({ standard_errors: none, intervals: none })
  })

  test('draws over all tasks where a family with one task tells nothing of its spread', () => {
    const alone = Array.from({ length: 40 }, (_, index) =>
      task(`t${index}`, `f${index}`, [index % 2, 1]),
    )
    const { reward } = evaluationReport(alone, settings())
    // 0.75 ± 1.96 × 0.25 / sqrt(40), as for one family.
    const [low, high] = reward.interval ?? [0, 0]
    expect(Math.abs(low - 0.673)).toBeLessThan(0.02)
    expect(Math.abs(high - 0.827)).toBeLessThan(0.02)
  })

  test('takes its standard error from the spread of task means within families', () => {
    const { reward } = evaluationReport(
      [
        task('a', 'x', [0, 0, 0, 0]),
        task('b', 'x', [1, 1]),
        task('c', 'y', [0.5, 0]),
        task('d', 'y', [0.5, 1]),
      ],
      settings(),
    )
    // Variances of x (0 and 1) and y (0.25 and 0.75): 1/2 and 1/8. sqrt(2 × 1/2 + 2 × 1/8) / 4.
    expect(reward.standard_error).toBeCloseTo(Math.sqrt(1.25) / 4, 12)
  })

  test('has an interval for each rate that tasks differ in, and none for the others', () => {
    const [one] = evaluationReport(
      [task('a', 'x', [1, 0]), task('b', 'x', [1, 1])],
      settings(),
    ).pass
    expect(one).toMatchObject({
      // 1/2 and 1: their sample std is sqrt(1/8), over sqrt(2).
      standard_errors: { pass_at_k: expect.closeTo(0.25, 12) },
      intervals: { pass_at_k: [0.5, 1] },
    })
    const [, two] = evaluationReport(
      [task('a', 'x', [1, 0]), task('b', 'x', [1, 1])],
      settings(),
    ).pass
    // At least one of two passes for both: nothing is known of how sure that is.
    expect(two).toMatchObject({
      standard_errors: { pass_at_k: null },
      intervals: { pass_at_k: null },
    })
  })

  test('tells each task, in the order in which they came', () => {
    expect(evaluationReport(mixed, settings()).tasks).toEqual([
      { task: 'a', family: 'sales', episodes: 4, scored: 4, passed: 1, mean: 0.25 },
      {
        task: 'b',
        family: 'sales',
        episodes: 4,
        scored: 3,
        passed: 3,
        mean: expect.closeTo(2.75 / 3, 12),
      },
      { task: 'c', family: 'ops', episodes: 2, scored: 2, passed: 0, mean: 0.5 },
    ])
    const [lost] = evaluationReport([task('a', 'x', [null])], settings()).tasks
    expect(lost).toMatchObject({ episodes: 1, scored: 0, passed: 0, mean: null })
  })

  test('loses no episode, whatever the outcomes', () => {
    const episode = fc
      .tuple(fc.constantFrom(...EPISODE_OUTCOMES), fc.double({ min: 0, max: 1, noNaN: true }))
      .map(([outcome, reward]) => ({ outcome, reward: isScored(outcome) ? reward : null }))
    fc.assert(
      fc.property(fc.array(fc.array(episode, { maxLength: 5 }), { maxLength: 5 }), (batch) => {
        const tasks = batch.map((episodes, index) => ({
          task: `t${index}`,
          family: `f${index % 2}`,
          episodes,
        }))
        const report = evaluationReport(tasks, settings({ resamples: 100 }))
        const apart = Object.values(report.unscored).reduce((total, count) => total + count, 0)
        expect(report.scored + apart).toBe(report.episodes)
        for (const { rates } of report.pass)
          for (const rate of Object.values(rates ?? {})) {
            expect(rate).toBeGreaterThanOrEqual(0)
            expect(rate).toBeLessThanOrEqual(1)
          }
      }),
      { numRuns: 30 },
    )
  })
})
