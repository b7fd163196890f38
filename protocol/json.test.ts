// Canonical JSON: equal values give equal text, whatever the order and the names of their keys.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { canonicalJson, digest } from './json.ts'

test('keys are sorted at every depth, arrays keep their order', () => {
  expect(canonicalJson({ b: [2, { d: 1, c: 2 }], a: null })).toBe(
    '{"a":null,"b":[2,{"c":2,"d":1}]}',
  )
})

test('a key __proto__ is kept as the key that it is', () => {
  const value = JSON.parse('{"__proto__":{"x":1},"a":2}')
  expect(canonicalJson(value)).toBe('{"__proto__":{"x":1},"a":2}')
})

test('the digest of a value does not depend on the order of its keys', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
      const turned = Object.fromEntries(Object.entries(value).reverse())
      expect(digest(turned)).toBe(digest(value))
      expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)))
    }),
  )
})
