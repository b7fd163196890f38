// The specification of the estimators, sentence by sentence, as questions whose answers were worked out by hand.
import { describe, expect, test } from 'vitest'
import { answerAdvantages } from './answer.ts'

type Numbers = (number | null)[]
interface Answer {
  advantages: Numbers
  reasons?: (string | null)[]
  error?: { path: string }
}
type Settings = Record<string, unknown>
type Line = [sentence: string, settings: Settings, input: object, advantages: Numbers]

/** Far above what doubles lose here, far below any difference between two readings of a sentence. */
const NEAR = 1e-6

function ask(estimator: string, settings: Settings, input: object): Answer {
  return answerAdvantages({ name: 'q', estimator, settings, input }) as Answer
}

function expectNear(actual: Numbers, expected: Numbers): void {
  expect(actual).toEqual(
    expected.map((value) => (value === null ? null : expect.closeTo(value, -Math.log10(NEAR)))),
  )
}

const lines = (estimator: string, table: Line[]) =>
  test.each(table)(`${estimator}: %s`, (_, settings, input, advantages) => {
    const answer = ask(estimator, settings, input)
    expect(answer.error).toBeUndefined()
    expectNear(answer.advantages, advantages)
    answer.advantages.forEach((value, row) => {
      if (value === null) expect(answer.reasons?.[row]).toBeTypeOf('string')
    })
  })

/** Rows of one group, or of the groups that the letters name. */
const rows = (rewards: unknown[], groups = 'a'.repeat(rewards.length), more: object = {}) => ({
  rewards,
  groups: [...groups],
  ...more,
})
const lengths = (...response_lengths: number[]) => ({ response_lengths })
const root = Math.sqrt
/** Without an epsilon the numbers are those of the formula. */
const bare = { epsilon: 0 }

describe('section 1, the shared settings', () => {
  lines('grpo', [
    ['baseline group_mean', { scale: 'none' }, rows([3, 0, 0]), [2, -1, -1]],
    [
      'baseline leave_one_out',
      { scale: 'none', baseline: 'leave_one_out' },
      rows([3, 0, 0]),
      [3, -1.5, -1.5],
    ],
    [
      'baseline length_weighted_mean',
      { scale: 'none', baseline: 'length_weighted_mean' },
      rows([4, 0, 0], 'aaa', lengths(1, 1, 2)),
      [3, -1, -1],
    ],
    ['scale group_std', bare, rows([3, 0, 0]), [2, -1, -1].map((c) => c / root(3))],
    [
      'scale batch_std is of all raw rewards, not of the centred ones',
      { ...bare, scale: 'batch_std' },
      rows([1, 0, 1, 1], 'aabb'),
      [1, -1, 0, 0],
    ],
    ['scale group_mean', { ...bare, scale: 'group_mean' }, rows([6, 0, 0]), [2, -1, -1]],
    [
      'scale batch_whiten',
      { ...bare, scale: 'batch_whiten', std: 'population' },
      rows([1, 0, 3, 0], 'aabb'),
      [0.5, -0.5, 1.5, -1.5].map((a) => a / root(1.25)),
    ],
    [
      'std population',
      { ...bare, std: 'population' },
      rows([3, 0, 0]),
      [root(2), -root(0.5), -root(0.5)],
    ],
    ['std none', { ...bare, std: 'none' }, rows([3, 0, 0]), [2, -1, -1]],
    [
      'std_scope leave_one_out is the deviation of the siblings',
      { ...bare, std_scope: 'leave_one_out', baseline: 'leave_one_out' },
      rows([0, 2, 4]),
      [-3 / root(2), 0, 3 / root(2)],
    ],
    ['epsilon added_to_std', { std: 'population', epsilon: 1 }, rows([2, 0]), [0.5, -0.5]],
    [
      'epsilon added_to_variance',
      { std: 'population', epsilon: 3, epsilon_mode: 'added_to_variance' },
      rows([2, 0]),
      [0.5, -0.5],
    ],
    [
      'epsilon added_to_mean',
      { scale: 'group_mean', epsilon: 1, epsilon_mode: 'added_to_mean' },
      rows([3, 0, 0]),
      [1, -0.5, -0.5],
    ],
    [
      'epsilon none_and_skip_if_zero',
      { std: 'population', epsilon: 9, epsilon_mode: 'none_and_skip_if_zero' },
      rows([2, 0]),
      [1, -1],
    ],
    [
      'variance_floor comes before epsilon',
      { std: 'population', epsilon: 2, variance_floor: 4 },
      rows([2, 0]),
      [0.25, -0.25],
    ],
    ['singleton_group raw_reward', { singleton_group: 'raw_reward', epsilon: 1 }, rows([3]), [1.5]],
    ['singleton_group zero', { singleton_group: 'zero' }, rows([3]), [0]],
    ['singleton_group nan is null', { singleton_group: 'nan' }, rows([3]), [null]],
    [
      'zero_std_group divide',
      { std_scope: 'leave_one_out', epsilon: 0.5, zero_std_group: 'divide' },
      rows([2, 0]),
      [2, -2],
    ],
    [
      'zero_std_group skip_division',
      { std_scope: 'leave_one_out', epsilon: 0.5, zero_std_group: 'skip_division' },
      rows([2, 0]),
      [1, -1],
    ],
    [
      'missing excluded_then_zero',
      { scale: 'none', missing: 'excluded_then_zero' },
      rows([1, null, 0]),
      [0.5, 0, -0.5],
    ],
    [
      'statistics_unit rollout',
      { scale: 'none', statistics_unit: 'rollout' },
      rows([1, 1, 0], 'aaa', { rollouts: ['x', 'x', 'y'] }),
      [0.5, 0.5, -0.5],
    ],
    [
      'statistics_unit row',
      { scale: 'none', statistics_unit: 'row' },
      rows([1, 1, 0], 'aaa', { rollouts: ['x', 'x', 'y'] }),
      [1 / 3, 1 / 3, -2 / 3],
    ],
    [
      'level token: long answers weigh more',
      { ...bare, scale: 'batch_whiten', level: 'token', std: 'population' },
      rows([1, 0], 'aa', lengths(3, 1)),
      [1 / root(3), -root(3)],
    ],
  ])

  const components = [{ x: 4 }, { x: 0, y: 2 }, {}]
  const sums = (component_missing: string) => ({
    scale: 'none',
    weights: { x: 1, y: 1 },
    component_missing,
  })
  test.each<[string, Numbers]>([
    ['error', [null, 0, null]],
    ['zero_fill', [2, 0, -2]],
    ['excluded_from_that_component', [1, -1, null]],
    ['counts_as_zero_unless_all_missing', [1, -1, null]],
  ])('grpo: component_missing %s', (rule, advantages) => {
    const { advantages: actual } = ask('grpo', sums(rule), { components, groups: ['a', 'a', 'a'] })
    expectNear(actual, advantages)
  })
})

