// JSON5 as strict JSON: values by the JSON5 specification (https://spec.json5.org).
import { expect, test } from 'vitest'
import { parseJson } from './json-reader.ts'
import { toStrictJson } from './json5.ts'

function read(text: string): unknown {
  const strict = toStrictJson(text)
  const json = strict === null ? null : parseJson(strict)
  return json?.kind === 'complete' ? json.node.value : undefined
}

test.each([
  ["{'a': 'it\\'s'}", { a: "it's" }],
  ['{a: 1, $b_2: 2, ü: 3}', { a: 1, $b_2: 2, ü: 3 }],
  ['{null: null, true: true}', { null: null, true: true }],
  ['[1, 2,]', [1, 2]],
  ['{"a": 1,} // done', { a: 1 }],
  ['/* all */ [/* none */]', []],
  ['[.5, 5., +3, -.25, 0x1F, -0xff]', [0.5, 5, 3, -0.25, 31, -255]],
  ["'\\x41\\u00e9\\v\\\nb'", 'Aé\vb'],
  ['"a \\" b"', 'a " b'],
])('%s', (text, value) => {
  expect(read(text)).toEqual(value)
})

test.each([
  '[,]',
  '[1,,]',
  '{,}',
  '{"a" 1}',
  '[NaN]',
  '[Infinity]',
  '[True]',
  "'a",
  '/* open',
  '[01]',
  "'\\u12'",
])('%s has no strict form', (text) => {
  expect(read(text)).toBeUndefined()
})
