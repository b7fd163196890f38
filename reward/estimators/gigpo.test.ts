import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { GroupScores, MemberScore } from '../estimator.ts'
import { advantages, distance, estimate, group, member } from '../scores.testkit.ts'

type Step = [anchor: string | null, reward: number, valid?: boolean]

function trajectory(id: string, steps: Step[], more: Partial<MemberScore> = {}): MemberScore {
  const reward = steps.reduce((total, [, value]) => total + value, 0)
  return member(reward, {
    id,
    steps: steps.map(([anchor, value, valid]) => ({
      anchor,
      reward: value,
      ...(valid === undefined ? {} : { valid }),
    })),
    ...more,
  })
}

function of(members: MemberScore[], id = 'g'): GroupScores {
  return { id, members }
}

function steps(groups: GroupScores[], settings: Record<string, unknown> = {}) {
  return estimate('gigpo', groups, settings).map((result) =>
    result.members.map((entry) => entry.steps),
  )
}

describe('where no anchor repeats', () => {
  test('every step has the episode term, which is GRPO', () => {
    const rewards = fc.array(fc.double({ min: -10, max: 10, noNaN: true }), {
      minLength: 1,
      maxLength: 6,
    })
    fc.assert(
      fc.property(
        rewards,
        fc.integer({ min: 1, max: 4 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (values, length, gamma) => {
          const members = values.map((reward, index) =>
            trajectory(
              `t${index}`,
              Array.from(
                { length },
                (_, step): Step => [`${index}/${step}`, step === 0 ? reward : 0],
              ),
            ),
          )
          const [result] = estimate('gigpo', [of(members)], { gamma })
          const [plain] = advantages(estimate('grpo', [group(values)]))
          result!.members.forEach((entry, index) => {
            expect(entry.advantage).toBe(plain![index])
            expect(entry.steps).toEqual(Array.from({ length }, () => entry.advantage))
          })
          expect(result!.explain.shared_anchor_share).toBe(0)
        },
      ),
    )
  })

  test('a step alone in its state adds 0, not its raw return', () => {
    const members = [trajectory('t0', [['a', 5]]), trajectory('t1', [['b', 5]])]
    expect(steps([of(members)])).toEqual([[[0], [0]]])
  })
})

describe('a shared state', () => {
  test('is compared within its group only', () => {
    const p = of([trajectory('t0', [['dock', 1]]), trajectory('t1', [['dock', 0]])], 'p')
    const q = of([trajectory('t2', [['dock', 9]]), trajectory('t3', [['quay', 9]])], 'q')
    const settings = { mode: 'mean_norm', gamma: 1 }
    expect(steps([p, q], settings)).toEqual([
      [[1], [-1]],
      [[0], [0]],
    ])
  })

  test('may be visited twice by one trajectory, and the later visit has the larger return', () => {
    const loop = trajectory('t0', [
      ['page', 0],
      ['page', 1],
    ])
    const [[own]] = steps([of([loop])], { mode: 'mean_norm', gamma: 0.5 }) as [[number[]]]
    // Returns 0.5 and 1 about 0.75; a single trajectory has no episode term.
    expect(own).toEqual([-0.25, 0.25])
  })

  test('is told by its share of steps and its size', () => {
    const members = [
      trajectory('t0', [
        ['dock', 0],
        ['x', 1],
      ]),
      trajectory('t1', [
        ['dock', 0],
        ['y', 0],
      ]),
    ]
    const [result] = estimate('gigpo', [of(members)])
    expect(result!.explain.shared_anchor_share).toBe(0.5)
    expect(result!.explain.anchors).toEqual([
      { anchor: 'dock', steps: 2 },
      { anchor: 'x', steps: 1 },
      { anchor: 'y', steps: 1 },
    ])
  })
})

describe('a missing anchor', () => {
  test.each<[string, unknown, RegExp]>([
    ['null', null, /step 1 of trajectory "u" in group "g": the anchor is missing/],
    ['an empty text', '', /step 1 of trajectory "u" in group "g": the anchor is empty/],
    ['a number', 1, /step 1 of trajectory "u" in group "g": the anchor is a number/],
  ])('%s stops the call and is named', (_, anchor, message) => {
    const u = trajectory('u', [
      ['a', 0],
      [anchor as string, 1],
    ])
    expect(() => steps([of([u])])).toThrow(message)
    expect(() => steps([of([u])])).toThrow(/own_group/)
  })

  test('makes each such step its own group where the settings say so', () => {
    const members = [
      trajectory('u', [[null, 0]]),
      trajectory('v', [[null, 1]]),
      trajectory('w', [['', 1]]),
    ]
    const [result] = estimate('gigpo', [of(members)], { anchor_missing: 'own_group' })
    expect(result!.explain.shared_anchor_share).toBe(0)
    expect(result!.members.map((entry) => entry.steps)).toEqual(
      result!.members.map((entry) => [entry.advantage]),
    )
  })

  test('of a member without reward is not looked at', () => {
    const failed = trajectory('f', [[null, 0]], { reward: null, reason: 'infra_tool' })
    const [result] = estimate('gigpo', [of([failed, trajectory('t', [['a', 1]])])])
    expect(result!.members[0]).toEqual({ advantage: null, steps: null, reason: 'infra_tool' })
  })
})

test('a member without reward influences neither episodes nor states', () => {
  const a = trajectory('a', [['s', 1]])
  const b = trajectory('b', [['s', 0]])
  const failed = trajectory('f', [['s', 7]], { reward: null, reason: 'timeout' })
  const [alone] = steps([of([a, b])])
  const [joined] = steps([of([a, failed, b])])
  expect(joined).toEqual([alone![0], null, alone![1]])
})

describe('an action that could not be read', () => {
  const equal = [
    trajectory('t0', [
      ['a', 0],
      ['b', 1, false],
    ]),
    trajectory('t1', [
      ['c', 0],
      ['d', 1],
    ]),
  ]
  const settings = { invalid_action_penalty: 0.1 }

  test('costs the penalty as a term of its own where trajectories vote', () => {
    // As part of a trajectory's vote it would give -0.1 / 1e-6 here, where all episodes are equal.
    expect(steps([of(equal)], settings)).toEqual([
      [
        [0, -0.1],
        [0, 0],
      ],
    ])
  })

  test('enters the statistics where rows vote', () => {
    const rows = { ...settings, preset: 'verl_agent' }
    const [[first]] = steps([of(equal)], rows) as [[number[]]]
    // Row scores 1, 0.9, 1, 1: mean 0.975, sample deviation 0.05.
    expect(first![1]).toBeCloseTo(-0.075 / (0.05 + 1e-6), 9)
  })

  test('leaves the member the advantage of its clean rows', () => {
    const [result] = estimate('gigpo', [of(equal)], { ...settings, preset: 'verl_agent' })
    expect(result!.members[0]!.advantage).toBeCloseTo(0.025 / (0.05 + 1e-6), 9)
  })
})

test('what the steps do not hold of the reward falls on the last one', () => {
  const paidAtEnd = [
    trajectory(
      't0',
      [
        ['a', 0],
        ['b', 0],
      ],
      { reward: 1 },
    ),
    trajectory(
      't1',
      [
        ['a', 0],
        ['b', 0],
      ],
      { reward: 0 },
    ),
  ]
  const [result] = estimate('gigpo', [of(paidAtEnd)], { gamma: 0.5 })
  expect(result!.explain.step_returns).toEqual([
    [0.5, 1],
    [0, 0],
  ])
})

test('a member that took no step has its episode term and no steps', () => {
  const [result] = estimate('gigpo', [of([member(1), trajectory('t', [['a', 0]])])], {
    mode: 'mean_norm',
  })
  expect(result!.members[0]).toEqual({ advantage: 0.5, steps: [], reason: null })
})

test('equal trajectories give exact zeros whatever they are worth', () => {
  fc.assert(
    fc.property(
      fc.double({ min: -1e6, max: 1e6, noNaN: true }),
      fc.integer({ min: 2, max: 9 }),
      fc.constantFrom('mean_std_norm', 'mean_norm'),
      (reward, size, mode) => {
        const members = Array.from({ length: size }, (_, index) =>
          trajectory(`t${index}`, [
            ['a', 0],
            ['b', reward],
          ]),
        )
        const [result] = estimate('gigpo', [of(members)], { mode })
        expect(result!.explain.zero_variance).toBe(true)
        for (const entry of result!.members) expect(entry.steps).toEqual([0, 0])
      },
    ),
  )
})

test('the order of members changes nothing where anchors match exactly', () => {
  const anchor = fc.constantFrom('a', 'b', 'c')
  const reward = fc.integer({ min: -4, max: 4 })
  const path = fc.array(fc.tuple(anchor, reward), { minLength: 1, maxLength: 4 })
  fc.assert(
    fc.property(fc.array(path, { minLength: 1, maxLength: 5 }), (paths) => {
      const members = paths.map((path, index) => trajectory(`t${index}`, path))
      const [straight] = steps([of(members)])
      const [back] = steps([of(members.toReversed())])
      straight!.forEach((values, index) => {
        expect(distance(values!, back!.toReversed()[index]!)).toBeLessThan(1e-9)
      })
    }),
  )
})

describe('similar anchors', () => {
  const near = { kind: 'sequence_matcher_ratio', threshold: 0.9 }

  test('join the first group that is alike enough, in order of rows', () => {
    const members = [
      trajectory('t0', [['You see a fridge 1.', 1]]),
      trajectory('t1', [['You see a fridge 2.', 0]]),
      trajectory('t2', [['You see an egg.', 0]]),
    ]
    const [result] = estimate('gigpo', [of(members)], { anchor_match: near })
    expect(result!.explain.anchors).toEqual([
      { anchor: 'You see a fridge 1.', steps: 2 },
      { anchor: 'You see an egg.', steps: 1 },
    ])
  })

  test('long ones differ by autojunk alone', () => {
    const tail = 'ab'.repeat(120)
    const members = [trajectory('t0', [[`X${tail}`, 1]]), trajectory('t1', [[`Y${tail}`, 0]])]
    const share = (autojunk: boolean) =>
      estimate('gigpo', [of(members)], { anchor_match: { ...near, autojunk } })[0]!.explain
        .shared_anchor_share
    expect(share(true)).toBe(0)
    expect(share(false)).toBe(1)
  })
})

test('rewards whose sums overflow give no number rather than a wrong one', () => {
  const members = [1e308, -1e308].map((reward, index) =>
    trajectory(
      `t${index}`,
      [
        [`${index}`, reward],
        ['end', reward],
      ],
      { reward },
    ),
  )
  const [result] = estimate('gigpo', [of(members)])
  // The episodes' rewards stand √½ of their deviation from their mean; what their steps add up to is no double.
  const advantages = result!.members.map(({ advantage }) => advantage ?? Number.NaN)
  expect(advantages[0]).toBeCloseTo(Math.SQRT1_2, 12)
  expect(advantages[1]).toBeCloseTo(-Math.SQRT1_2, 12)
  // The first step is alone in its state and adds 0, whatever its return.
  for (const { steps, advantage } of result!.members) expect(steps).toEqual([advantage, null])
  expect((result!.explain.std ?? 0) / 1e308).toBeCloseTo(Math.SQRT2, 12)
})
