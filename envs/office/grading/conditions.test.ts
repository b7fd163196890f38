// Every operator of the check language, by table: what holds and what does not (SPEC section d).
import { describe, expect, test } from 'vitest'
import type { JsonObject, JsonValue } from '../../../protocol/json.ts'
import type { Field } from '../catalogue/declare.ts'
import { entityNamed } from '../catalogue/registry.ts'
import { holds, meets, OPERATORS } from './conditions.ts'

const moment = { nowMs: Date.UTC(2027, 2, 10, 10), offsetMinutes: 60 }
const str: Field = { t: 'str' }
const num: Field = { t: 'num' }
const money: Field = { t: 'money' }
const date: Field = { t: 'date' }
const datetime: Field = { t: 'datetime' }
const bool: Field = { t: 'bool' }
const strings: Field = { t: 'list', of: 'str' }

type Case = [field: Field, value: JsonValue | undefined, condition: JsonValue, holds: boolean]

const LITERALS: Case[] = [
  [str, 'Straße  1', 'STRASSE 1', false],
  [str, ' Old\u00a0 Mill ', 'old mill', true],
  [str, 'ＡＢＣ', 'abc', true],
  [str, 'old mill', 'mill', false],
  [num, 1, 1 + 1e-10, true],
  [num, 1, 1 + 1e-8, false],
  [money, 10, 10.005, true],
  [money, 10, 10.006, false],
  [num, 10, '10', false],
  [bool, true, true, true],
  [bool, true, 'true', false],
  [datetime, '2027-03-10T11:00:00+01:00', '2027-03-10T10:00:00Z', true],
  [datetime, '2027-03-10T11:00:00+01:00', '2027-03-10T11:00:00Z', false],
  [datetime, '2027-03-10T00:00:00+01:00', '2027-03-10', true],
  [date, '2027-03-10', '2027-03-10', true],
  [strings, ['a', 'B'], 'b', true],
  [strings, ['a', 'b'], 'ab', false],
  [strings, ['a', 'b', 'a'], ['B', 'A'], true],
  [strings, ['a', 'b'], ['a'], false],
  [strings, ['a'], ['a', 'b'], false],
  [strings, [], [], true],
  [str, undefined, null, true],
  [str, undefined, '', false],
  [str, 'x', null, false],
]

