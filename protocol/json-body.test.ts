// JSON bodies: whatever JSON.parse takes and means one thing is taken as JSON.parse takes it.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseJsonBody } from './json-body.ts'

const parse = (text: string) => parseJsonBody(new TextEncoder().encode(text))

test('any JSON value comes out as JSON.parse reads it', () => {
  const value = fc.jsonValue({ maxDepth: 6, noUnicodeString: false, stringUnit: 'binary' })
  fc.assert(
    fc.property(value, (json) => {
      const text = JSON.stringify(json, null, 1)
      fc.pre(!text.includes('"__proto__"'))
      expect(parse(text)).toEqual(JSON.parse(text))
    }),
  )
})

test('no text makes it throw anything but its own errors', () => {
  const unit = fc.constantFrom('{', '}', '[', ']', '"', '\\', ':', ',', 'a', '1', ' ', 'N', 'é')
  fc.assert(
    fc.property(fc.string({ unit }), (text) => {
      try {
        expect(parse(text)).toEqual(JSON.parse(text))
      } catch (error) {
        expect(error).toHaveProperty(
          'code',
          expect.stringMatching(/malformed_json|invalid_request/),
        )
      }
    }),
  )
})

describe('what is refused', () => {
  test.each([
    ['{"a":1,"a":2}', 'twice'],
    ['{"a":1,"\\u0061":2}', '"a" stands twice'],
    ['[{"b":{"a":[],"a":0}}]', 'twice'],
    ['{"__proto__":1}', '__proto__'],
    ['{"\\u005f_proto__":1}', '__proto__'],
    ['[NaN]', 'NaN at position 1'],
    ['{"a":-Infinity}', 'Infinity at position 6'],
    ['', 'empty'],
    [' \n', 'empty'],
    ['{"a":1', 'expected JSON'],
    ["{'a':1}", 'expected JSON'],
  ])('%s', (text, words) => {
    expect(() => parse(text)).toThrow(words)
  })

  test.each([
    ['"NaN and Infinity"', 'NaN and Infinity'],
    ['{"a":{"a":1}}', { a: { a: 1 } }],
    ['[{"a":1},{"a":2}]', [{ a: 1 }, { a: 2 }]],
    ['{"a":["a","a"],"b":"a"}', { a: ['a', 'a'], b: 'a' }],
    ['["__proto__"]', ['__proto__']],
    ['{"a\\\\":1,"a\\"":2}', { 'a\\': 1, 'a"': 2 }],
  ])('%s is taken', (text, value) => {
    expect(parse(text)).toEqual(value)
  })

  test('64 levels are taken and 65 are not, however many follow', () => {
    expect(() => parse('['.repeat(64) + ']'.repeat(64))).not.toThrow()
    expect(() => parse('['.repeat(65) + ']'.repeat(65))).toThrow('64 levels')
    expect(() => parse('['.repeat(1_000_000))).toThrow('64 levels')
    expect(() => parse('{"a":'.repeat(65))).toThrow('64 levels')
  })

  test('bytes that are no UTF-8', () => {
    expect(() => parseJsonBody(Uint8Array.of(0x22, 0xff, 0x22))).toThrow('UTF-8')
  })
})
