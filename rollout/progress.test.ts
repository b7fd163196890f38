// Progress reward: whatever worth does, a turn is paid for new heights alone (SPEC d, "Progress reward").
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Environment } from '../envs/environment.ts'
import type { EpisodeState } from './episode.ts'
import { paidForProgress } from './progress.ts'

const header = { sample: null, start: 0, end: 0, anchor: 'a', reward: 0 }

/** What each turn is paid where worth goes this way. */
function paid(worths: readonly Record<string, number>[]): number[] {
  const environment = { progress: (worth: unknown) => worth } as unknown as Environment
  let state = { best: new Map(), headers: [], env: {} } as unknown as EpisodeState
  for (const env of worths)
    state = paidForProgress({ ...state, env, headers: [...state.headers, header] }, environment)
  return state.headers.map(({ reward }) => reward)
}

test('a repeat pays nothing, a fall is not taken back, a rise to the old best pays nothing', () => {
  expect(
    paid([{ read: 0.25 }, { read: 0.25 }, { read: 0 }, { read: 0.25 }, { read: 0.5 }]),
  ).toEqual([0.25, 0, 0, 0, 0.25])
})

test('what cannot be told yet pays nothing and stays open', () => {
  expect(paid([{ read: 0.25 }, { read: 0.25, judged: 0.5 }])).toEqual([0.25, 0.5])
})

test('no key is taken from the prototype', () => {
  expect(paid([{ constructor: 0.5 }, { constructor: 0.5 }])).toEqual([0.5, 0])
})

test('all that is paid is the sum of the best of each key, and no turn is paid less than 0', () => {
  const worth = fc.dictionary(
    fc.constantFrom('a', 'b', '__proto__', 'toString'),
    fc.integer({ min: -4, max: 8 }).map((eighths) => eighths / 8),
  )
  fc.assert(
    fc.property(fc.array(worth, { maxLength: 12 }), (worths) => {
      const rewards = paid(worths)
      expect(rewards.every((reward) => reward >= 0)).toBe(true)
      const keys = new Set(worths.flatMap((one) => Object.keys(one)))
      const best = [...keys].map((key) =>
        Math.max(0, ...worths.map((one) => (Object.hasOwn(one, key) ? one[key]! : 0))),
      )
      expect(rewards.reduce((sum, one) => sum + one, 0)).toBe(
        best.reduce((sum, one) => sum + one, 0),
      )
    }),
  )
})