const OPERATIONS: { [operator: string]: Case[] } = {
  eq: [
    [str, 'Open', { eq: 'open' }, true],
    [str, 'open', { eq: 'closed' }, false],
  ],
  ne: [
    [str, 'open', { ne: 'OPEN' }, false],
    [str, 'open', { ne: 'closed' }, true],
    [str, undefined, { ne: 'closed' }, true],
  ],
  in: [
    [str, 'b', { in: ['A', 'B'] }, true],
    [str, 'c', { in: ['A', 'B'] }, false],
    [strings, ['c', 'a'], { in: ['a', 'b'] }, true],
  ],
  nin: [
    [str, 'c', { nin: ['A', 'B'] }, true],
    [str, 'b', { nin: ['A', 'B'] }, false],
  ],
  gt: [
    [num, 5, { gt: 5 }, false],
    [num, 5.1, { gt: 5 }, true],
    [money, 5.004, { gt: 5 }, false],
    [date, '2027-03-11', { gt: '2027-03-10' }, true],
    [num, undefined, { gt: -1 }, false],
    [str, 'x', { gt: 5 }, false],
  ],
  gte: [
    [num, 5, { gte: 5 }, true],
    [num, 4.9, { gte: 5 }, false],
  ],
  lt: [
    [num, 5, { lt: 5 }, false],
    [num, 4, { lt: 5 }, true],
    [num, undefined, { lt: 5 }, false],
  ],
  lte: [
    [num, 5, { lte: 5 }, true],
    [num, 6, { lte: 5 }, false],
    [str, '2027-03', { lte: '2027-04' }, true],
  ],
  between: [
    [num, 5, { between: [5, 7] }, true],
    [num, 7, { between: [5, 7] }, true],
    [num, 8, { between: [5, 7] }, false],
    [datetime, '2027-03-10T12:00:00+01:00', { between: ['2027-03-10', '2027-03-11'] }, true],
    [datetime, '2027-03-09T23:59:59+01:00', { between: ['2027-03-10', '2027-03-11'] }, false],
  ],
  contains: [
    [str, 'Invoice IN-301', { contains: 'in-301' }, true],
    [str, 'Invoice IN-301', { contains: 'IN-302' }, false],
    [strings, ['alpha', 'beta'], { contains: 'ET' }, true],
    [str, undefined, { contains: '' }, false],
  ],
  contains_all: [
    [str, 'a b c', { contains_all: ['A', 'C'] }, true],
    [str, 'a b c', { contains_all: ['a', 'd'] }, false],
  ],
  contains_any: [
    [str, 'a b c', { contains_any: ['x', 'C'] }, true],
    [str, 'a b c', { contains_any: ['x', 'y'] }, false],
  ],
  contains_none: [
    [str, 'a b c', { contains_none: ['x', 'y'] }, true],
    [str, 'a b c', { contains_none: ['x', 'b'] }, false],
  ],
  matches: [
    [str, 'IN-301', { matches: '^in-\\d+$' }, true],
    [str, 'IN-301x', { matches: '^in-\\d+$' }, false],
    [strings, ['a@b.example', 'c@d.example'], { matches: '@d\\.' }, true],
    [str, undefined, { matches: '.*' }, false],
  ],
  re: [
    [str, 'IN-301', { re: '30[12]' }, true],
    [num, 301, { re: '^3' }, true],
  ],
  exists: [
    [str, 'x', { exists: true }, true],
    [str, undefined, { exists: true }, false],
    [str, undefined, { exists: false }, true],
    [str, '', { exists: false }, false],
  ],
  approx: [
    [num, 10.4, { approx: 10, tol: 0.5 }, true],
    [num, 10.6, { approx: 10, tol: 0.5 }, false],
    [num, 10.6, { approx: [10, 1] }, true],
    [num, 10.004, { approx: 10 }, true],
    [num, 10.006, { approx: 10 }, false],
    [str, '10', { approx: 10 }, false],
  ],
  before: [
    [datetime, '2027-03-10T10:59:59+01:00', { before: '2027-03-10T10:00:00Z' }, true],
    [datetime, '2027-03-10T11:00:00+01:00', { before: '2027-03-10T10:00:00Z' }, false],
  ],
  after: [
    [date, '2027-03-11', { after: '2027-03-10' }, true],
    [date, '2027-03-10', { after: '2027-03-10' }, false],
  ],
  older_than_h: [
    [datetime, '2027-03-08T10:59:59+01:00', { older_than_h: 48 }, true],
    [datetime, '2027-03-08T11:00:00+01:00', { older_than_h: 48 }, false],
    [datetime, '2027-03-08T12:00:00+01:00', { older_than_h: 48 }, false],
    [date, '2027-03-08', { older_than_h: 48 }, true],
    [datetime, undefined, { older_than_h: 48 }, false],
  ],
  newer_than_h: [
    [datetime, '2027-03-08T12:00:00+01:00', { newer_than_h: 48 }, true],
    [datetime, '2027-03-08T11:00:00+01:00', { newer_than_h: 48 }, false],
  ],
  set_eq: [
    [strings, ['b', 'A'], { set_eq: ['a', 'b'] }, true],
    [strings, ['a'], { set_eq: ['a', 'b'] }, false],
    [strings, ['a', 'b', 'c'], { set_eq: ['a', 'b'] }, false],
    [strings, undefined, { set_eq: [] }, false],
  ],
  superset: [
    [strings, ['a', 'b', 'c'], { superset: ['c', 'a'] }, true],
    [strings, ['a'], { superset: ['a', 'b'] }, false],
  ],
  subset: [
    [strings, ['a'], { subset: ['a', 'b'] }, true],
    [strings, ['a', 'c'], { subset: ['a', 'b'] }, false],
  ],
  has: [
    [strings, ['a@x.example', 'b@y.example'], { has: { matches: '@y' } }, true],
    [strings, ['a@x.example'], { has: { matches: '@y' } }, false],
    [strings, ['A'], { has: 'a' }, true],
    [strings, [], { has: { exists: true } }, false],
  ],
  len: [
    [strings, [], { len: 0 }, true],
    [strings, ['a', 'b'], { len: { gte: 2 } }, true],
    [str, 'abc', { len: { lt: 3 } }, false],
    [strings, undefined, { len: 0 }, false],
  ],
  number: [
    [str, 'total 1,250.00 EUR', { number: 1250 }, true],
    [str, 'total 1,251 EUR', { number: 1250 }, false],
    [str, 'total 1,251 EUR', { number: 1250, tol: 1 }, true],
  ],
}

