import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { GroupScores } from '../estimator.ts'
import { advantages, distance, estimate, member, rewardArbitrary } from '../scores.testkit.ts'
import { conditioned } from './gdpo.ts'

type Components = Record<string, number | null>

function groupOf(rows: readonly Components[], id = 'g'): GroupScores {
  return {
    id,
    members: rows.map((components, row) => member(0, { id: `${id}${row}`, components })),
  }
}

const components = fc.record({ a: rewardArbitrary, b: rewardArbitrary })
const batchArbitrary = fc.array(fc.array(components, { minLength: 2, maxLength: 6 }), {
  minLength: 1,
  maxLength: 4,
})

function batchOf(batch: readonly (readonly Components[])[]): GroupScores[] {
  return batch.map((rows, index) => groupOf(rows, `g${index}`))
}

describe('equal totals with different components', () => {
  const rows = [
    { solved: 0.5, brief: 0 },
    { solved: 0, brief: 1 },
    { solved: 0.5, brief: 0 },
    { solved: 0, brief: 1 },
  ]

  test('keep their signal under unequal weights', () => {
    const [result] = estimate('gdpo', [groupOf(rows)], { weights: { solved: 2, brief: 1 } })
    const whitened = 0.8659387649072542
    const before = 0.8655755855822977
    const signs = [1, -1, 1, -1]
    signs.forEach((sign, row) => {
      expect(result!.members[row]!.advantage).toBeCloseTo(sign * whitened, 12)
      expect(result!.explain.pre_batch![row]).toBeCloseTo(sign * before, 12)
    })
    expect(result!.explain.zero_variance).toBe(false)
  })
})

describe('one member with a broken component', () => {
  const good = [
    { a: 1, b: 0 },
    { a: 0, b: 1 },
    { a: 0.5, b: 0.25 },
  ]
  const broken = [...good, { a: Number.NaN, b: 1 }]

  test('changes no number of its group or of any other', () => {
    const clean = advantages(estimate('gdpo', [groupOf(good, 'p'), groupOf(good, 'q')]))
    const results = estimate('gdpo', [groupOf(broken, 'p'), groupOf(good, 'q')])
    expect(advantages(results)).toEqual([[...clean[0]!, null], clean[1]])
    expect(results[0]!.members[3]!.reason).toBe('component_not_finite:a')
  })

  test.each(['zero_fill', 'exclude_component', 'excluded_from_that_component'])(
    'is never filled under %s',
    (component_missing) => {
      const [result] = estimate('gdpo', [groupOf(broken)], { component_missing })
      expect(result!.members[3]!.advantage).toBeNull()
    },
  )
})

describe('a missing component', () => {
  const rows: Components[] = [
    { a: 1, b: null },
    { a: 0, b: 1 },
    { a: 0, b: 0 },
  ]
  const raw = { batch: { level: 'none' }, group: { epsilon: 0, std: 'none' } }

  test.each<[string, (number | null)[]]>([
    ['error', [null, 0.5, -0.5]],
    // a: 2/3, -1/3, -1/3. b: as 0 among 0, 1, 0, or two votes of +-1/2.
    ['zero_fill', [2 / 3 - 1 / 3, -1 / 3 + 2 / 3, -1 / 3 - 1 / 3]],
    ['counts_as_zero_unless_all_missing', [2 / 3 - 1 / 3, -1 / 3 + 2 / 3, -1 / 3 - 1 / 3]],
    ['exclude_component', [2 / 3, -1 / 3 + 1 / 2, -1 / 3 - 1 / 2]],
    ['excluded_from_that_component', [2 / 3, -1 / 3 + 1 / 2, -1 / 3 - 1 / 2]],
  ])('under %s', (component_missing, expected) => {
    const [values] = advantages(estimate('gdpo', [groupOf(rows)], { ...raw, component_missing }))
    expect(distance(values!, expected)).toBeLessThan(1e-12)
  })

  test('names itself in the reason', () => {
    const [result] = estimate('gdpo', [groupOf(rows)])
    expect(result!.members[0]!.reason).toBe('component_missing:b')
    const absent = [...rows, { a: 1 } as Components]
    expect(estimate('gdpo', [groupOf(absent)])[0]!.members[3]!.reason).toBe('component_missing:b')
  })
})

