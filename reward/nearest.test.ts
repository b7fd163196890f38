import { expect, test } from 'vitest'
import { nearestName } from './nearest.ts'

test.each([
  ['scroe', ['reward', 'score'], 'score'],
  ['Safety', ['score', 'safety'], 'safety'],
  ['x', ['ab', 'cd'], 'ab'],
  ['', ['long', 'to'], 'to'],
])('the nearest to %j in %j is %j', (name, names, expected) => {
  expect(nearestName(name, names)).toBe(expected)
})

test('there is none where there are no names', () => {
  expect(nearestName('score', [])).toBeNull()
})

test('a name of a million characters costs no more than its beginning', () => {
  expect(nearestName('score'.repeat(200_000), ['score', 'reward'])).toBe('score')
})
