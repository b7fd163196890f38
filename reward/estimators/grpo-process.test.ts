import { describe, expect, test } from 'vitest'
import type { GroupScores } from '../estimator.ts'
import { estimate, member } from '../scores.testkit.ts'

function supervised(trajectories: number[][]): GroupScores {
  return {
    id: 'g',
    members: trajectories.map((rewards) =>
      member(
        rewards.reduce((total, reward) => total + reward, 0),
        { steps: rewards.map((reward) => ({ reward, anchor: null })) },
      ),
    ),
  }
}

function steps(trajectories: number[][], settings: Record<string, unknown> = {}) {
  const [result] = estimate('grpo_process', [supervised(trajectories)], settings)
  return result!.members.map((entry) => entry.steps)
}

describe('process supervision', () => {
  // Mean 0.5 and population deviation 0.5 over all four steps: -1, 1 and 1, -1.
  const trajectories = [
    [0, 1],
    [1, 0],
  ]

  test('sums normalised rewards from each step on', () => {
    expect(steps(trajectories)).toEqual([
      [0, 1],
      [0, -1],
    ])
  })

  test('discounts them where gamma is given', () => {
    expect(steps(trajectories, { gamma: 0.5 })).toEqual([
      [-0.5, 1],
      [0.5, -1],
    ])
  })

  test('gives equal steps exact zeros, or stops where the settings say error', () => {
    expect(steps([[0.7, 0.7], [0.7]])).toEqual([[0, 0], [0]])
    expect(() => steps([[0.7, 0.7], [0.7]], { zero_std_group: 'error' })).toThrow(/are equal/)
  })

  test('leaves a member without reward, or with a broken step, outside', () => {
    const group = supervised([...trajectories, [1, Number.NaN]])
    group.members[2]!.reward = 1
    const [result] = estimate('grpo_process', [group])
    expect(result!.members[2]).toEqual({
      advantage: null,
      steps: null,
      reason: 'step_reward_not_finite',
    })
    expect(result!.members[0]!.steps).toEqual([0, 1])
  })
})
