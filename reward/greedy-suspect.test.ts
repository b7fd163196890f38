// Identical completions at a temperature above 0 are suspect, short ones apart.
import { expect, test } from 'vitest'
import { isGreedySuspect } from './greedy-suspect.ts'

const said = (...all: [digest: string, tokens: number][]) =>
  all.map(([digest, tokens]) => ({ digest, tokens }))

test.each([
  ['all the same', 1, said(['a', 30], ['a', 30], ['a', 30]), true],
  ['all the same at a low temperature', 0.01, said(['a', 30], ['a', 30]), true],
  ['one that differs', 1, said(['a', 30], ['b', 30], ['a', 30]), false],
  ['greedy decoding, as was asked for', 0, said(['a', 30], ['a', 30]), false],
  ['a group of one', 1, said(['a', 30]), false],
  ['no group at all', 1, said(), false],
  ['answers of 8 tokens', 1, said(['a', 8], ['a', 8]), true],
  ['answers too short to tell', 1, said(['a', 7], ['a', 7]), false],
])('%s', (_, temperature, completions, suspect) => {
  expect(isGreedySuspect(temperature, completions)).toBe(suspect)
})
