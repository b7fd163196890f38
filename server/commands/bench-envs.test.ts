// The environments' bench: every figure is there, and what is played is the whole reference path of each task.
import { expect, test } from 'vitest'
import { benchEnvs } from './bench-envs.ts'
import { keptStreams } from './streams.testkit.ts'

test('resets, steps, turns through the pool and bytes are measured', async () => {
  const { streams, out } = keptStreams()
  await benchEnvs({ rounds: 1, milliseconds: 1, json: true }, streams)
  const { reset, steps, pool, bytes } = JSON.parse(out())
  expect(reset.records).toBe(100)
  expect(reset.p99_ms).toBeGreaterThanOrEqual(reset.p50_ms)
  for (const rate of [
    reset.per_s,
    reset.clone_per_s,
    steps.per_s,
    steps.bare_per_s,
    pool.turns_per_s,
  ])
    expect(rate).toBeGreaterThan(0)
  // 32 episodes at once, each of several turns, within seconds: a rate of a few would have lost some.
  expect(pool.turns_per_s).toBeGreaterThan(20)
  // A played instance holds its audit and messages beside what an idle one holds.
  expect(bytes.played).toBeGreaterThan(bytes.idle)
}, 60_000)
