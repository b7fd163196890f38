// What a delivered group says of its advantages, and the explanation that a server and a file give.
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import type { DeliveredGroup } from '../protocol/group.ts'
import type { JsonObject } from '../protocol/json.ts'
import { explain } from './commands/explain.ts'
import { keptStreams } from './commands/streams.testkit.ts'
import { arithmeticRequest, type House, openHouse } from './testkit/house.testkit.ts'

/** A user's environment: what an episode earns follows from its seed, its spec, and its place among equals. */
const MODULE = `export default {
  contract: {
    name: 'two', version: 1,
    fields: { total: { type: 'number' }, solved: { type: 'number' }, brief: { type: 'number' } },
    scalar: 'total', components: ['solved', 'brief'],
  },
  problems: () => [],
  describe: (task) => ({ title: task.id }),
  reset: (task, seed) => ({ spec: task.spec, seed, said: '' }),
  open: (state) => [{ role: 'user', content: state.spec.request }],
  tools: () => [],
  step: (state) => ({ state, observation: { content: 'none', is_error: true }, audit: {} }),
  hear: (state) => state,
  reply: (state, said) => ({ state: { ...state, said }, end: 'final' }),
  grade(state) {
    if (state.spec.bySeed) return scored(state.seed - 1, 0, 0)
    // What was said differs from episode to episode, and so do the components; their total does not.
    const even = [...state.said].reduce((sum, char) => sum + char.codePointAt(0), 0) % 2 === 0
    if (state.spec.huge) return scored(even ? 1.7e308 : -1.7e308, 0, 0)
    return scored(1, even ? 0.5 : 0, even ? 0 : 1)
  },
  anchor: () => 'here',
}
const scored = (total, solved, brief) => ({ status: 'scored', rewards: { total, solved, brief } })
`

let house: House
beforeAll(async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'paddock-two-')), 'two.mjs')
  writeFileSync(file, MODULE)
  house = await openHouse({
    tokens: false,
    simulator: { style: { format: 'hermes', thinking: false, mix: { correct: 1, wrong: 1 } } },
    settings: { environments: { two: file } },
  })
}, 60_000)
afterAll(() => house.close())

const batch = (some: JsonObject = {}): JsonObject => ({
  tasks: [{ spec: { request: arithmeticRequest(0) }, environment: 'two' }],
  group_size: 8,
  policy: { sampling: { max_tokens: 256, seed: 4 } },
  ...some,
})

const sums = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ task: `arithmetic/sum-${index}` }))

describe('a delivered group', () => {
  test('says what the loss divides by, and of each component whether it is flat', async () => {
    const { groups } = await house.run(
      batch({ advantage: { estimator: 'dr_grpo' }, limits: { max_tokens: 777 } }),
    )
    expect(groups[0]).toMatchObject({
      loss_normalizer: { kind: 'constant', value: 777 },
      whitened: null,
      stats: { components: { solved: { flat: false }, brief: { flat: false } } },
    })
    const grpo = await house.run(batch({ tasks: sums(1) }))
    expect(grpo.groups[0]?.loss_normalizer).toEqual({ kind: 'tokens_in_sample', value: null })
    expect(grpo.groups[0]?.stats.components).toMatchObject({ score: { flat: false } })
  })

  test('says which share of steps have a state in common with another', async () => {
    const { groups } = await house.run(batch({ tasks: sums(1), advantage: { estimator: 'gigpo' } }))
    // Every episode begins in one state.
    expect(groups[0]?.stats.shared_anchor_share).toBeGreaterThan(0)
  })

  test('has its advantages though its rewards are at the end of the doubles', async () => {
    const spec = { request: arithmeticRequest(0), huge: true }
    const { groups, progress } = await house.run(batch({ tasks: [{ spec, environment: 'two' }] }))
    const [group] = groups
    expect(group).toMatchObject({ verdict: 'valid', stats: { std: expect.any(Number) } })
    for (const { advantage } of group?.episodes ?? []) expect(advantage).not.toBeNull()
    expect(progress.episodes.mean_reward).toEqual(expect.any(Number))
  })
})