const STEEP = [1, 0, 0, 1]

describe('section 2, what each library does', () => {
  lines('grpo', [
    [
      'verl: a group of one keeps its raw reward',
      { preset: 'verl' },
      rows([0.5]),
      [0.5 / (1 + 1e-6)],
    ],
    [
      'verl-agent: rows vote',
      { preset: 'verl_agent', scale: 'none' },
      rows([1, 1, 0], 'aaa', { rollouts: ['x', 'x', 'y'] }),
      [1 / 3, 1 / 3, -2 / 3],
    ],
    [
      'trl: epsilon 1e-4',
      { preset: 'trl' },
      rows([1e-4, -1e-4]),
      [1, -1].map((c) => c / (root(2) + 1)),
    ],
    ['trl: a group of one is 0', { preset: 'trl' }, rows([1]), [0]],
    [
      'trl: without reward it is left out of mean and std, advantage 0',
      { preset: 'trl', ...bare },
      rows([1, null, 0]),
      [root(0.5), 0, -root(0.5)],
    ],
    [
      'nemo_rl: baseline and deviation leave one out',
      { preset: 'nemo_rl', ...bare },
      rows([0, 2, 4]),
      [-3 / root(2), 0, 3 / root(2)],
    ],
    [
      'nemo_rl: the division is skipped where the deviation is 0',
      { preset: 'nemo_rl' },
      rows([1, 0]),
      [1, -1],
    ],
    ['slime: a group of one is 0', { preset: 'slime' }, rows([1]), [0]],
    [
      'miles: one vote per rollout',
      { preset: 'miles', scale: 'none' },
      rows([1, 1, 0], 'aaa', { rollouts: ['x', 'x', 'y'] }),
      [0.5, 0.5, -0.5],
    ],
    [
      'trl: one function without a value counts as 0 in the sum of that sample, all without leave it out',
      { preset: 'trl', scale: 'none', weights: { x: 1, y: 1 } },
      {
        components: [
          { x: 4, y: null },
          { x: 0, y: 2 },
          { x: null, y: null },
        ],
        groups: ['a', 'a', 'a'],
      },
      [1, -1, 0],
    ],
    [
      'a sample that is marked not to vote votes in verl, trl, slime and miles alike: verl',
      { preset: 'verl', scale: 'none' },
      rows([3, 0, 0], 'aaa', { eligible: [false, true, true] }),
      [2, -1, -1],
    ],
    [
      'trl',
      { preset: 'trl', scale: 'none' },
      rows([3, 0, 0], 'aaa', { eligible: [false, true, true] }),
      [2, -1, -1],
    ],
    [
      'slime',
      { preset: 'slime', scale: 'none' },
      rows([3, 0, 0], 'aaa', { eligible: [false, true, true] }),
      [2, -1, -1],
    ],
    [
      'miles',
      { preset: 'miles', scale: 'none' },
      rows([3, 0, 0], 'aaa', { eligible: [false, true, true] }),
      [2, -1, -1],
    ],
  ])

  test('tool and observation tokens get 0', () => {
    const input = {
      ...rows([1, 0]),
      response_mask: [
        [1, 0, 1],
        [0, 1, 1],
      ],
    }
    expect(ask('dr_grpo', {}, input)).toMatchObject({
      token_advantages: [
        [0.5, 0, 0.5],
        [0, -0.5, -0.5],
      ],
    })
  })

  test('a sample whose tokens are all masked still votes', () => {
    const input = { ...rows([3, 0, 0]), response_mask: [[0], [1], [1]] }
    expect(ask('dr_grpo', {}, input)).toMatchObject({
      advantages: [2, -1, -1],
      token_advantages: [[0], [-1], [-1]],
    })
  })
})

