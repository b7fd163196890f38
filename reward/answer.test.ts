import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { answerAdvantages } from './answer.ts'
import { distance } from './scores.testkit.ts'
import { expectVector, goldenVectors } from './vectors.testkit.ts'

interface Answer {
  name: string | null
  advantages: (number | null)[]
  reasons?: (string | null)[]
  error?: { code: string; message: string; path: string }
  [key: string]: unknown
}

function ask(estimator: string, input: object, settings: object = {}): Answer {
  return answerAdvantages({ name: 'q', estimator, settings, input }) as Answer
}

function refused(answer: Answer, path: string, message: RegExp): void {
  expect(answer.error).toMatchObject({ code: 'invalid_request', path })
  expect(answer.error!.message).toMatch(message)
  expect(answer.advantages).toBeUndefined()
}

describe('the golden vectors of the reference libraries', () => {
  const vectors = goldenVectors()

  test('are all 97 there', () => {
    expect(vectors).toHaveLength(97)
  })

  test.each(vectors.map((vector) => [vector.name, vector] as const))('%s', (name, vector) => {
    const { estimator, settings, input } = vector
    const answer = answerAdvantages({ name, estimator, settings, input })
    expect(answer).toMatchObject({ name })
    expectVector(answer, vector)
  })

  test('may be asked as they stand in their file', () => {
    const [vector] = vectors
    expectVector(answerAdvantages(vector), vector!)
  })
})

describe('rows are bound by ids and never by position', () => {
  const settings = {
    baseline: 'group_mean',
    scale: 'group_std',
    std: 'sample',
    epsilon: 1e-6,
    epsilon_mode: 'added_to_std',
    singleton_group: 'zero',
  }
  const input = {
    rewards: [1, 0, null, 0, 0, 0, 1, null],
    groups: ['p', 'q', 'p', 'q', 'p', 'q', 'p', 'q'],
  }

  test('interleaved groups with a missing member each keep their own mean', () => {
    const { advantages, reasons } = ask('grpo', input, settings)
    const expected = [
      0.5773492691913578,
      0,
      null,
      0,
      -1.1546985383827153,
      0,
      0.5773492691913578,
      null,
    ]
    advantages.forEach((value, row) => {
      if (expected[row] === null) expect(value).toBeNull()
      else expect(value).toBeCloseTo(expected[row]!, 9)
    })
    const missing = 'reward_missing'
    expect(reasons).toEqual([null, null, missing, null, null, null, null, missing])
  })

  test('a missing member is 0 under the trl preset', () => {
    const { advantages } = ask('grpo', input, { preset: 'trl' })
    expect([advantages[2], advantages[7]]).toEqual([0, 0])
  })

  test('two groups of one task with two hidden states stay two', () => {
    const answer = ask('grpo', {
      rewards: [0, 1, 0, 1, 0, 1, 0, 1],
      groups: ['seed1', 'seed2', 'seed1', 'seed2', 'seed1', 'seed2', 'seed1', 'seed2'],
    })
    expect(answer.advantages).toEqual([0, 0, 0, 0, 0, 0, 0, 0])
  })

  test('steps of a trajectory go by their number, wherever they stand', () => {
    const step = (trajectory: string, step: number, reward: number) => ({
      group: 'g',
      trajectory,
      step,
      anchor: `${trajectory}${step}`,
      reward,
    })
    const rows = [step('t', 0, 0), step('u', 0, 0), step('t', 1, 1), step('u', 1, 0)]
    const straight = ask('gigpo', { steps: rows })
    const turned = ask('gigpo', { steps: rows.toReversed() })
    expect(straight.step_returns).toEqual([0.95, 0, 1, 0])
    expect(turned.step_returns).toEqual([0, 1, 0, 0.95])
    expect(turned.advantages).toEqual(straight.advantages.toReversed())
  })
})

describe('gdpo keeps equal totals with different components', () => {
  test('whitened and before', () => {
    const rows = [
      { solved: 0.5, brief: 0 },
      { solved: 0, brief: 1 },
    ]
    const input = { components: [...rows, ...rows], groups: ['k1', 'k1', 'k1', 'k1'] }
    const answer = ask('gdpo', input, { weights: { solved: 2, brief: 1 } })
    const [high, before] = [0.8659387649072542, 0.8655755855822977]
    expect(answer.advantages).toEqual(
      [high, -high, high, -high].map((value) => expect.closeTo(value, 12)),
    )
    expect(answer.pre_batch).toEqual(
      [before, -before, before, -before].map((value) => expect.closeTo(value, 12)),
    )
  })
})

