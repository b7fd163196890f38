import { describe, expect, test } from 'vitest'
import { advantages, estimate, group, member } from '../scores.testkit.ts'

function of(name: string, rewards: (number | null)[], settings: Record<string, unknown> = {}) {
  return advantages(estimate(name, [group(rewards)], settings))[0]!
}

describe('a group with one vote', () => {
  test.each<[unknown, (number | null)[]]>([
    ['zero', [0]],
    ['raw_reward', [0.5 / (1 + 1e-6)]],
    ['nan', [null]],
    ['null', [null]],
    [null, [null]],
  ])('is %s where singleton_group says so, with the reason', (singleton_group, expected) => {
    const [result] = estimate('grpo', [group([0.5])], { singleton_group })
    expect(result!.members.map((entry) => entry.advantage)).toEqual(expected)
    expect(result!.members[0]!.reason).toBe('singleton_group')
  })

  test('is one too where its siblings failed', () => {
    const [result] = estimate('grpo', [group([null, 0.5, null])])
    expect(result!.members.map((entry) => entry.reason)).toEqual([
      'infra_backend',
      'singleton_group',
      'infra_backend',
    ])
    expect(result!.explain.votes).toBe(1)
  })
})

describe('a member without a usable reward', () => {
  const broken = [member(1), member(null), member(0), member(1)]

  test.each<[unknown, (number | null)[]]>([
    ['excluded', [1 / 3, null, -2 / 3, 1 / 3]],
    ['excluded_then_zero', [1 / 3, 0, -2 / 3, 1 / 3]],
    ['fail_group', [null, null, null, null]],
    [{ score_as: -1 }, [0.75, -1.25, -0.25, 0.75]],
  ])('under missing %j', (missing, expected) => {
    const [values] = advantages(estimate('dr_grpo', [{ id: 'g', members: broken }], { missing }))
    values!.forEach((value, index) => {
      if (expected[index] === null) expect(value).toBeNull()
      else expect(value).toBeCloseTo(expected[index]!, 12)
    })
  })

  test('stops the call where missing is error, and is named', () => {
    const act = () => estimate('grpo', [group([1, null], 'p')], { missing: 'error' })
    expect(act).toThrow(/member "p1" of group "p" has no reward \(infra_backend\)/)
  })

  test.each<[unknown, string]>([
    [Number.NaN, 'reward_not_finite'],
    [Number.POSITIVE_INFINITY, 'reward_not_finite'],
    ['1.0', 'reward_wrong_type'],
    [true, 'reward_wrong_type'],
  ])('%s has reason %s and reaches no mean', (reward, reason) => {
    const wrong = member(0, { id: 'w', reward: reward as number })
    const [result] = estimate('grpo', [{ id: 'g', members: [member(1), wrong, member(0)] }])
    expect(result!.members[1]).toEqual({ advantage: null, steps: null, reason })
    expect(result!.explain).toMatchObject({ votes: 2, mean: 0.5, excluded: [{ id: 'w', reason }] })
  })

  test('that is scored but not eligible votes only where vote says so', () => {
    const members = [member(1), member(0), member(1, { eligible: false })]
    const [closed] = estimate('dr_grpo', [{ id: 'g', members }])
    expect(closed!.members.map((entry) => entry.advantage)).toEqual([0.5, -0.5, null])
    expect(closed!.members[2]!.reason).toBe('not_eligible')
    const [open] = estimate('dr_grpo', [{ id: 'g', members }], { vote: true })
    expect(open!.explain.votes).toBe(3)
  })
})

describe('where epsilon stands', () => {
  // Rewards 0 and 2: mean 1, sample deviation sqrt(2), population deviation 1.
  test.each<[Record<string, unknown>, number]>([
    [{ epsilon: 0.5 }, 1 / (Math.SQRT2 + 0.5)],
    [{ epsilon: 0.5, epsilon_mode: 'added_to_variance' }, 1 / Math.sqrt(2.5)],
    [{ epsilon: 0.5, epsilon_mode: 'none_and_skip_if_zero' }, 1 / Math.SQRT2],
    [{ epsilon: 0.5, std: 'population' }, 1 / 1.5],
    [{ epsilon: 0.5, std: 'none' }, 1],
    [{ epsilon: 0.5, variance_floor: 9 }, 1 / 3.5],
    [{ epsilon: 0, variance_floor: 1 }, 1 / Math.SQRT2],
    [{ epsilon: 0.5, scale: 'none' }, 1],
  ])('%j', (settings, expected) => {
    const [low, high] = of('grpo', [0, 2], settings)
    expect(high).toBeCloseTo(expected, 12)
    expect(low).toBeCloseTo(-expected, 12)
  })
})