describe('sections 3 and 4, GRPO and Dr. GRPO', () => {
  lines('grpo', [
    ['of two, sample makes any unequal pair 0.7071', bare, rows([100, 1]), [root(0.5), -root(0.5)]],
    ['of two, population makes it 1', { ...bare, std: 'population' }, rows([100, 1]), [1, -1]],
    [
      'weights first, sum, then normalise',
      { ...bare, std: 'population', weights: { x: 2, y: -1 } },
      {
        components: [
          { x: 1, y: 0 },
          { x: 0, y: 1 },
        ],
        groups: ['a', 'a'],
      },
      [1, -1],
    ],
    [
      'groups go by id in any order',
      { scale: 'none' },
      rows([1, 5, 0, 1], 'abab'),
      [0.5, 2, -0.5, -2],
    ],
    [
      'by default one is 0, equal is exactly 0, no reward is null',
      {},
      rows([1, 0.1, 0.1, null], 'abbb'),
      [0, 0, 0, null],
    ],
  ])
  lines('dr_grpo', [
    ['reward minus mean, no division', {}, rows(STEEP), [0.5, -0.5, -0.5, 0.5]],
    [
      'L never enters the advantage',
      { loss_normalizer: { kind: 'constant', value: 3000 } },
      rows([1, 0]),
      [0.5, -0.5],
    ],
    ['preset verl keeps one raw', { preset: 'verl' }, rows([0.5]), [0.5]],
    ['preset nemo_rl is the mean alone', { preset: 'nemo_rl' }, rows([3, 0, 0]), [2, -1, -1]],
    [
      'preset trl is 0 for a sample without reward',
      { preset: 'trl' },
      rows([1, null, 0]),
      [0.5, 0, -0.5],
    ],
  ])
  lines('rloo', [
    ['is Dr. GRPO times n / (n - 1)', {}, rows(STEEP), [2 / 3, -2 / 3, -2 / 3, 2 / 3]],
  ])
})

const pair = (x: number, y: number) => ({ x, y })
const parts = (
  components: unknown[],
  groups = 'a'.repeat(components.length),
  more: object = {},
) => ({
  components,
  groups: [...groups],
  ...more,
})
const plain = {
  group: { epsilon: 0, std: 'population' },
  batch: { epsilon: 0, std: 'population' },
}
const still = { ...plain, batch: { level: 'none' } }