describe('a member without any component', () => {
  const rows: Components[] = [
    { a: null, b: null },
    { a: 1, b: 0 },
    { a: 0, b: 0 },
  ]
  const settings = { component_missing: 'exclude_component', batch: { level: 'none' } }

  test.each<[string, number | null, number]>([
    ['excluded', null, 2],
    ['excluded_then_zero', 0, 2],
    ['counts_as_zero', 0, 3],
  ])('is %s', (all_components_missing, advantage, votes) => {
    const [result] = estimate('gdpo', [groupOf(rows)], { ...settings, all_components_missing })
    expect(result!.members[0]!.advantage).toBe(advantage)
    expect(result!.explain.votes).toBe(votes)
  })

  test('counts in the whitening where it counts as zero', () => {
    const whitened = { component_missing: 'exclude_component', group: { std: 'none' } }
    const [out] = advantages(
      estimate('gdpo', [groupOf(rows)], {
        ...whitened,
        batch: { epsilon: 0, std: 'population' },
        all_components_missing: 'counts_as_zero',
      }),
    )
    // Sums 0, 0.5, -0.5: population variance 1/6.
    expect(distance(out!, [0, 0.5 * Math.sqrt(6), -0.5 * Math.sqrt(6)])).toBeLessThan(1e-12)
  })
})

describe('weights', () => {
  const rows = [
    { a: 1, b: 0.3 },
    { a: 0, b: 0.9 },
    { a: 1, b: 0.1 },
  ]

  test('of 0 remove a component, even one that is missing', () => {
    const weights = { a: 1, b: 0 }
    const holes = rows.map(({ a }) => ({ a, b: null }))
    const whole = advantages(estimate('gdpo', [groupOf(rows)], { weights }))
    expect(advantages(estimate('gdpo', [groupOf(holes)], { weights }))).toEqual(whole)
    const only = rows.map(({ a }) => ({ a }))
    expect(advantages(estimate('gdpo', [groupOf(only)], { allow_single: true }))).toEqual(whole)
  })

  test('below 0 flip a component', () => {
    const up = advantages(estimate('gdpo', [groupOf(rows)], { weights: { a: 0, b: 1 } }))[0]!
    const down = advantages(estimate('gdpo', [groupOf(rows)], { weights: { a: 0, b: -1 } }))[0]!
    expect(
      distance(
        up,
        down.map((value) => -value!),
      ),
    ).toBeLessThan(1e-12)
  })

  test('go by name and not by position', () => {
    const there = advantages(estimate('gdpo', [groupOf(rows)], { weights: { a: 2, b: 1 } }))
    const back = advantages(estimate('gdpo', [groupOf(rows)], { weights: { b: 1, a: 2 } }))
    expect(distance(there[0]!, back[0]!)).toBeLessThan(1e-12)
  })

  test('that miss a component, or name none, are refused with the nearest', () => {
    expect(() => estimate('gdpo', [groupOf(rows)], { weights: { a: 1 } })).toThrow(
      /component "b" has no weight/,
    )
    expect(() => estimate('gdpo', [groupOf(rows)], { weights: { a: 1, b: 1, bb: 1 } })).toThrow(
      /the nearest component is "b"/,
    )
  })
})