describe('anchors are declared, never guessed', () => {
  const steps = (left: unknown, right: unknown) => ({
    steps: [
      { group: 'g', trajectory: 'u', step: 0, anchor: left, reward: 0 },
      { group: 'g', trajectory: 'v', step: 0, anchor: right, reward: 1 },
    ],
  })
  const settings = { gamma: 1, step_advantage_w: 1, mode: 'mean_norm' }

  test.each<[string, unknown, unknown, RegExp]>([
    ['null', null, null, /step 0 of trajectory "u": the anchor is missing/],
    ['an empty text', '', '', /step 0 of trajectory "u": the anchor is empty/],
    [
      'the number 1 beside the text "1"',
      1,
      '1',
      /step 0 of trajectory "u": the anchor is a number/,
    ],
  ])('%s is an error that names trajectory and step', (_, left, right, message) => {
    refused(ask('gigpo', steps(left, right), settings), 'input.steps[0]', message)
  })

  test('equal texts are one state of two steps', () => {
    const answer = ask('gigpo', steps('dock', 'dock'), settings)
    expect(answer.step_groups).toEqual([0, 0])
    expect(answer.advantages).toEqual([-1, 1])
  })

  test('a missing one is a state of its own where the settings say so', () => {
    const answer = ask('gigpo', steps(null, null), { ...settings, anchor_missing: 'own_group' })
    expect(answer.step_groups).toEqual([0, 1])
  })
})

describe('a missing or broken number costs its row and no other', () => {
  test.each<[unknown, string]>([
    [null, 'reward_missing'],
    ['1.0', 'reward_wrong_type'],
    [true, 'reward_wrong_type'],
    [[1], 'reward_wrong_type'],
    [Number.POSITIVE_INFINITY, 'reward_not_finite'],
    [Number.NaN, 'reward_not_finite'],
  ])('a reward of %j', (reward, reason) => {
    const answer = ask('dr_grpo', { rewards: [1, reward, 0], groups: ['a', 'a', 'a'] })
    expect(answer.advantages).toEqual([0.5, null, -0.5])
    expect(answer.reasons).toEqual([null, reason, null])
  })

  test('a component that is text or missing', () => {
    const components = [{ a: 1, b: 1 }, { a: 0, b: 0 }, { a: '1', b: 0 }, null, { a: 1 }]
    const answer = ask('gdpo', { components, groups: ['a', 'a', 'a', 'a', 'a'] })
    expect(answer.reasons).toEqual([
      null,
      null,
      'component_wrong_type:a',
      'component_missing:a',
      'component_missing:b',
    ])
  })

  test('a step reward leaves its trajectory without advantage', () => {
    const step = (trajectory: string, step: number, reward: unknown) => ({
      group: 'g',
      trajectory,
      step,
      anchor: 'a',
      reward,
    })
    const steps = [step('t', 0, 1), step('u', 0, 0), step('x', 0, 1), step('x', 1, null)]
    const answer = ask('gigpo', { steps }, { mode: 'mean_norm', gamma: 1 })
    expect(answer.advantages).toEqual([1, -1, null, null])
    expect(answer.reasons).toEqual([null, null, 'reward_missing', 'reward_missing'])
    expect(answer.step_groups).toEqual([0, 0, null, null])
    expect(answer.episode_rewards).toEqual({ t: 1, u: 0, x: null })
  })

  test('a trajectory without step rewards', () => {
    const answer = ask('grpo_process', { trajectories: [[0, 1], null, [1, 0]] })
    expect(answer.advantages).toEqual([[0, 1], null, [0, -1]])
  })
})