describe('section 5, GDPO', () => {
  lines('gdpo', [
    [
      'weights act on normalised components, by name',
      { ...still, weights: { y: 1, x: 3 } },
      parts([pair(10, 0), pair(0, 1)]),
      [2, -2],
    ],
    [
      'then the batch is whitened',
      { ...plain, weights: { x: 3, y: 1 } },
      parts([pair(10, 0), pair(0, 1)]),
      [1, -1],
    ],
    [
      'a weight of 0 removes a component',
      { ...still, weights: { x: 1, y: 0 } },
      parts([pair(10, 0), pair(0, 1)]),
      [1, -1],
    ],
    [
      'a negative weight flips it',
      { ...still, weights: { x: 1, y: -1 } },
      parts([pair(10, 0), pair(0, 1)]),
      [2, -2],
    ],
    [
      'a component that is constant in a group adds exactly 0',
      still,
      parts([pair(1, 0.7), pair(0, 0.7)]),
      [1, -1],
    ],
    [
      'no component varies anywhere: zeros',
      {},
      parts([pair(0.7, 0.1), pair(0.7, 0.1), pair(0.5, 0), pair(0.5, 0)], 'aabb'),
      [0, 0, 0, 0],
    ],
    [
      'one NaN is out and takes nobody with it',
      still,
      parts([pair(1, 1), pair(0, 0), { x: null, y: 1 }, pair(1, 0), pair(0, 1)], 'aaabb'),
      [2, -2, null, 0, 0],
    ],
    [
      'zero_fill: missing is 0 before normalising',
      { ...still, component_missing: 'zero_fill' },
      parts([{ x: 1 }, pair(0, 2)]),
      [0, 0],
    ],
    [
      'exclude_component: out of the mean and std of that component',
      { ...still, component_missing: 'exclude_component' },
      parts([{ x: 1 }, pair(0, 5), pair(0.5, 3)]),
      [root(1.5), -root(1.5) + 1, -1],
    ],
    [
      'trl: one vote for a component adds 0',
      { ...still, preset: 'trl' },
      parts([{ x: 1 }, pair(0, 5)]),
      [1, -1],
    ],
    [
      'trl: all components missing is 0 and out',
      { ...still, preset: 'trl' },
      parts([pair(1, 1), pair(0, 0), null]),
      [2, -2, 0],
    ],
    [
      'ms-swift: all missing counts as 0 in the whitening',
      {
        ...plain,
        component_missing: 'exclude_component',
        all_components_missing: 'counts_as_zero',
      },
      parts([pair(1, 1), pair(0, 0), null]),
      [root(1.5), -root(1.5), 0],
    ],
    [
      'nemo_rl: whitens without epsilon, and leaves one out',
      { preset: 'nemo_rl', batch: { std: 'population' } },
      parts([pair(1, 0), pair(0, 0)]),
      [1, -1],
    ],
    [
      'verl_gdpo: tokens weigh, so a constant group may end beside 0',
      { preset: 'verl_gdpo', group: { ...plain.group }, batch: { std: 'population' } },
      parts([pair(1, 0), pair(0, 0), pair(1, 1), pair(1, 1)], 'aabb', lengths(3, 1, 2, 2)),
      [0.75, -1.25, -0.25, -0.25].map((a) => a / root(0.4375)),
    ],
    [
      'verl_gdpo: a group of one goes raw into the whitening',
      { preset: 'verl_gdpo', group: plain.group, batch: { level: 'none' } },
      parts([pair(2, 1)]),
      [3],
    ],
    [
      'Eq. 8: below the condition a component is 0, a real value',
      { ...still, conditions: [{ component: 'y', requires: 'x', at_least: 1 }] },
      parts([pair(1, 5), pair(0, 9)]),
      [2, -2],
    ],
    [
      'a single component where it is allowed',
      { ...still, allow_single: true },
      parts([{ x: 1 }, { x: 0 }]),
      [1, -1],
    ],
  ])
  test('a single component is an error that names the fix', () => {
    expect(ask('gdpo', {}, parts([{ x: 1 }, { x: 0 }])).error).toMatchObject({
      path: 'settings.allow_single',
      message: expect.stringContaining('use grpo'),
    })
  })
})

const step = (
  trajectory: string,
  step: number,
  anchor: unknown,
  reward: number,
  more: object = {},
) => ({ group: 'g', trajectory, step, anchor, reward, ...more })
const raw = { mode: 'mean_norm', gamma: 1 }

