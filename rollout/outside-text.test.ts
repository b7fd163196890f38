// Bytes and strings from outside become well-formed text, and say where something was replaced.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { boundedText, MAX_OBSERVATION_UNITS, outsideText } from './outside-text.ts'

test.each([
  // The Unicode standard's own practice, chapter 3.9: one U+FFFD for each maximal part of a sequence.
  [[0x66, 0xff, 0x6f, 0xf0, 0x9f], 'f\uFFFDo\uFFFD', true],
  [[0xe2, 0x82, 0xac], '€', false],
  [[0xed, 0xa0, 0x80], '\uFFFD\uFFFD\uFFFD', true],
  [[0xef, 0xbb, 0xbf, 0x61], '\uFEFFa', false],
  [[0x61, 0x00, 0x62], 'a\u0000b', false],
  [[], '', false],
])('%j is read as %j', (bytes, text, replaced) => {
  const { text: read, replaced: flag = false } = outsideText(Uint8Array.from(bytes))
  expect([read, flag]).toEqual([text, replaced])
})

test.each([
  ['a\uD83Db', 'a\uFFFDb', true],
  ['a😀', 'a😀', false],
])('the string %j is read as %j', (given, text, replaced) => {
  const { text: read, replaced: flag = false } = outsideText(given)
  expect([read, flag]).toEqual([text, replaced])
})

test('whatever comes, the text is well-formed, and text that is UTF-8 comes through', () => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => outsideText(bytes).text.isWellFormed()),
    { numRuns: 500 },
  )
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      const bytes = new TextEncoder().encode(text)
      expect(outsideText(bytes)).toEqual({ text: text.toWellFormed() })
    }),
    { numRuns: 500 },
  )
})

test('what is longer than the bound becomes its beginning with the whole length', () => {
  expect(boundedText('x'.repeat(MAX_OBSERVATION_UNITS))).toEqual({
    text: 'x'.repeat(MAX_OBSERVATION_UNITS),
  })
  const long = `${'x'.repeat(MAX_OBSERVATION_UNITS - 1)}😀${'y'.repeat(1000)}`
  const { text, truncated } = boundedText(long)
  expect(truncated).toBe(true)
  expect(text.isWellFormed()).toBe(true)
  expect(JSON.parse(text)).toMatchObject({ truncated: true, total_chars: long.length })
  expect(JSON.parse(text).text).toHaveLength(MAX_OBSERVATION_UNITS)
})
