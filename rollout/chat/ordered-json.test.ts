import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { JsonNumber, type OrderedJson, parseOrderedJson } from './ordered-json.ts'

/** The same value as JSON.parse gives it. */
function plain(value: OrderedJson): unknown {
  if (value instanceof JsonNumber) return JSON.parse(value.literal)
  if (Array.isArray(value)) return value.map(plain)
  if (!(value instanceof Map)) return value
  const object = {}
  for (const [key, member] of value)
    Object.defineProperty(object, key, { value: plain(member), enumerable: true, writable: true })
  return object
}

describe('parseOrderedJson', () => {
  test('keeps integer-like keys where they stand in the text', () => {
    const value = parseOrderedJson('{"10": 1, "2": 2, "a": 3, "1": 4}')
    expect([...(value as Map<string, OrderedJson>).keys()]).toEqual(['10', '2', 'a', '1'])
  })

  test.each(['1.0', '1', '-0', '12345678901234567890', '1E5', '0.10'])(
    'keeps %s as written',
    (n) => {
      expect(parseOrderedJson(`[${n}]`)).toEqual([new JsonNumber(n)])
    },
  )

  test('takes the first place and the last value of a repeated key, as Python does', () => {
    expect(parseOrderedJson('{"a": "x", "b": "y", "a": "z"}')).toEqual(
      new Map([
        ['a', 'z'],
        ['b', 'y'],
      ]),
    )
  })

  test('keeps __proto__ as a key of its own', () => {
    expect(parseOrderedJson('{"__proto__": true}')).toEqual(new Map([['__proto__', true]]))
  })

  test('takes a text that is nested 100,000 deep', () => {
    const depth = 100_000
    let value = parseOrderedJson('['.repeat(depth) + ']'.repeat(depth))
    let levels = 0
    while (Array.isArray(value)) {
      levels++
      value = value[0] ?? null
    }
    expect(levels).toBe(depth)
  })

  test('agrees with JSON.parse on every JSON text', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(plain(parseOrderedJson(text))).toEqual(JSON.parse(text))
      }),
    )
  })

  test('throws exactly where JSON.parse throws', () => {
    const almost = fc.stringMatching(/^[{}[\],:"\\0-9.eE+\- truefalsn]{0,12}$/)
    fc.assert(
      fc.property(almost, (text) => {
        let valid = true
        try {
          JSON.parse(text)
        } catch {
          valid = false
        }
        if (valid) expect(plain(parseOrderedJson(text))).toEqual(JSON.parse(text))
        else expect(() => parseOrderedJson(text)).toThrow(SyntaxError)
      }),
      { numRuns: 500 },
    )
  })
})