describe('section 6, GiGPO and HGPO', () => {
  lines('gigpo', [
    [
      'the episode term is of the undiscounted sums',
      { mode: 'mean_norm', gamma: 0.5 },
      { steps: [step('t', 0, 'p', 1), step('t', 1, 'q', 1), step('u', 0, 'r', 0)] },
      [1, 1, -1],
    ],
    [
      'a step return is discounted, compared within its state, and weighed by omega',
      { mode: 'mean_norm', gamma: 0.5, step_advantage_w: 2 },
      { steps: [step('t', 0, 's', 0), step('t', 1, 'q', 2), step('u', 0, 's', 0)] },
      [1 + 2 * 0.5, 1, -1 - 2 * 0.5],
    ],
    [
      'mean_std_norm divides both terms',
      { epsilon: 0, std: 'population', gamma: 1 },
      { steps: [step('t', 0, 's', 5), step('u', 0, 's', 1)] },
      [2, -2],
    ],
    [
      'defaults: gamma 0.95, omega 1',
      { mode: 'mean_norm' },
      { steps: [step('t', 0, 's', 0), step('t', 1, 's', 1), step('u', 0, 'z', 0)] },
      [0.5 - 0.025, 0.5 + 0.025, -0.5],
    ],
    [
      'trajectories of 8, 1 and 2 steps: mean 2/3 by trajectories',
      raw,
      { steps: uneven() },
      [...Array(9).fill(1 / 3), -2 / 3, -2 / 3],
    ],
    [
      'and 9/11 by rows',
      { ...raw, episode_statistics_unit: 'step' },
      { steps: uneven() },
      [...Array(9).fill(2 / 11), -9 / 11, -9 / 11],
    ],
    [
      'one step in its state gives 0 and not its raw return',
      raw,
      { steps: [step('t', 0, 's', 5)] },
      [0],
    ],
    [
      'verl_agent: one row keeps its raw reward in the episode term',
      { ...raw, preset: 'verl_agent' },
      { steps: [step('t', 0, 's', 5)] },
      [5],
    ],
    [
      'verl_agent: one trajectory of several equal rows gives 0',
      { ...raw, preset: 'verl_agent' },
      { steps: [step('t', 0, 's', 0), step('t', 1, 'q', 5)] },
      [0, 0],
    ],
    [
      'verl_agent: a penalty enters score and return of its row alone',
      { ...raw, preset: 'verl_agent', invalid_action_penalty: 0.5 },
      { steps: [step('t', 0, 's', 1, { valid: false }), step('u', 0, 's', 1)] },
      [-0.5, 0.5],
    ],
    [
      'by trajectories it is a term of its own, never -100 000',
      { invalid_action_penalty: 0.1, gamma: 1 },
      {
        steps: [step('t', 0, 'p', 0), step('t', 1, 'q', 1, { valid: false }), step('u', 0, 'r', 1)],
      },
      [0, -0.1, 0],
    ],
    [
      'states do not merge across groups',
      raw,
      {
        steps: [
          step('t', 0, 's', 1),
          step('u', 0, 'z', 0),
          { ...step('v', 0, 's', 7), group: 'h' },
          { ...step('w', 0, 'y', 7), group: 'h' },
        ],
      },
      [0.5, -0.5, 0, 0],
    ],
    [
      'a and "a " are two states',
      raw,
      { steps: [step('t', 0, 'a', 1), step('u', 0, 'a ', 0)] },
      [0.5, -0.5],
    ],
    [
      'ratio(tide, diet) = 0.25 starts a state of its own',
      { ...raw, anchor_match: { kind: 'sequence_matcher_ratio', threshold: 0.4 } },
      { steps: [step('t', 0, 'diet', 1), step('u', 0, 'tide', 0)] },
      [0.5, -0.5],
    ],
    [
      'ratio(diet, tide) = 0.5 joins',
      { ...raw, anchor_match: { kind: 'sequence_matcher_ratio', threshold: 0.4 } },
      { steps: [step('t', 0, 'tide', 1), step('u', 0, 'diet', 0)] },
      [1, -1],
    ],
    [
      'the threshold of similarity is 0.95 by default',
      { ...raw, anchor_match: { kind: 'sequence_matcher_ratio' } },
      {
        steps: [
          step('t', 0, 'x'.repeat(20), 1),
          step('u', 0, `${'x'.repeat(19)}y`, 0),
          step('v', 0, `${'x'.repeat(18)}yy`, 0.5),
        ],
      },
      [0.5 + 0.5, -0.5 - 0.5, 0],
    ],
  ])
  const heads = [
    step('t', 0, 'p', 0),
    step('t', 1, 's', 4),
    step('u', 0, 'p', 0),
    step('u', 1, 's', 0),
    step('v', 0, 'o', 0),
    step('v', 1, 's', 5),
  ]
  const heard = { mode: 'mean_norm', gamma: 1, epsilon: 0 }
  lines('hgpo', [
    [
      'the last k states, k from 1 to history + 1 and to the place of the step, weigh (k + 1)^alpha',
      { ...heard, history_length: 1 },
      { steps: heads },
      [2, 8 / 5, -2, -12 / 5, 0, 2],
    ],
    [
      'base_group is one more item, of k = 0',
      { ...heard, history_length: 1, base_group: true },
      { steps: heads },
      [5 / 3, 3 / 2, -7 / 3, -5 / 2, 2, 2],
    ],
    [
      'a value of 0 is dropped, also where only rounding keeps it from 0',
      { ...heard, history_length: 0, base_group: true },
      {
        steps: [
          step('t', 0, 's', 0.1),
          step('u', 0, 's', 0.3),
          step('v', 0, 's', 0.2),
          step('w', 0, 'z', 4),
        ],
      },
      [-1.25 / 3, -0.65 / 3, -0.95, 2.85],
    ],
  ])
})

