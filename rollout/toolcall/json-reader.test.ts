// The JSON reader against JSON.parse, and what it knows beyond it.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseJson, readJson } from './json-reader.ts'
import { Source } from './source.ts'

function complete(text: string) {
  const read = parseJson(text)
  if (read.kind !== 'complete') throw new Error(`${read.kind}: ${text}`)
  return read
}

test('whatever JSON.parse reads, it reads as the same value and the same text', () => {
  fc.assert(
    fc.property(
      fc.json({ depthSize: 'large' }),
      fc.constantFrom('', ' ', '\t\r\n'),
      fc.nat(4),
      (text, space, indent) => {
        const value = JSON.parse(text)
        const read = complete(space + JSON.stringify(value, null, indent) + space)
        expect(read.node.value).toEqual(value)
        expect(read.node.json).toBe(JSON.stringify(value))
      },
    ),
    { numRuns: 1000, seed: 1 },
  )
})

test('whatever JSON.parse refuses, it refuses, and the other way round', () => {
  const soup = fc
    .array(
      fc.constantFrom(
        '{',
        '}',
        '[',
        ']',
        ',',
        ':',
        '"',
        '"a"',
        '\\',
        '\\u00',
        'e9',
        '0',
        '1',
        '-',
        '.',
        'e',
        'true',
        'null',
        'NaN',
        ' ',
        '\n',
        '\t',
        '\u00a0',
        '\u0001',
        'x',
      ),
      { maxLength: 8 },
    )
    .map((parts) => parts.join(''))
  const accepts = (text: string) => {
    try {
      JSON.parse(text)
      return true
    } catch {
      return false
    }
  }
  fc.assert(
    fc.property(soup, (text) => {
      expect(parseJson(text).kind === 'complete').toBe(accepts(text))
    }),
    { numRuns: 20_000, seed: 2 },
  )
})

test('it ends where the value ends', () => {
  const source = Source.of('{"a": [1, 2]} and more')
  const step = readJson(source, 0).next()
  expect(step).toMatchObject({ done: true, value: { kind: 'complete', end: 13 } })
})

test.each([
  ['9007199254740993', '9007199254740993'],
  ['1.10', '1.10'],
  ['-0', '-0'],
  ['1E+5', '1E+5'],
  ['1e400', '1e400'],
])('the digits of %s stay as they are', (text, json) => {
  expect(complete(text).node.json).toBe(json)
})

test('keys keep their order, also those that are numbers', () => {
  expect(complete('{"b": 1, "10": 2, "2": 3}').node.json).toBe('{"b":1,"10":2,"2":3}')
})

test('__proto__ is an own key and changes no prototype', () => {
  const { value } = complete('{"__proto__": {"x": 1}, "a": {"__proto__": null}}').node
  expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
  expect(JSON.stringify(value)).toBe('{"__proto__":{"x":1},"a":{"__proto__":null}}')
})

test.each([
  '{"a":1,"a":2}',
  '{"x":[{"a":1,"b":2,"a":3}]}',
  '{"a":1,"\\u0061":2}',
  '{"__proto__":1,"__proto__":2}',
])('a key twice is reported in %s', (text) => {
  expect(complete(text).duplicateKey).not.toBeNull()
})

test('a key again in another object is no duplicate, nor is the name of an inherited property', () => {
  expect(complete('{"a":{"a":{"a":1}},"toString":1,"constructor":2}').duplicateKey).toBeNull()
})

describe('half a surrogate pair', () => {
  test.each([String.raw`"\ud83d"`, String.raw`"\ude00\ud83d"`, '"\ud83d"', '{"\ud83d": 1}'])(
    'is reported in %j',
    (text) => {
      expect(complete(text).loneSurrogate).toBe(true)
    },
  )

  test.each([String.raw`"\ud83d\ude00"`, '"😀"'])(
    'is not where both halves stand, as in %j',
    (text) => {
      expect(complete(text).loneSurrogate).toBe(false)
    },
  )
})

test('512 levels are read and 513 are not', () => {
  expect(parseJson('['.repeat(512) + ']'.repeat(512)).kind).toBe('complete')
  expect(parseJson('['.repeat(513) + ']'.repeat(513)).kind).toBe('broken')
})

test('what is broken is told with what was expected and what came', () => {
  expect(parseJson("{'a': 1}")).toEqual({
    kind: 'broken',
    at: 1,
    problem: `expected a key in double quotes, came "'a': 1}"`,
  })
})

test.each(['', '{', '{"a', '{"a\\', '{"a\\u00', '{"a"', '{"a":', '[1', '[1,', '-', '1.', 'tr'])(
  '%j is only incomplete',
  (text) => {
    expect(parseJson(text).kind).toBe('incomplete')
  },
)