describe('leave-one-out', () => {
  test('a pair has no deviation of siblings: skipped, or divided by epsilon', () => {
    const loo = { baseline: 'leave_one_out', std_scope: 'leave_one_out' }
    expect(of('grpo', [1, 0], { ...loo, zero_std_group: 'skip_division' })).toEqual([1, -1])
    const [divided] = of('grpo', [1, 0], { ...loo, epsilon: 0.5 })
    expect(divided).toBeCloseTo(2, 12)
  })

  test('rloo is reward minus the mean of the others', () => {
    const values = of('rloo', [3, 1, 2, 6])
    const expected = [3 - 9 / 3, 1 - 11 / 3, 2 - 10 / 3, 6 - 6 / 3]
    values.forEach((value, index) => {
      expect(value).toBeCloseTo(expected[index]!, 12)
    })
  })
})

test('a group with equal votes stops the call where zero_std_group is error', () => {
  const act = () => estimate('grpo', [group([1, 1], 'p')], { zero_std_group: 'error' })
  expect(act).toThrow(/group "p" are equal/)
})

describe('rows of one rollout', () => {
  const rows = (rewards: [number, string][]) => ({
    id: 'g',
    members: rewards.map(([reward, rollout]) => member(reward, { rollout })),
  })

  test('vote once, or each where statistics_unit is row', () => {
    const g = rows([
      [1, 'a'],
      [1, 'a'],
      [1, 'a'],
      [0, 'b'],
    ])
    expect(advantages(estimate('dr_grpo', [g]))[0]).toEqual([0.5, 0.5, 0.5, -0.5])
    const byRow = advantages(estimate('dr_grpo', [g], { statistics_unit: 'row' }))[0]
    expect(byRow).toEqual([0.25, 0.25, 0.25, -0.75])
  })

  test('must agree on the reward', () => {
    const act = () =>
      estimate('grpo', [
        rows([
          [1, 'a'],
          [0, 'a'],
        ]),
      ])
    expect(act).toThrow(/rollout "a" of group "g" has rewards 1 and 0/)
  })

  test('belong to one group', () => {
    const act = () => estimate('grpo', [rows([[1, 'a']]), { ...rows([[1, 'a']]), id: 'h' }])
    expect(act).toThrow(/rollout "a" is in groups "g" and "h"/)
  })
})

describe('over the batch', () => {
  test('batch_std divides by the deviation of all raw rewards', () => {
    const groups = [group([0, 2], 'a'), group([10, 12], 'b')]
    const results = estimate('grpo', groups, { scale: 'batch_std', epsilon: 0 })
    // Sample variance of 0, 2, 10, 12 about 6: (36 + 16 + 16 + 36) / 3.
    const expected = 1 / Math.sqrt(104 / 3)
    for (const [low, high] of advantages(results)) {
      expect(high).toBeCloseTo(expected, 12)
      expect(low).toBeCloseTo(-expected, 12)
    }
    expect(results[0]!.explain.batch).toMatchObject({ mean: 6 })
  })

  test('whitening by token weighs long answers more', () => {
    const members = [member(1, { tokens: 30 }), member(0, { tokens: 10 })]
    const settings = { epsilon: 0, std: 'population' }
    const [values] = advantages(estimate('reinforce_pp_baseline', [{ id: 'g', members }], settings))
    // +0.5 on 30 tokens and -0.5 on 10: mean 0.25, population variance 3/16.
    expect(values![0]).toBeCloseTo(0.25 / Math.sqrt(3 / 16), 8)
    expect(values![1]).toBeCloseTo(-0.75 / Math.sqrt(3 / 16), 8)
  })

  test('whitening never scales up rounding', () => {
    const groups = [group([0.7, 0.7, 0.7], 'a'), group([0.1, 0.1, 0.1], 'b')]
    for (const scale of ['batch_whiten', 'batch_std_of_advantages'])
      expect(advantages(estimate('rloo', groups, { scale })).flat()).toEqual([0, 0, 0, 0, 0, 0])
  })
})