describe('a question that cannot be answered is an error with its path', () => {
  const rows = { rewards: [1, 0], groups: ['a', 'a'] }
  const step = { group: 'g', trajectory: 't', step: 0, anchor: 'a', reward: 1 }

  test.each<[string, Answer, string, RegExp]>([
    ['an unknown estimator', ask('grop', rows), 'estimator', /nearest is "grpo"/],
    [
      'an unknown setting',
      ask('grpo', rows, { epsilom: 1 }),
      'settings.epsilom',
      /nearest is "epsilon"/,
    ],
    [
      'an unknown key of the input',
      ask('grpo', { ...rows, reward: [1] }),
      'input.reward',
      /nearest is "rewards"/,
    ],
    [
      'lists of different lengths',
      ask('grpo', { ...rows, groups: ['a'] }),
      'input.rewards',
      /expected 1 rows, as groups has, got 2/,
    ],
    [
      'group ids that are numbers',
      ask('grpo', { ...rows, groups: [1, 1] }),
      'input.groups[0]',
      /expected a string/,
    ],
    ['no rewards', ask('grpo', { groups: ['a'] }), 'input.rewards', /give one per row/],
    [
      'components without weights',
      ask('grpo', { components: [{ a: 1 }], groups: ['a'] }),
      'input.rewards',
      /settings.weights/,
    ],
    ['no components', ask('gdpo', rows), 'input.components', /one object per row/],
    [
      'no lengths where they weigh',
      ask('opo', rows),
      'input.response_lengths',
      /sampled tokens by row/,
    ],
    [
      'a missing reward under missing error',
      ask('grpo', { rewards: [1, null], groups: ['a', 'a'] }, { missing: 'error' }),
      'settings.missing',
      /"row 1" of group "a"/,
    ],
    [
      'a trajectory in two groups',
      ask('gigpo', { steps: [step, { ...step, group: 'h', step: 1 }] }),
      'input.steps[1]',
      /trajectory "t" is in groups "g" and "h"/,
    ],
    ['a step twice', ask('gigpo', { steps: [step, step] }), 'input.steps[1]', /step 0 twice/],
    [
      'a mask that is no mask',
      ask('grpo', { ...rows, response_mask: [[2], [1]] }),
      'input.response_mask[0][0]',
      /expected 0 or 1/,
    ],
    [
      'an unknown rule',
      ask('dynamic_sampling', { groups_of_rewards: [] }, { rule: { slim: '' } }),
      'settings.rule.slim',
      /nearest is "slime"/,
    ],
    [
      'a loss without its constant',
      ask('dr_grpo_loss', { advantages: [1], response_mask: [[1]], token_ratio: [[1]] }),
      'input.normalizer',
      /generation budget/,
    ],
    [
      'rows of a loss that do not fit',
      ask('dr_grpo_loss', {
        advantages: [1],
        response_mask: [[1]],
        token_ratio: [[1, 1]],
        normalizer: 1,
      }),
      'input.token_ratio[0]',
      /1 tokens, token_ratio 2/,
    ],
  ])('%s', (_, answer, path, message) => {
    expect(answer.name).toBe('q')
    refused(answer, path, message)
  })

  test('a line that is no question has no name', () => {
    expect(answerAdvantages('x')).toMatchObject({ name: null, error: { code: 'invalid_request' } })
    expect(answerAdvantages({ estimator: 'grpo', input: {} })).toMatchObject({
      name: null,
      error: { path: 'line.name' },
    })
  })

  test('nothing that can come as JSON throws, and no number in an answer is not finite', () => {
    const estimator = fc.constantFrom(
      'grpo',
      'gdpo',
      'gigpo',
      'hgpo',
      'grpo_process',
      'opo',
      'dr_grpo_loss',
    )
    const cell = fc.oneof(fc.double(), fc.constant(null), fc.string(), fc.boolean())
    const input = fc.oneof(
      fc.jsonValue(),
      fc.record({
        rewards: fc.array(cell, { maxLength: 3 }),
        groups: fc.array(fc.constantFrom('a', '__proto__'), { maxLength: 3 }),
      }),
      fc.record({
        steps: fc.array(
          fc.record({
            group: fc.constantFrom('a', 'b'),
            trajectory: fc.constantFrom('t', '__proto__', 'constructor'),
            step: fc.nat(3),
            anchor: fc.oneof(fc.constantFrom('x', 'y', '', '__proto__'), fc.constant(null)),
            reward: cell,
          }),
          { maxLength: 5 },
        ),
      }),
    )
    fc.assert(
      fc.property(estimator, input, (estimator, input) => {
        const answer = answerAdvantages({ name: 'n', estimator, input })
        expect(answer).toMatchObject({ name: 'n' })
        // JSON writes what is not finite as null: the text must hold no null that the answer did not mean.
        expect(JSON.parse(JSON.stringify(answer))).toEqual(answer)
      }),
      { numRuns: 500 },
    )
  })
})