/** Successes of 8 and 1 steps and a failure of 2, no state twice. */
function uneven() {
  const walk = (name: string, count: number, reward: number) =>
    Array.from({ length: count }, (_, index) =>
      step(name, index, `${name}${index}`, index === count - 1 ? reward : 0),
    )
  return [...walk('t', 8, 1), ...walk('u', 1, 1), ...walk('v', 2, 0)]
}

describe('section 7, the variants', () => {
  lines('rloo', [
    ['reward minus the mean of the others', {}, rows([1, 0, 0.5]), [0.75, -0.75, 0]],
    ['verl keeps one raw', { preset: 'verl' }, rows([0.5]), [0.5]],
    ['trl: scorable siblings only', { preset: 'trl' }, rows([1, null, 0]), [1, 0, -1]],
    [
      'trl: normalised over the scorable advantages of the batch',
      { preset: 'trl', scale: 'batch_std_of_advantages', centre_batch: true },
      rows([1, 0, 3, 0], 'aabb'),
      [1, -1, 3, -3].map((a) => a / (root(20 / 3) + 1e-4)),
    ],
  ])
  lines('reinforce_pp_baseline', [
    [
      'centred, then whitened over tokens by rsqrt(var + epsilon)',
      { std: 'population', epsilon: 0.0625 },
      rows([1, 0], 'aa', lengths(3, 1)),
      [0.25 / 0.5, -0.75 / 0.5],
    ],
    [
      'verl: one keeps its raw reward before the whitening',
      { preset: 'verl', std: 'population', epsilon: 0 },
      rows([3, 1], 'ab', lengths(1, 1)),
      [1, -1],
    ],
    [
      'nemo_rl: the variance is at least 1e-8',
      { preset: 'nemo_rl' },
      rows([1e-5, 0], 'aa', lengths(1, 1)),
      [0.05, -0.05],
    ],
  ])
  lines('opo', [
    ['lengths weigh the baseline', {}, rows([4, 0], 'aa', lengths(1, 3)), [3, -1]],
    ['verl keeps one raw', { preset: 'verl' }, rows([4], 'a', lengths(2)), [4]],
  ])
  lines('grpo_passk', [
    ['the best has its lead, the others 0', { scale: 'none' }, rows([1, 0.25, 0]), [0.75, 0, 0]],
    ['over the deviation', { ...bare }, rows([2, 0]), [root(2), 0]],
    ['a tie for the best is 0', {}, rows([1, 1, 0]), [0, 0, 0]],
  ])
  lines('maxrl', [
    ['centred over the mean', bare, rows([1, 0, 0, 0]), [3, -1, -1, -1]],
    [
      'epsilon stands on the mean',
      { epsilon: 0.75 },
      rows([1, 0, 0, 0]),
      [0.75, -0.25, -0.25, -0.25],
    ],
    ['prime-rl: a mean of 0 or less gives 0', { nonpositive_mean: 'zero' }, rows([1, -1]), [0, 0]],
  ])
  test('process supervision: normalised over all steps of the group, then summed to go', () => {
    const input = {
      trajectories: [
        [1, 3],
        [1, 3],
      ],
    }
    const answer = (settings: Settings) => ask('grpo_process', settings, input).advantages
    expect(answer({})).toEqual([
      [0, 1],
      [0, 1],
    ])
    expect(answer({ gamma: 0.5 })).toEqual([
      [-0.5, 1],
      [-0.5, 1],
    ])
  })
  test('overlong shaping: TRL clamps beyond the limit, verl falls on', () => {
    const settings = { max_length: 100, buffer: 20, penalty_factor: 1 }
    expect(ask('overlong_shaping', settings, { lengths: [80, 90, 100, 110] })).toMatchObject({
      penalty: { trl: [0, -0.5, -1, -1], verl: [0, -0.5, -1, -1.5] },
    })
  })
  lines('grpo', [
    [
      'overlong shaping is added to the reward before the estimator',
      { scale: 'none', overlong_shaping: { max_length: 100, buffer: 20, penalty_factor: 1 } },
      rows([1, 1], 'aa', lengths(80, 90)),
      [0.25, -0.25],
    ],
  ])
})

