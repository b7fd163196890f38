// What a trainer heard is held against the right episode.
import { expect, test } from 'vitest'
import { requestSeed } from '../../rollout/request-seed.ts'
import { createHistory } from './history.ts'

function seedOf(batch: string, groupIndex: number, index: number, turn: number): number {
  const plan = { policy: { seedBase: batch }, groupIndex, index, attempt: 1 }
  return requestSeed(plan as never, turn)
}

test('a batch whose requests share a seed with those of another is not submitted', () => {
  const shared = seedOf('torture-38', 2, 2, 5)
  expect(seedOf('torture-54', 1, 4, 0)).toBe(shared)
  const history = createHistory(() => {})
  expect(history.submitted('torture-38', 8, 8)).toBe(true)
  expect(history.submitted('torture-54', 8, 8)).toBe(false)
  history.outcome({ episode: 'torture-38.g2.e2', attempt: 1, reward: 1 }, 1)
  expect(history.totals().batches).toBe(1)
  expect(history.check(new Map([[shared, [1]]])).lost).toEqual([])
})

test('an episode that is asked for again after its end was told is lost', () => {
  const history = createHistory(() => {})
  history.submitted('torture-38', 8, 8)
  history.outcome({ episode: 'torture-38.g2.e2', attempt: 1, reward: 1 }, 1)
  const { lost, repeats } = history.check(new Map([[seedOf('torture-38', 2, 2, 3), [1, 2]]]))
  expect(lost).toEqual(['torture-38.g2.e2 was asked for again after its end was told'])
  expect(repeats).toBe(1)
})
