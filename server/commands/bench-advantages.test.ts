// The estimators' bench: every one of them is measured, beside the bare loop.
import { expect, test } from 'vitest'
import { estimatorNames } from '../../reward/estimators.ts'
import { benchAdvantages } from './bench-advantages.ts'
import { keptStreams } from './streams.testkit.ts'

test('groups, samples and steps a second of every estimator stand beside the bare loop', async () => {
  const { streams, out } = keptStreams()
  await benchAdvantages({ rounds: 1, milliseconds: 1, json: true }, streams)
  const { advantages } = JSON.parse(out())
  expect(advantages.map(({ estimator }: { estimator: string }) => estimator)).toEqual(
    estimatorNames,
  )
  for (const row of advantages) {
    expect(row.samples_per_s).toBeCloseTo(16 * row.groups_per_s, 3)
    expect(row.steps_per_s).toBeCloseTo(128 * row.groups_per_s, 3)
    expect(row.bare_groups_per_s).toBeGreaterThan(0)
  }
  const table = keptStreams()
  await benchAdvantages({ rounds: 1, milliseconds: 1, json: false }, table.streams)
  expect(table.out()).toMatch(/^gigpo +\d+ +\d+ +\d+ +\d+ +0?\.?\d+/m)
})
