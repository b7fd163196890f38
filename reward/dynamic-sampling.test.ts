import { expect, test } from 'vitest'
import { keepRules } from './dynamic-sampling.ts'

const GROUPS = [[1, 0], [1, 1], [0.5, 0.5 + 5e-9], [1, 1 + 1e-9], [1], []]

test.each([
  ['paddock', [true, false, true, true, false, false]],
  ['slime', [true, false, false, false, false, false]],
  ['miles', [true, false, false, false, false, false]],
  ['verl_agent', [true, false, false, false, false, false]],
  ['verl_agent_recipe', [true, false, true, true, true, false]],
  ['nemo_rl', [true, false, true, true, false, false]],
  ['prime_rl', [true, false, true, true, false, false]],
  ['tinker', [true, false, true, true, false, false]],
])('%s keeps what its threshold lets through', (rule, kept) => {
  expect(keepRules[rule]!(GROUPS, 0)).toEqual(kept)
})

test('a tolerance makes near rewards equal', () => {
  expect(keepRules.paddock!(GROUPS, 1e-6)).toEqual([true, false, false, false, false, false])
})

test('tinker keeps one group where all are constant', () => {
  expect(
    keepRules.tinker!(
      [
        [1, 1],
        [0, 0],
      ],
      0,
    ),
  ).toEqual([true, false])
})
