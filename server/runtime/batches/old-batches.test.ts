// Which batches that are done are too old to be kept: by number, by episodes, and never one that is held.
import { expect, test } from 'vitest'
import { oldBatches } from './old-batches.ts'

const done = (count: number, episodes = 1) =>
  Array.from({ length: count }, (_, index) => ({ id: `b${index}`, episodes }))
const none = new Set<string>()

test('the newest 32 stay, as far as they have no more episodes than are kept', () => {
  expect(oldBatches(done(34), none, 1000).sort()).toEqual(['b0', 'b1'])
  expect(oldBatches(done(4, 10), none, 25).sort()).toEqual(['b0', 'b1'])
  expect(oldBatches(done(2, 10), none, 0)).toEqual(['b0'])
})

test('one that is held stays however old it is, and takes no place from the others', () => {
  const held = new Set(['b0', ...done(40).map(({ id }) => id)])
  const others = Array.from({ length: 33 }, (_, index) => ({ id: `c${index}`, episodes: 1 }))
  expect(oldBatches([...done(40), ...others], held, 33)).toEqual(['c0'])
})