it('A03: two groups of one task with two seeds are two groups, and equal rewards in each give exact zeros', async () => {
  const spec = { request: arithmeticRequest(0), bySeed: true }
  const contract = {
    name: 'two',
    version: 2,
    fields: {
      total: { type: 'number', min: 0, max: 1 },
      solved: { type: 'number' },
      brief: { type: 'number' },
    },
    scalar: 'total',
    components: [],
  }
  const tasks = [1, 2].map((seed) => ({ spec, environment: 'two', seed }))
  const { groups } = await house.run(batch({ tasks, group_size: 4, reward: { contract } }))
  const bySeed = groups.toSorted((a, b) => a.seed - b.seed)
  expect(new Set(bySeed.map(({ id }) => id)).size).toBe(2)
  expect(bySeed.map(({ verdict, level }) => [verdict, level])).toEqual([
    ['zero_variance', 'floor'],
    ['zero_variance', 'ceiling'],
  ])
  const advantages = bySeed.flatMap(({ episodes }) => episodes.map(({ advantage }) => advantage))
  expect(advantages).toEqual(Array(8).fill(0))
})

it('A07: equal totals with different components are valid under gdpo, and flat under grpo', async () => {
  const settings = { weights: { solved: 2, brief: 1 } }
  const groups = { zero_variance: 'drop' }
  const gdpo = await house.run(batch({ advantage: { estimator: 'gdpo', settings }, groups }))
  expect(gdpo.groups).toMatchObject([{ verdict: 'valid', stats: { std: 0 } }])
  const advantages = gdpo.groups[0]?.episodes.map(({ advantage }) => advantage) ?? []
  // Two kinds of member and the heavier component decides: the better in it has the advantage.
  for (const [index, { rewards }] of (gdpo.groups[0]?.episodes ?? []).entries())
    expect(Math.sign(advantages[index] ?? 0)).toBe(rewards?.solved === 0.5 ? 1 : -1)
  const grpo = await house.run(batch({ groups }))
  expect(grpo.groups).toEqual([])
  expect(grpo.progress.groups.verdicts).toEqual({ zero_variance: 1 })
})

test('a reward that the contract composes is delivered with every step from what was graded', async () => {
  const number = { type: 'number' }
  const contract = {
    name: 'two',
    version: 3,
    fields: { total: number, solved: number, brief: number },
    scalar: { weighted: { solved: 2, brief: 1 } },
    components: ['solved', 'brief'],
    conditions: [{ component: 'brief', requires: 'solved', at_least: 0.5 }],
    shaping: {
      overlong: { max_length: 10, buffer: 10 },
      length_penalty: { per_token: 0.01, free: 2 },
    },
  }
  const { groups } = await house.run(batch({ reward: { contract } }))
  const episodes = groups[0]?.episodes ?? []
  expect(episodes).toHaveLength(8)
  for (const { reward, rewards, shaping } of episodes) {
    const isSolved = rewards?.solved === 0.5
    // As it was graded: brief is 1 exactly where solved is 0, and there it does not count.
    expect(rewards?.brief).toBe(isSolved ? 0 : 1)
    const [overlong, length] = shaping.slice(-2)
    if (overlong?.kind !== 'overlong' || length?.kind !== 'length') throw new Error('two penalties')
    expect(overlong.penalty).toBeCloseTo(-Math.min(1, overlong.length / 10), 12)
    expect(length.penalty).toBeCloseTo(-0.01 * Math.max(0, length.length - 2), 12)
    expect(shaping.slice(0, -2)).toEqual(
      isSolved
        ? []
        : [
            {
              kind: 'condition',
              component: 'brief',
              requires: 'solved',
              at_least: 0.5,
              raw: 1,
              counted: 0,
            },
          ],
    )
    expect(reward).toBeCloseTo((isSolved ? 1 : 0) + overlong.penalty + length.penalty, 12)
  }
  expect(groups[0]?.stats.components.brief).toMatchObject({ mean: 0, flat: true })
})