const sentence = ([field, value, condition, expected]: Case) =>
  `${JSON.stringify(value)} (${field.t}) ${expected ? 'meets' : 'fails'} ${JSON.stringify(condition)}`

describe('a literal', () => {
  test.each(LITERALS.map((one) => [sentence(one), ...one] as const))(
    '%s',
    (_name, field, value, condition, expected) => {
      expect(holds(value, condition, field, moment)).toBe(expected)
    },
  )
})

describe('an operator', () => {
  const cases = Object.values(OPERATIONS).flat()
  test.each(cases.map((one) => [sentence(one), ...one] as const))(
    '%s',
    (_name, field, value, condition, expected) => {
      expect(holds(value, condition, field, moment)).toBe(expected)
    },
  )
  test('each one has cases here, some that hold and some that fail', () => {
    expect(Object.keys(OPERATIONS).sort()).toEqual([...OPERATORS.keys()].sort())
    for (const [operator, rows] of Object.entries(OPERATIONS))
      expect(new Set(rows.map((row) => row[3])).size, operator).toBeGreaterThanOrEqual(
        operator === 're' ? 1 : 2,
      )
  })
  test('several must all hold', () => {
    expect(holds(5, { gt: 1, lt: 9 }, num, moment)).toBe(true)
    expect(holds(5, { gt: 1, lt: 5 }, num, moment)).toBe(false)
  })
  test('an unknown one is an error, never a condition that fails', () => {
    expect(() => holds(5, { above: 1 }, num, moment)).toThrow('unknown operator "above"')
    expect(() => holds(5, { toString: 1 }, num, moment)).toThrow('unknown operator')
  })
})

describe('conditions on a record', () => {
  const { fields } = entityNamed('todo.item')
  const row = {
    todo_id: 'TD-1',
    title: 'Call Marta',
    description: 'about the plan',
    status: 'pending',
    tags: ['x'],
  }
  test.each<[string, JsonObject, boolean]>([
    ['all fields', { title: { contains: 'marta' }, status: 'pending' }, true],
    ['one field that fails', { title: { contains: 'marta' }, status: 'done' }, false],
    ['nothing', {}, true],
    ['$or with one that holds', { $or: [{ status: 'done' }, { title: 'call marta' }] }, true],
    ['$or with none', { $or: [{ status: 'done' }, { title: 'x' }] }, false],
    ['$not', { $not: { status: 'done' } }, true],
    ['$not of what holds', { $not: { status: 'pending', title: { contains: 'call' } } }, false],
    ['$text over all string fields', { $text: { contains_all: ['marta', 'plan', 'td-1'] } }, true],
    ['$text does not join words of two fields', { $text: { matches: 'marta about' } }, false],
    ['$text leaves lists out', { $text: { matches: '^x$' } }, false],
  ])('%s', (_what, where, expected) => {
    expect(meets(row, where, fields, moment)).toBe(expected)
  })
  test('inherited properties are no fields', () => {
    expect(meets({}, { title: { exists: true } }, fields, moment)).toBe(false)
    expect(meets(Object.create({ title: 'x' }), { title: 'x' }, fields, moment)).toBe(false)
  })
})
