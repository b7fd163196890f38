import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type RewardContract, rewardContractSchema } from '../protocol/contract.ts'
import { PaddockError } from '../protocol/errors.ts'
import { bindEstimator } from './bind-estimator.ts'
import {
  bindConsumer,
  CONTRACT_KINDS,
  type ContractKind,
  checkContract,
  checkRewards,
  contractLabel,
  scalarRange,
} from './contract.ts'

const office = rewardContractSchema.parse({
  name: 'office',
  version: 1,
  fields: {
    score: { type: 'number', min: 0, max: 1, required: true },
    completion: { type: 'number', min: 0, max: 1, required: true },
    safety: { type: 'number', min: 0, max: 1, required: true },
    robustness: { type: 'number', min: 0, max: 1, nullable: true },
  },
  scalar: 'score',
  components: ['completion', 'safety'],
})

const full = { score: 0.8, completion: 1, safety: 0.5 }

function changed(changes: Partial<RewardContract>): RewardContract {
  return { ...office, ...changes }
}

function refusal(act: () => void): PaddockError {
  try {
    act()
  } catch (error) {
    if (error instanceof PaddockError) return error
    throw error
  }
  throw new Error('nothing was refused')
}

describe('a contract label', () => {
  test('is name, version and twelve digits of the SHA-256 of its canonical JSON', () => {
    const tiny = rewardContractSchema.parse({
      version: 2,
      name: 'tiny',
      scalar: 'r',
      fields: { r: { type: 'number' } },
    })
    const canonical =
      '{"components":[],"fields":{"r":{"type":"number"}},"name":"tiny","scalar":"r","version":2}'
    const hash = createHash('sha256').update(canonical).digest('hex').slice(0, 12)
    expect(contractLabel(tiny)).toBe(`tiny@2#${hash}`)
  })

  test('does not depend on the order of keys and changes with any bound', () => {
    const { name, ...rest } = office
    expect(contractLabel({ ...rest, name })).toBe(contractLabel(office))
    const wider = { ...office.fields, score: { ...office.fields.score!, max: 2 } }
    expect(contractLabel(changed({ fields: wider }))).not.toBe(contractLabel(office))
  })
})

describe('a contract that is inconsistent in itself is refused', () => {
  const number = { type: 'number' } as const
  test.each<[string, Partial<RewardContract>, string, RegExp]>([
    ['a scalar without field', { scalar: 'scroe' }, 'scalar', /"scroe".*nearest is "score"/],
    [
      'a component without field',
      { components: ['safty'] },
      'components[0]',
      /nearest is "safety"/,
    ],
    ['a component twice', { components: ['safety', 'safety'] }, 'components[1]', /twice/],
    ['no fields', { fields: {}, components: [] }, 'fields', /at least one field/],
    [
      'min above max',
      { fields: { ...office.fields, score: { ...number, min: 1, max: 0 } } },
      'fields.score.min',
      /min <= max, got 1 > 0/,
    ],
    [
      'a range on a boolean',
      { fields: { ...office.fields, done: { type: 'boolean', max: 1 } } },
      'fields.done',
      /boolean/,
    ],
    ['an empty weighted sum', { scalar: { weighted: {} } }, 'scalar.weighted', /at least one/],
    ['weights of 0', { scalar: { weighted: { score: 0 } } }, 'scalar.weighted', /not 0/],
    [
      'a weighted field that does not exist',
      { scalar: { weighted: { complete: 1 } } },
      'scalar.weighted.complete',
      /nearest is "completion"/,
    ],
    [
      'a weighted field that may be absent',
      {
        fields: { ...office.fields, bonus: { ...number, required: false } },
        scalar: { weighted: { bonus: 1 } },
      },
      'scalar.weighted.bonus',
      /may be absent/,
    ],
  ])('%s', (_, changes, path, message) => {
    const error = refusal(() => checkContract(changed(changes)))
    expect(error.code).toBe('contract_mismatch')
    expect(error.path).toBe(path)
    expect(error.message).toMatch(message)
  })

  test('the office contract is consistent', () => {
    expect(() => checkContract(office)).not.toThrow()
  })
})