test('the figures of each group stand beside the answer where they are asked for', () => {
  const line = {
    name: 'q',
    estimator: 'dr_grpo',
    settings: { loss_normalizer: { kind: 'constant', value: 1024 } },
    input: { rewards: [1, 0], groups: ['a', 'a'] },
    explain: true,
  }
  expect(answerAdvantages(line)).toMatchObject({
    explain: [
      { group: 'a', votes: 2, mean: 0.5, loss_normalizer: { kind: 'constant', value: 1024 } },
    ],
  })
})

test('a token of a row without advantage has none where the mask is 1', () => {
  const input = {
    rewards: [1, null, 0],
    groups: ['a', 'a', 'a'],
    response_mask: [
      [1, 0],
      [1, 0],
      [0, 1],
    ],
  }
  expect(ask('dr_grpo', input).token_advantages).toEqual([
    [0.5, 0],
    [null, 0],
    [0, -0.5],
  ])
})

describe('lines of the field', () => {
  it('A04: ids bind members, whatever stands between them', () => {
    const settings = {
      baseline: 'group_mean',
      scale: 'group_std',
      std: 'sample',
      epsilon: 1e-6,
      epsilon_mode: 'added_to_std',
      singleton_group: 'zero',
    }
    const input = {
      rewards: [1, 0, null, 0, 0, 0, 1, null],
      groups: ['p', 'q', 'p', 'q', 'p', 'q', 'p', 'q'],
    }
    const high = 0.5773492691913578
    const low = -1.1546985383827153
    const { advantages, reasons } = ask('grpo', input, settings)
    const expected = [high, 0, null, 0, low, 0, high, null]
    expect(distance(advantages, expected)).toBeLessThan(1e-15)
    expect(reasons?.map((reason) => reason !== null)).toEqual(expected.map((one) => one === null))
    const trl = ask('grpo', input, { ...settings, preset: 'trl' })
    expect(
      distance(
        trl.advantages,
        expected.map((one) => one ?? 0),
      ),
    ).toBeLessThan(1e-15)
  })

  it('A07: components that differ under equal totals keep their signal', () => {
    const group = {
      baseline: 'group_mean',
      std: 'sample',
      epsilon: 1e-4,
      epsilon_mode: 'added_to_std',
      zero_std_group: 'divide',
      singleton_group: 'zero',
    }
    const batch = { level: 'sample', std: 'sample', epsilon: 1e-4, epsilon_mode: 'added_to_std' }
    const weights = { solved: 2, brief: 1 }
    const [a, b] = [
      { solved: 0.5, brief: 0 },
      { solved: 0, brief: 1 },
    ]
    const groups = Array(4).fill('k1')
    const settings = { weights, group, batch, component_missing: 'error' }
    const answer = ask('gdpo', { components: [a, b, a, b], groups }, settings)
    const sign = [1, -1, 1, -1]
    const times = (value: number) => sign.map((one) => one * value)
    expect(distance(answer.advantages, times(0.8659387649072542))).toBeLessThan(1e-15)
    const before = answer.pre_batch as number[]
    expect(distance(before, times(0.8655755855822977))).toBeLessThan(1e-15)
    const totals = ask('grpo', { rewards: [1, 1, 1, 1], groups })
    expect(totals.advantages).toEqual([0, 0, 0, 0])
  })

  it('A13: an anchor is a declared string; one that is missing, empty or a number never means the same state', () => {
    const settings = { gamma: 1, step_advantage_w: 1, mode: 'mean_norm' }
    const steps = (...anchors: unknown[]) => ({
      steps: anchors.map((anchor, index) => ({
        group: 'g',
        trajectory: index === 0 ? 'u' : 'v',
        step: 0,
        anchor,
        reward: index,
      })),
    })
    for (const [anchors, words] of [
      [[null, null], /missing/],
      [['', ''], /empty/],
      [[1, '1'], /number.*not a string/],
    ] as const) {
      const { error } = ask('gigpo', steps(...anchors), settings)
      expect(error?.message).toMatch(/step 0 of trajectory "u"/)
      expect(error?.message).toMatch(words)
    }
    const answer = ask('gigpo', steps('dock', 'dock'), settings)
    expect(answer.step_groups).toEqual([0, 0])
    // Each term is r - mean: -1/2 and 1/2, and there are two of them.
    expect(answer.advantages).toEqual([-1, 1])
  })
})
