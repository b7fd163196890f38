// The types a schema allows, by the rules of JSON Schema as far as they concern types.
import { expect, test } from 'vitest'
import { schemaTypes, type TypeSet } from './schema-types.ts'

function types(schema: unknown, root: unknown = {}): string[] | 'any' {
  const set: TypeSet = schemaTypes(schema, root).types
  return set === 'any' ? set : [...set].sort()
}

test.each([
  ['a named type', { type: 'integer' }, ['integer']],
  ['a list of types', { type: ['string', 'null'] }, ['null', 'string']],
  ['nullable adds null', { type: 'integer', nullable: true }, ['integer', 'null']],
  ['nullable alone says nothing', { nullable: true }, 'any'],
  ['an enum without type', { enum: [1, 2.5, 'a', null] }, ['integer', 'null', 'number', 'string']],
  ['an enum beside a type', { type: 'string', enum: [1] }, ['string']],
  ['a constant', { const: false }, ['boolean']],
  ['a constant null', { const: null }, ['null']],
  ['anyOf is a union', { anyOf: [{ type: 'integer' }, { type: 'null' }] }, ['integer', 'null']],
  ['oneOf is a union', { oneOf: [{ type: 'string' }, { type: 'array' }] }, ['array', 'string']],
  [
    'a branch that says nothing makes the union say nothing',
    { anyOf: [{}, { type: 'null' }] },
    'any',
  ],
  [
    'allOf intersects',
    { allOf: [{ type: ['integer', 'string'] }, { type: ['integer', 'null'] }] },
    ['integer'],
  ],
  [
    'a type beside anyOf intersects',
    { type: 'string', anyOf: [{ type: 'string' }, { type: 'null' }] },
    ['string'],
  ],
  ['an integer is a number', { allOf: [{ type: 'number' }, { type: 'integer' }] }, ['integer']],
  [
    'nothing fits two types that exclude each other',
    { allOf: [{ type: 'string' }, { type: 'object' }] },
    [],
  ],
  ['properties mean an object', { properties: {} }, ['object']],
  ['items mean an array', { items: {} }, ['array']],
  [
    'properties beside branches leave the branches',
    { properties: {}, anyOf: [{ type: 'object' }, { type: 'null' }] },
    ['null', 'object'],
  ],
  ['no schema says nothing', undefined, 'any'],
  ['true says nothing', true, 'any'],
  ['a type that does not exist says nothing', { type: 'text' }, 'any'],
  ['inherited properties are no keywords', Object.create({ type: 'string' }), 'any'],
])('%s', (_name, schema, expected) => {
  expect(types(schema)).toEqual(expected)
})

test('a $ref is followed through the document, with RFC 6901 escapes', () => {
  const root = { $defs: { 'a/b~c d': { type: 'integer' }, list: [{ type: 'null' }] } }
  expect(types({ $ref: '#/$defs/a~1b~0c%20d' }, root)).toEqual(['integer'])
  expect(types({ $ref: '#/$defs/list/0' }, root)).toEqual(['null'])
})

test('a $ref that leads to itself says nothing', () => {
  const root = { $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } }
  expect(schemaTypes({ $ref: '#/$defs/a' }, root)).toEqual({
    types: 'any',
    hasUnresolvedRef: false,
  })
})

test('a $ref in a cycle keeps what else is known', () => {
  const root = { type: 'object', properties: {} }
  expect(types({ $ref: '#' }, root)).toEqual(['object'])
})

test.each(['#/$defs/none', 'https://example.com/schema', '#anchor', '#/toString'])(
  'the $ref %s cannot be followed',
  ($ref) => {
    expect(schemaTypes({ $ref }, {})).toEqual({ types: 'any', hasUnresolvedRef: true })
  },
)

test('branches that share their parts many times over cost no more than once each', () => {
  const $defs = Object.fromEntries(
    Array.from({ length: 60 }, (_, index) => [
      `d${index}`,
      index === 59
        ? { type: 'integer' }
        : { anyOf: [{ $ref: `#/$defs/d${index + 1}` }, { $ref: `#/$defs/d${index + 1}` }] },
    ]),
  )
  expect(types({ $ref: '#/$defs/d0' }, { $defs })).toEqual(['integer'])
})