describe('maxrl', () => {
  test('a mean that is not positive gives 0, or no number at all', () => {
    expect(of('maxrl', [-1, 1], { nonpositive_mean: 'zero', epsilon: 0 })).toEqual([0, 0])
    const [result] = estimate('maxrl', [group([-1, 1])], { epsilon: 0 })
    expect(result!.members.map((entry) => entry.reason)).toEqual([
      'advantage_not_finite',
      'advantage_not_finite',
    ])
    expect(result!.members.map((entry) => entry.advantage)).toEqual([null, null])
  })
})

describe('grpo_passk', () => {
  test('a tie for the best gives every member 0', () => {
    expect(of('grpo_passk', [1, 1, 0])).toEqual([0, 0, 0])
  })

  test('undivided it is the lead over the second', () => {
    expect(of('grpo_passk', [0.25, 1, 0.5], { scale: 'none' })).toEqual([0, 0.5, 0])
  })
})

describe('weights', () => {
  const members = [
    member(0, { components: { a: 1, b: null } }),
    member(0, { components: { a: 0, b: 1 } }),
  ]
  const weights = { a: 1, b: 2 }

  test('sum components by name; a missing one rejects its member by default', () => {
    const [result] = estimate('dr_grpo', [{ id: 'g', members }], { weights })
    expect(result!.members[0]).toMatchObject({ advantage: null, reason: 'component_missing:b' })
  })

  test('or counts as nothing', () => {
    const settings = { weights, component_missing: 'counts_as_zero_unless_all_missing' }
    const [values] = advantages(estimate('dr_grpo', [{ id: 'g', members }], settings))
    expect(values).toEqual([-0.5, 0.5])
  })

  test('that name no component are refused with the nearest', () => {
    const act = () =>
      estimate('dr_grpo', [{ id: 'g', members }], { weights: { a: 1, b: 1, bb: 1 } })
    expect(act).toThrow(/names "bb", which no member has; the nearest component is "b"/)
  })

  test('must cover every component', () => {
    const act = () => estimate('dr_grpo', [{ id: 'g', members }], { weights: { a: 1 } })
    expect(act).toThrow(/component "b" has no weight/)
  })
})

describe('overlong shaping', () => {
  test('counts sampled tokens and records reward, length and penalty apart', () => {
    // Two turns of 30 with a 60-token observation between, and two of 45: 60 and 90 sampled tokens.
    const members = [member(1, { id: 'short', tokens: 60 }), member(1, { id: 'long', tokens: 90 })]
    const overlong_shaping = { max_length: 100, buffer: 20 }
    const [result] = estimate('dr_grpo', [{ id: 'g', members }], { overlong_shaping })
    expect(result!.explain.shaping).toEqual([
      { id: 'short', reward: 1, length: 60, penalty: 0 },
      { id: 'long', reward: 1, length: 90, penalty: -0.5 },
    ])
    expect(result!.members.map((entry) => entry.advantage)).toEqual([0.25, -0.25])
  })
})

test('the loss normaliser travels beside the advantage and changes nothing in it', () => {
  const loss_normalizer = { kind: 'constant', value: 3000 }
  const [result] = estimate('dr_grpo', [group([1, 0])], { loss_normalizer })
  expect(result!.explain.loss_normalizer).toEqual(loss_normalizer)
  expect(result!.members.map((entry) => entry.advantage)).toEqual([0.5, -0.5])
  expect(estimate('dr_grpo', [group([1, 0])])[0]!.explain.loss_normalizer).toEqual({
    kind: 'constant',
    value: null,
  })
  expect(estimate('grpo', [group([1, 0])])[0]!.explain.loss_normalizer).toEqual({
    kind: 'tokens_in_sample',
    value: null,
  })
})