describe('a consumer', () => {
  test('may read fields of the contract and new names of renamed ones', () => {
    expect(() =>
      bindConsumer(office, { reads: ['reward', 'safety', 'score'], rename: { score: 'reward' } }),
    ).not.toThrow()
  })

  test('that reads a field the contract lacks is refused with the field and the nearest name', () => {
    const error = refusal(() =>
      bindConsumer(office, { reads: ['safety', 'robustnes'], rename: {} }),
    )
    expect(error.code).toBe('contract_mismatch')
    expect(error.path).toBe('reward.reads[1]')
    expect(error.message).toContain('"robustnes"')
    expect(error.message).toContain('nearest is "robustness"')
    expect(error.message).toContain('office@1')
  })

  test('that reads "reward" is told the name of the scalar', () => {
    const error = refusal(() => bindConsumer(office, { reads: ['reward'], rename: {} }))
    expect(error.message).toContain('nearest is "score"')
  })

  test.each([
    ['an unknown field', { scores: 'reward' }, 'reward.rename.scores', /nearest is "score"/],
    ['an existing other field', { score: 'safety' }, 'reward.rename.score', /has a field "safety"/],
    ['an empty name', { score: '' }, 'reward.rename.score', /empty/],
    [
      'a name that is taken',
      { score: 'reward', safety: 'reward' },
      'reward.rename.safety',
      /"score" has that name/,
    ],
  ])('a rename of or onto %s is refused', (_, rename, path, message) => {
    const error = refusal(() =>
      bindConsumer(office, { reads: [], rename: rename as Record<string, string> }),
    )
    expect(error.path).toBe(path)
    expect(error.message).toMatch(message)
  })
})

describe('an estimator', () => {
  test('gdpo needs two components in the contract, or one with allow_single', () => {
    expect(() => bindEstimator(office, 'gdpo', {})).not.toThrow()
    const single = changed({ components: ['safety'] })
    expect(refusal(() => bindEstimator(single, 'gdpo', {})).path).toBe('advantage.estimator')
    expect(() => bindEstimator(single, 'gdpo', { allow_single: true })).not.toThrow()
    expect(() => bindEstimator(single, 'grpo', {})).not.toThrow()
  })

  test('is refused weights of what is no component', () => {
    const error = refusal(() => bindEstimator(office, 'gdpo', { weights: { saftey: 1 } }))
    expect(error.path).toBe('advantage.settings.weights.saftey')
    expect(error.message).toContain('nearest is "safety"')
  })
})

describe('a record that keeps the contract', () => {
  test('gives the scalar and every field, null where a nullable one is absent', () => {
    expect(checkRewards(office, full)).toEqual({
      ok: true,
      reward: 0.8,
      rewards: { ...full, robustness: null },
    })
  })

  test('may sit on both bounds and be a real zero', () => {
    expect(checkRewards(office, { score: 0, completion: 1, safety: 0 })).toMatchObject({
      ok: true,
      reward: 0,
    })
  })

  test('gives a weighted sum where the contract says so', () => {
    const weighted = changed({ scalar: { weighted: { completion: 0.75, safety: -0.5 } } })
    expect(checkRewards(weighted, full)).toMatchObject({ ok: true, reward: 0.5 })
  })

  test('has booleans as 1 and 0 where the field is boolean', () => {
    const solved = rewardContractSchema.parse({
      name: 'b',
      version: 1,
      fields: { solved: { type: 'boolean' } },
      scalar: 'solved',
    })
    expect(checkRewards(solved, { solved: true })).toMatchObject({ ok: true, reward: 1 })
    expect(checkRewards(solved, { solved: false })).toMatchObject({ ok: true, reward: 0 })
    expect(checkRewards(solved, { solved: 1 })).toMatchObject({ ok: false, kind: 'type' })
  })
})