describe('section 8, undefined inputs', () => {
  const broken: [unknown, string][] = [
    [null, 'missing'],
    ['1.0', 'wrong_type'],
    ['x', 'wrong_type'],
    [true, 'wrong_type'],
    [[1], 'wrong_type'],
    [Number.NaN, 'not_finite'],
    [Number.POSITIVE_INFINITY, 'not_finite'],
    [Number.NEGATIVE_INFINITY, 'not_finite'],
  ]
  test.each(broken)('%j costs its sample and no other, with the typed reason', (value, kind) => {
    const scalar = ask('grpo', { scale: 'none' }, rows([1, value, 0]))
    expect(scalar).toMatchObject({
      advantages: [0.5, null, -0.5],
      reasons: [null, `reward_${kind}`, null],
    })
    const named = ask('gdpo', still, parts([pair(1, 0), { x: value, y: 1 }, pair(0, 0)]))
    expect(named).toMatchObject({
      advantages: [1, null, -1],
      reasons: [null, `component_${kind}:x`, null],
    })
    const steps = [
      step('t', 0, 'p', 1),
      step('x', 0, 'q', 0),
      { ...step('x', 1, 'r', 0), reward: value },
      step('u', 0, 's', 0),
    ]
    expect(ask('gigpo', raw, { steps })).toMatchObject({
      advantages: [0.5, null, null, -0.5],
      reasons: [null, `reward_${kind}`, `reward_${kind}`, null],
    })
    const trajectories = [[1], [0, value], [-1]]
    expect(ask('grpo_process', { std: 'none' }, { trajectories })).toMatchObject({
      advantages: [[1], null, [-1]],
      reasons: [null, `reward_${kind}`, null],
    })
  })

  lines('grpo', [
    ['no votes: nulls, not an exception', {}, rows([null, null]), [null, null]],
    ['an empty batch', {}, rows([]), []],
    [
      'fail_group',
      { ...bare, missing: 'fail_group' },
      rows([1, null, 1, 0], 'aabb'),
      [null, null, root(0.5), -root(0.5)],
    ],
    [
      'score_as is an ordinary vote',
      { scale: 'none', missing: { score_as: -1 } },
      rows([1, null]),
      [1, -1],
    ],
    ['one vote beside a rejected sample is 0', {}, rows([5, null]), [0, null]],
    ['or null where so set', { singleton_group: 'null' }, rows([5, null]), [null, null]],
    [
      'not eligible does not vote',
      { scale: 'none' },
      rows([1, 9, 0], 'aaa', { eligible: [true, false, true] }),
      [0.5, null, -0.5],
    ],
    [
      'vote: true lets it',
      { scale: 'none', vote: true },
      rows([3, 0, 0], 'aaa', { eligible: [false, true, true] }),
      [2, -1, -1],
    ],
  ])

  test('one vote that is to have none is told as such, by component too', () => {
    const settings = {
      ...still,
      component_missing: 'exclude_component',
      group: { singleton_group: 'null' },
    }
    const answer = ask('gdpo', settings, parts([{ x: 1 }, pair(0, 5)]))
    expect(answer).toMatchObject({ reasons: [null, 'singleton_component'] })
    expect(answer.advantages[1]).toBeNull()
  })

  test('a step beyond the doubles is null with a reason', () => {
    const steps = [
      step('t', 0, 's', -1.7e308),
      step('t', 1, 'q', 1.7e308),
      step('u', 0, 's', 0),
      step('u', 1, 's', 1.7e308),
    ]
    const { advantages, reasons } = ask(
      'gigpo',
      { mode: 'mean_norm', gamma: 0.5, step_advantage_w: 4 },
      { steps },
    )
    expect(advantages).toContain(null)
    advantages.forEach((value, row) => {
      if (value === null) expect(reasons?.[row]).toBeTypeOf('string')
    })
  })
})

