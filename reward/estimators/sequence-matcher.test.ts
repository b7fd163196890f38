import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ratioBound, sequenceRatio } from './sequence-matcher.ts'

// Expected values are those of Python 3.11's difflib.SequenceMatcher(None, a, b, autojunk).ratio().
test.each([
  ['diet', 'tide', 0.5],
  ['tide', 'diet', 0.25],
  ['abcd', 'bcde', 0.75],
  ['', '', 1],
  ['', 'a', 0],
  ['private Thread currentThread;', 'private volatile Thread currentThread;', 0.8656716417910447],
  ['qabxcd', 'abycdf', 0.6666666666666666],
  ['aaaaaaaaaa', 'aaaaaaaabb', 0.8],
  ['naïve 😀 café', 'naive 😀 cafe', 0.8333333333333334],
])('the ratio of %j to %j is that of difflib', (a, b, ratio) => {
  expect(sequenceRatio(a, b)).toBe(ratio)
})

const { cases } = JSON.parse(
  readFileSync(new URL('../testdata/sequence_matcher.json', import.meta.url), 'utf8'),
) as { cases: { a: string; b: string; autojunk: number; plain: number }[] }

test.each(cases)(
  'around 200 characters autojunk sets in as in difflib ($autojunk, $plain)',
  (pair) => {
    expect(sequenceRatio(pair.a, pair.b, true)).toBe(pair.autojunk)
    expect(sequenceRatio(pair.a, pair.b, false)).toBe(pair.plain)
  },
)

test('a frequent first character can make two long texts wholly unlike', () => {
  const tail = 'ab'.repeat(120)
  expect(sequenceRatio(`X${tail}`, `Y${tail}`)).toBe(0)
  expect(sequenceRatio(`X${tail}`, `Y${tail}`, false)).toBe(0.995850622406639)
})

test('equal texts have ratio 1, and no ratio exceeds its bound', () => {
  const text = fc.string({ maxLength: 260, unit: fc.constantFrom('a', 'b', 'c', '😀') })
  fc.assert(
    fc.property(text, text, (a, b) => {
      expect(sequenceRatio(a, a)).toBe(1)
      expect(sequenceRatio(a, b)).toBeLessThanOrEqual(ratioBound(a, b))
    }),
  )
})