describe('a record that breaks the contract is a violation with field and kind', () => {
  test.each<[string, unknown, string, ContractKind]>([
    ['a missing field', { score: 1, completion: 1 }, 'safety', 'missing'],
    ['a null where none is allowed', { ...full, safety: null }, 'safety', 'missing'],
    ['an unknown field', { ...full, bonus: 1 }, 'bonus', 'unknown'],
    ['another name for the total', { reward: 1, completion: 1, safety: 1 }, 'score', 'alias'],
    ['value for the total', { value: 1, completion: 1, safety: 1 }, 'score', 'alias'],
    ['a second total beside the right one', { ...full, reward: 1 }, 'reward', 'unknown'],
    ['a boolean for a number', { ...full, score: true }, 'score', 'type'],
    ['a numeric string', { ...full, score: '1.0' }, 'score', 'type'],
    ['an array', { ...full, score: [1] }, 'score', 'type'],
    ['NaN', { ...full, safety: Number.NaN }, 'safety', 'nan'],
    ['infinity', { ...full, safety: Number.POSITIVE_INFINITY }, 'safety', 'nan'],
    ['below the range', { ...full, safety: -0.001 }, 'safety', 'range'],
    ['above the range', { ...full, robustness: 1.5 }, 'robustness', 'range'],
    ['no object', [1], 'rewards', 'type'],
    ['null', null, 'rewards', 'type'],
    ['nothing', {}, 'score', 'missing'],
  ])('%s', (_, record, field, kind) => {
    const checked = checkRewards(office, record)
    expect(checked).toMatchObject({ ok: false, field, kind })
    expect(CONTRACT_KINDS).toContain(kind)
    if (!checked.ok && field !== 'rewards') expect(checked.message).toContain(`"${field}"`)
  })

  test('an unknown name comes with the nearest one', () => {
    const checked = checkRewards(office, { ...full, saftey: 1 })
    expect(checked).toMatchObject({ ok: false, field: 'saftey', kind: 'unknown' })
    expect(checked.ok ? '' : checked.message).toContain('nearest is "safety"')
  })

  test('a key __proto__ is an unknown field like any other', () => {
    const record = JSON.parse('{"__proto__": {"score": 1}, "completion": 1, "safety": 1}')
    expect(checkRewards(office, record)).toMatchObject({
      ok: false,
      field: '__proto__',
      kind: 'unknown',
    })
    expect(checkRewards(office, { ...full, constructor: 1 })).toMatchObject({ kind: 'unknown' })
  })

  test('a null within a weighted sum is missing, never a zero term', () => {
    const weighted = changed({ scalar: { weighted: { completion: 0.5, robustness: 0.5 } } })
    expect(checkRewards(weighted, { ...full, robustness: null })).toMatchObject({
      ok: false,
      field: 'robustness',
      kind: 'missing',
    })
  })

  test('a weighted sum that overflows is not a reward', () => {
    const huge = rewardContractSchema.parse({
      name: 'h',
      version: 1,
      fields: { a: { type: 'number' } },
      scalar: { weighted: { a: 10 } },
    })
    expect(checkRewards(huge, { a: 1e308 })).toMatchObject({ ok: false, kind: 'nan' })
  })
})

describe('the range of the scalar', () => {
  test.each<[string, Partial<RewardContract>, { min?: number; max?: number }]>([
    ['of a field is its own', {}, { min: 0, max: 1 }],
    [
      'of a weighted sum takes the far end under a negative weight',
      { scalar: { weighted: { completion: 2, safety: -1 } } },
      { min: -1, max: 2 },
    ],
    [
      'is open where a field is',
      { fields: { ...office.fields, score: { type: 'number', min: 0 } } },
      { min: 0 },
    ],
    [
      'of a boolean is 0 to 1',
      { fields: { ...office.fields, score: { type: 'boolean' } } },
      { min: 0, max: 1 },
    ],
  ])('%s', (_, changes, range) => {
    expect(scalarRange(changed(changes))).toEqual(range)
  })
})