describe('whitening', () => {
  const gdpo = (window?: number) => ({
    tasks: Array(5).fill({ spec: { request: arithmeticRequest(0) }, environment: 'two' }),
    advantage: {
      estimator: 'gdpo',
      settings: { weights: { solved: 2, brief: 1 } },
      ...(window && { window }),
    },
  })

  test('is over the whole batch, and every group says so', async () => {
    const { groups } = await house.run(batch(gdpo()))
    expect(groups).toHaveLength(5)
    const sets = groups.map(({ whitened }) => JSON.stringify(whitened))
    expect(new Set(sets).size).toBe(1)
    expect(groups[0]?.whitened).toMatchObject({ over: 'batch', groups: 5 })
    expectWhite(groups)
  })

  test('is over windows of groups as they finish, so that a stream of groups flows', async () => {
    const { groups } = await house.run(batch(gdpo(2)))
    const firsts = [...new Set(groups.map(({ whitened }) => whitened?.first))]
    const sets = firsts.map((first) => groups.filter(({ whitened }) => whitened?.first === first))
    expect(sets.map((set) => set.length).toSorted()).toEqual([1, 2, 2])
    for (const set of sets) {
      for (const { whitened } of set)
        expect(whitened).toMatchObject({ over: 'window', groups: set.length })
      expectWhite(set)
    }
  })

  test('is refused for an estimator that looks at one group alone', async () => {
    await expect(house.api.submit(batch({ advantage: { window: 4 } }))).rejects.toThrow(
      /advantage\.window.*grpo/,
    )
  })

  /** Mean 0 over the set: what whitening makes of it. */
  function expectWhite(groups: readonly DeliveredGroup[]) {
    const all = groups.flatMap(({ episodes }) => episodes.map(({ advantage }) => advantage ?? 0))
    expect(Math.abs(all.reduce((a, b) => a + b, 0))).toBeLessThan(1e-9)
  }
})

describe('an explanation', () => {
  const told = async (what: string, json?: true) => {
    const { streams, out } = keptStreams()
    await explain(what, { url: house.url, json }, streams)
    return out()
  }

  test('over HTTP and by the command has votes, figures, and a sentence for each member', async () => {
    const { groups } = await house.run(batch({ tasks: sums(1) }))
    const [group] = groups as [DeliveredGroup]
    const explained = await house.api.explain(group.id)
    expect(explained).toMatchObject({
      id: group.id,
      verdict: group.verdict,
      explanation: { votes: 8, excluded: [] },
    })
    expect(explained.members.map(({ advantage }) => advantage)).toEqual(
      group.episodes.map(({ advantage }) => advantage),
    )
    for (const { because } of explained.members) expect(because).toMatch(/the mean .* of 8 votes/)
    const text = await told(group.id)
    expect(text).toContain(`${group.id}: valid`)
    expect(text).toMatch(/^grpo divides by \d\.\d+: sample std \+ 0\.000001$/m)
    expect(text).toMatch(/^e0 +ok +[01] +[+\u2212]\d\.\d+ +reward/m)
    expect(JSON.parse(await told(group.id, true))).toEqual(explained)
  })

  test('of a failed group names what failed; of an unknown one there is none', async () => {
    await house.setFaults({ kind: 'nofinish', match: arithmeticRequest(2) })
    const tasks = [{ task: 'arithmetic/sum-2' }]
    const { progress } = await house.run(batch({ tasks, groups: { attempts: 1 } }))
    await house.setFaults()
    const { explanation, members } = await house.api.explain(progress.groups.dropped[0]?.id ?? '')
    expect(explanation).toBeNull()
    expect(members[0]?.because).toContain('infra_backend')
    await expect(house.api.explain('nowhere.g0')).rejects.toThrow(/404.*no finished group/)
  })

  test('of a file that was leased says what the delivered group knows', async () => {
    const { groups } = await house.run(batch({ advantage: { estimator: 'gigpo' } }))
    const file = join(mkdtempSync(join(tmpdir(), 'paddock-lease-')), 'lease.json')
    writeFileSync(file, JSON.stringify({ groups, done: false }))
    const text = await told(file)
    expect(text).toContain('estimator gigpo')
    expect(text).toMatch(/its reward is the mean/)
    writeFileSync(file, '{"a": 1}')
    await expect(told(file)).rejects.toThrow(/expected a delivered group/)
  })
})
