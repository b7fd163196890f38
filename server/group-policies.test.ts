// What a batch does about groups that are flat, lost or slow, and what its progress says that this costs.
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { JsonObject } from '../protocol/json.ts'
import { arithmeticRequest, type House, openHouse } from './testkit/house.testkit.ts'

/** A user's environment: `flat` tasks earn 1, the others by what was said; `lost` ones cannot be graded. */
const MODULE = `export default {
  contract: { name: 'mood', version: 1, fields: { score: { type: 'number' } }, scalar: 'score' },
  problems: () => [],
  describe: (task) => ({ title: task.id }),
  reset: (task) => ({ spec: task.spec, said: '' }),
  open: (state) => [{ role: 'user', content: state.spec.request }],
  tools: () => [],
  step: (state) => ({ state, observation: { content: 'none', is_error: true }, audit: {} }),
  hear: (state) => state,
  reply: (state, said) => ({ state: { ...state, said }, end: 'final' }),
  grade(state) {
    if (state.spec.lost) return { status: 'unavailable', reason: 'no verdict' }
    const even = [...state.said].reduce((sum, char) => sum + char.codePointAt(0), 0) % 2
    return { status: 'scored', rewards: { score: state.spec.flat ? 1 : even } }
  },
  anchor: () => 'here',
}
`

let house: House
beforeAll(async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'paddock-mood-')), 'mood.mjs')
  writeFileSync(file, MODULE)
  house = await openHouse({
    tokens: false,
    simulator: { style: { format: 'hermes', thinking: false, mix: { correct: 1, wrong: 1 } } },
    settings: { environments: { mood: file }, runtime: { max_episodes: 1 } },
  })
}, 60_000)
afterAll(() => house.close())

const batch = (specs: JsonObject[], some: JsonObject = {}): JsonObject => ({
  tasks: specs.map((spec, index) => ({
    spec: { request: arithmeticRequest(0), ...spec },
    environment: 'mood',
    metadata: { index },
  })),
  group_size: 8,
  policy: { sampling: { max_tokens: 256, seed: 4 } },
  ...some,
})

test('a flat group is replaced by a fresh one of the next task where the batch says so', async () => {
  const { groups, progress } = await house.run(
    batch([{ flat: true }, {}], { groups: { zero_variance: 'replace_next' } }),
  )
  expect(groups.map(({ metadata }) => metadata.index)).toEqual([1, 1])
  expect(progress.groups).toMatchObject({ total: 3, settled: { acked: 2, dropped: 1 } })
  const { costs, mean_seconds } = progress.groups
  expect(costs.replaced.completion_tokens).toBeGreaterThan(0)
  expect(costs.dropped.completion_tokens).toBe(0)
  const spent = costs.delivered.completion_tokens + costs.replaced.completion_tokens
  expect(spent).toBe(progress.tokens.completion)
  expect(costs.retried.completion_tokens).toBe(0)
  expect(mean_seconds).toEqual({ delivered: expect.any(Number), dropped: expect.any(Number) })
})

test('a group that is lost stops early where the batch says so, and is named after what it was lost to', async () => {
  const specs: JsonObject[] = [{}, { lost: true }]
  const lost = async (stop_early: boolean) =>
    (await house.run(batch(specs, { groups: { attempts: 2, stop_early } }))).progress
  const early = await lost(true)
  expect(early.groups.verdicts).toEqual({ valid: 1, verifier_error: 1 })
  // One at a time: the first member fails twice, and the seven others do not start.
  expect(early.episodes.outcomes).toEqual({ ok: 8, verifier_error: 1, aborted: 7 })
  expect(early.groups.costs.retried.completion_tokens).toBeGreaterThan(0)
  const whole = await lost(false)
  expect(whole.episodes.outcomes).toEqual({ ok: 8, verifier_error: 8 })
})