describe('what gdpo cannot do is refused', () => {
  test('a single component without allow_single, naming the fix', () => {
    const act = () => estimate('gdpo', [groupOf([{ a: 1 }, { a: 0 }])])
    expect(act).toThrow(/single component "a".*allow_single/)
  })

  test('no components at all, unless no member votes', () => {
    expect(() => estimate('gdpo', [groupOf([{}, {}])])).toThrow(/got none/)
    const failed = { id: 'g', members: [member(null), member(null)] }
    expect(advantages(estimate('gdpo', [failed]))).toEqual([[null, null]])
  })

  test('a condition on what no member has', () => {
    const conditions = [{ component: 'a', requires: 'c', at_least: 1 }]
    const act = () => estimate('gdpo', [groupOf([{ a: 1, b: 1 }])], { conditions })
    expect(act).toThrow(/conditions name "c"/)
  })
})

test('conditions read raw components, whatever their order', () => {
  const conditions = [
    { component: 'a', requires: 'b', at_least: 1, otherwise: 0 },
    { component: 'b', requires: 'a', at_least: 1, otherwise: -1 },
  ]
  expect(conditioned({ a: 1, b: 0 }, conditions)).toEqual({ a: 0, b: 0 })
  expect(conditioned({ a: null, b: 1 }, conditions)).toEqual({ a: null, b: -1 })
  expect(conditioned({ a: 1, b: 1 }, conditions)).toEqual({ a: 1, b: 1 })
})

test('batches of constant groups are exact zeros under every preset', () => {
  const constant = fc.tuple(rewardArbitrary, rewardArbitrary, fc.integer({ min: 2, max: 9 }))
  const preset = fc.constantFrom('gdpo', 'trl', 'nemo_rl', 'nvlabs_gdpo', 'verl_gdpo')
  fc.assert(
    fc.property(fc.array(constant, { minLength: 1, maxLength: 4 }), preset, (groups, name) => {
      const batch = groups.map(([a, b, size]) => Array.from({ length: size }, () => ({ a, b })))
      const values = advantages(estimate('gdpo', batchOf(batch), { preset: name })).flat()
      expect(values).toEqual(values.map(() => 0))
    }),
  )
})

test('a constant group beside one that varies stays exactly 0 where sizes are equal', () => {
  const varied = [
    { a: 0.1, b: 0.7 },
    { a: 0.9, b: 0.2 },
    { a: 0.3, b: 0.3 },
  ]
  const flat = varied.map(() => ({ a: 0.7, b: 0.1 }))
  const [first, second] = advantages(estimate('gdpo', batchOf([varied, flat])))
  expect(second).toEqual([0, 0, 0])
  expect(first).not.toEqual([0, 0, 0])
})

test('the order of members and groups changes nothing', () => {
  fc.assert(
    fc.property(batchArbitrary, (batch) => {
      const straight = advantages(estimate('gdpo', batchOf(batch)))
      const reversed = batch.map((rows) => rows.toReversed()).toReversed()
      const back = advantages(estimate('gdpo', batchOf(reversed)))
      const restored = back.toReversed().map((values) => values.toReversed())
      straight.forEach((values, index) => {
        expect(distance(values, restored[index]!)).toBeLessThan(1e-6)
      })
    }),
  )
})

test('whitened advantages of the call have mean 0', () => {
  fc.assert(
    fc.property(batchArbitrary, (batch) => {
      const values = advantages(estimate('gdpo', batchOf(batch))).flat()
      const total = values.reduce<number>((sum, value) => sum + value!, 0)
      expect(Math.abs(total)).toBeLessThan(1e-6 * values.length)
    }),
  )
})

test('the figures say of each component whether it is flat', () => {
  const rows = [
    { a: 1, b: 0.5 },
    { a: 0, b: 0.5 },
  ]
  const [result] = estimate('gdpo', [groupOf(rows)], { weights: { a: 1, b: 3 } })
  expect(result!.explain.components).toMatchObject({
    a: { weight: 1, votes: 2, mean: 0.5, std: Math.SQRT1_2, flat: false },
    b: { weight: 3, votes: 2, mean: 0.5, std: 0, flat: true },
  })
})