describe('section 9, constant groups are constant', () => {
  const values = [0.1, 0.3, 0.7, 0.95, 1 / 3, 1e-300, -1e300]
  test.each(values)('seven times %d give exact zeros whatever divides', (value) => {
    const seven = rows(Array(7).fill(value), 'aaaaaaa', { response_lengths: [1, 2, 3, 4, 5, 6, 7] })
    for (const name of [
      'grpo',
      'dr_grpo',
      'rloo',
      'reinforce_pp_baseline',
      'opo',
      'maxrl',
      'grpo_passk',
    ])
      expect(ask(name, { epsilon: 0 }, seven).advantages, name).toEqual(Array(7).fill(0))
    const steps = Array.from({ length: 7 }, (_, index) => step(`t${index}`, 0, 's', value))
    for (const name of ['gigpo', 'hgpo'])
      expect(ask(name, bare, { steps }).advantages, name).toEqual(Array(7).fill(0))
    const trajectories = Array(7).fill([value])
    expect(ask('grpo_process', bare, { trajectories }).advantages).toEqual(Array(7).fill([0]))
  })

  test.each(['gdpo', 'trl', 'nemo_rl', 'nvlabs_gdpo', 'verl_gdpo'])(
    'gdpo under %s: two constant groups of 7 are not whitened into a signal',
    (preset) => {
      const of = (x: number) => Array(7).fill(pair(x, 0.1))
      const input = parts([...of(0.7), ...of(0.5)], 'aaaaaaabbbbbbb', {
        response_lengths: Array(14).fill(3),
      })
      expect(ask('gdpo', { preset }, input).advantages).toEqual(Array(14).fill(0))
    },
  )
})

describe('section 10, what is not said is the default', () => {
  const given = rows([1, null, 0.25, 0, 0.5, 3], 'aaaabc', {
    eligible: [true, true, true, true, true, false],
  })
  const steps = [...uneven(), step('x', 0, 't3', 0.5), { ...step('y', 0, 't3', 0.5), group: 'h' }]
  const components = parts([pair(1, 0), pair(0, 2), pair(0.5, 1), { x: 1 }, pair(3, 3)], 'aaaab')
  test.each<[string, Settings, object]>([
    [
      'grpo',
      {
        std: 'sample',
        epsilon: 1e-6,
        epsilon_mode: 'added_to_std',
        singleton_group: 'zero',
        missing: 'excluded',
        vote: false,
        statistics_unit: 'rollout',
        baseline: 'group_mean',
        scale: 'group_std',
        std_scope: 'group',
      },
      given,
    ],
    ['dr_grpo', { baseline: 'group_mean', scale: 'none', singleton_group: 'zero' }, given],
    [
      'gdpo',
      {
        group: { std: 'sample', epsilon: 1e-4 },
        batch: { level: 'sample', std: 'sample', epsilon: 1e-4, epsilon_mode: 'added_to_std' },
        component_missing: 'error',
        weights: { y: 1, x: 1 },
      },
      components,
    ],
    [
      'gigpo',
      {
        episode_statistics_unit: 'trajectory',
        episode_singleton: 'zero',
        step_singleton: 'zero',
        mode: 'mean_std_norm',
        gamma: 0.95,
        step_advantage_w: 1,
        std: 'sample',
        epsilon: 1e-6,
        anchor_match: 'exact',
        invalid_action_penalty: 0,
      },
      { steps },
    ],
  ])('%s, and the preset of its name is the same', (name, spelled, input) => {
    const { advantages } = ask(name, {}, input)
    expect(advantages).not.toHaveLength(0)
    expect(ask(name, spelled, input).advantages).toEqual(advantages)
    expect(ask(name, { preset: name }, input).advantages).toEqual(advantages)
  })
})
