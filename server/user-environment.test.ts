import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../protocol/json.ts'
import { arithmeticRequest, type House, openHouse } from './testkit/house.testkit.ts'
import { userModule } from './testkit/user-module.testkit.ts'

const withModule = (part: string): Promise<House> =>
  openHouse({ tokens: false, settings: { environments: { user: userModule(part) } } })

const batch = (some: JsonObject = {}): JsonObject => ({
  tasks: [{ spec: { request: arithmeticRequest(0) }, environment: 'user' }],
  group_size: 2,
  mode: 'eval',
  policy: { sampling: { max_tokens: 256 } },
  groups: { attempts: 1 },
  ...some,
})

describe('a contract is checked when the server starts', () => {
  test.each([
    ["contract: { name: 'user', version: 1, fields: {}, scalar: 'score' }", /contract.*field/],
    ["contract: { ...base.contract, scalar: 'fund' }", /contract.*fund/],
    ['contract: { ...base.contract, version: undefined }', /contract\.version/],
    ["contract: { ...base.contract, scalr: 'x' }", /scalr/],
    ['contract: undefined', /contract/],
    ['grade: undefined', /grade is missing/],
  ])(
    '%s is refused with its path',
    async (part, words) => {
      await expect(withModule(part)).rejects.toThrow(words)
    },
    30_000,
  )
})

describe('what a module leaves to its defaults works', () => {
  test.each([
    "contract: { name: 'user', version: 1, fields: { score: { type: 'number' } }, scalar: 'score' }",
    'describe: (task) => ({ title: task.id })',
    "grade: () => ({ status: 'scored', rewards: { score: 1 } })",
  ])(
    '%s',
    async (part) => {
      const house = await withModule(part)
      try {
        const { groups } = await house.run(batch())
        expect(groups[0]?.episodes.map(({ outcome, reward }) => [outcome, reward])).toEqual([
          ['ok', 1],
          ['ok', 1],
        ])
      } finally {
        await house.close()
      }
    },
    30_000,
  )
})

describe('a module that fails', () => {
  test.each([
    ["describe: () => { throw new Error('no') }", 'user.describe threw: no'],
    ['describe: () => 7', 'user.describe must return {title, limits}'],
    [
      "describe: () => ({ title: 't', limits: { max_turns: 'a' } })",
      'limits.max_turns as a whole number from 1, got a',
    ],
    [
      "describe: () => ({ title: 't', limits: { max_calls: -1 } })",
      'limits.max_calls as a whole number from 1, got -1',
    ],
    ["problems: () => { throw new Error('no') }", 'user.problems threw: no'],
    ['problems: () => 7', 'user.problems must return a list'],
    ['problems: () => [5]', 'user.problems must return a list of {rule, path, message}'],
    ["problems: () => { throw Symbol('no') }", 'user.problems threw: Symbol(no)'],
    ['problems: () => process.exit(3)', 'environment user could not check the spec'],
    [
      "describe: (task) => ({ title: 'a', limits: {}, f: () => 1 })",
      'user.describe must return plain data',
    ],
  ])(
    '%s is told at submit',
    async (part, words) => {
      const house = await withModule(part)
      try {
        await expect(house.api.submit(batch())).rejects.toThrow(words)
      } finally {
        await house.close()
      }
    },
    30_000,
  )

  test.each([
    ['reset: (task) => ({ request: task.spec.request, f: () => 1 })', 'infra_env', 'plain data'],
    ['reset: async () => ({})', 'infra_env', 'user.reset must return at once'],
    ['open: () => 7', 'infra_env', 'user.open must return a list of at least one message'],
    ['anchor: () => null', 'infra_env', 'user.anchor must return a non-empty string'],
    ['reply: () => ({})', 'infra_env', 'user.reply must return'],
    ["reply: () => { throw Symbol('odd') }", 'infra_env', 'user.reply threw: Symbol(odd)'],
    ['reply: (state) => ({ state, end: 7 })', 'infra_env', 'user.reply must return'],
    ['reset: () => ({ get request() { throw 1 } })', 'infra_env', 'user.reset threw: 1'],
    [
      "reset: () => ({ request: 'Hm.', deep: { get late() { throw new Error('no') } } })",
      'infra_env',
      'user.reset must return a state of plain data',
    ],
    ['grade: async () => { throw 1 }', 'verifier_error', 'user.grade must return at once'],
    [
      "grade: () => ({ status: 'scored', rewards: { score: 1 }, evidence: { n: 1n } })",
      'verifier_error',
      'grade.evidence.n is a bigint',
    ],
    [
      "grade: () => { const e = {}; e.e = e; return { status: 'scored', rewards: { score: 1 }, evidence: e } }",
      'verifier_error',
      'grade.evidence.e is a circle',
    ],
    ['grade: () => null', 'verifier_error', 'user.grade must return'],
    [
      "grade: () => ({ status: 'scored', rewards: { score: NaN }, evidence: {} })",
      'contract_violation',
      'score',
    ],
    [
      "grade: () => ({ status: 'unavailable', reason: 'the judge slept', evidence: {} })",
      'verifier_error',
      'the judge slept',
    ],
  ])(
    '%s costs its episode: %s',
    async (part, outcome, words) => {
      const house = await withModule(part)
      try {
        const { groups, progress } = await house.run(batch())
        for (const episode of groups[0]?.episodes ?? []) {
          expect([episode.outcome, episode.reward]).toEqual([outcome, null])
          expect(episode.reason).toContain(words)
        }
        expect(progress).toMatchObject({ done: true, episodes: { finished: 2, in_flight: 0 } })
      } finally {
        await house.close()
      }
    },
    30_000,
  )
})
