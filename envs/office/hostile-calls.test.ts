// Fifty thousand hostile calls over all 28 services: typed errors or results, no exception, nothing changed by a refusal.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { JsonObject } from '../../protocol/json.ts'
import { ERROR_CODES, type Field } from './catalogue/declare.ts'
import { TOOLS } from './catalogue/registry.ts'
import { SERVICES } from './catalogue/services.ts'
import { office } from './office.ts'
import type { TaskSpec } from './spec.ts'
import { begin, smallSpec, specs } from './transcripts.testkit.ts'

const CALLS = 50_000
const CALLS_A_RUN = 50
const SEED = 20270113

/** The records of all shipped tasks that the first task with each service brings. */
const initial_state: TaskSpec['initial_state'] = Object.fromEntries(
  SERVICES.map(({ name }) => [
    name,
    specs.find((spec) => spec.initial_state[name])?.initial_state[name] ?? {},
  ]),
)
const ids = [
  ...new Set(
    Object.values(initial_state).flatMap((tables) =>
      Object.values(tables)
        .flat()
        .flatMap((record) => Object.values(record))
        .filter((value): value is string => /^[A-Z]+-\d+$/.test(String(value))),
    ),
  ),
]
const spec = smallSpec({
  initial_state,
  faults: [
    { id: 'busy', tool: 'todo_list', phase: 'before', nth: 1, times: 2, code: 'RATE_LIMITED' },
  ],
})

const deep = (levels: number): unknown => {
  let value: unknown = 'end'
  for (let level = 0; level < levels; level++) value = level % 2 ? [value] : { a: value }
  return value
}

const hostile = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...ids) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 30 }) },
  fc.constantFrom<unknown>(
    '__proto__',
    'constructor',
    '\uD800',
    '\uDC00\uD83D',
    '',
    ' ',
    '2027-01-18',
    '2027-13-45',
    '2027-01-18T09:00:00Z',
    '2027-01-18T09:00:00',
    'a@b.example',
    'x'.repeat(30_000),
    'X'.repeat(150_000),
    NaN,
    Infinity,
    -0,
    1e308,
    -1,
    0,
    2 ** 53,
    deep(8),
    deep(40),
    null,
    undefined,
    true,
  ),
  fc.integer(),
  fc.double(),
  fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
)
const value = fc.letrec((tie) => ({
  any: fc.oneof(
    { depthSize: 'small' },
    { weight: 4, arbitrary: hostile },
    fc.array(tie('any'), { maxLength: 4 }),
    fc.dictionary(fc.oneof(fc.string(), fc.constant('__proto__')), tie('any'), { maxKeys: 4 }),
  ),
})).any
const names = [...TOOLS.keys()]
/** Mostly what a field asks for, so that calls come past the checks, with ids that mostly exist. */
function mostlyFitting(field: Field): fc.Arbitrary<unknown> {
  const fitting = {
    id: fc.constantFrom(...ids),
    ref: fc.constantFrom(...ids),
    str: fc.string({ unit: 'binary', maxLength: 30 }),
    text: fc.string({ unit: 'binary', maxLength: 300 }),
    email: fc.constantFrom('ada.berg@acme.example', 'x@y.example'),
    int: fc.integer({ min: -2, max: 40 }),
    num: fc.double({ min: -10, max: 5000, noNaN: true }),
    money: fc.integer({ min: -100, max: 500_000 }).map((cents) => cents / 100),
    bool: fc.boolean(),
    date: fc.constantFrom('2027-01-18', '2027-02-28', '1999-12-31'),
    datetime: fc.constantFrom(
      '2027-01-18T09:00:00+01:00',
      '2027-01-18T10:00:00Z',
      '9999-12-31T23:59:59Z',
    ),
    obj: fc.constant({ key: 'value' }),
  } as Record<string, fc.Arbitrary<unknown>>
  const one = (t: string) => fitting[t] ?? value
  const right =
    field.t === 'enum'
      ? fc.constantFrom<unknown>(...field.values)
      : field.t === 'list'
        ? fc.array(one(field.of), { maxLength: 3 })
        : one(field.t)
  return fc.oneof({ weight: 12, arbitrary: right }, { weight: 1, arbitrary: value })
}

/** The ids that a tool's own entity has, where it has any. */
const idsOf = (name: string) => {
  const { entity } = TOOLS.get(name)!
  const rows = initial_state[entity.name.split('.')[0]!]?.[entity.key] ?? []
  return rows.map((row) => row[entity.id])
}

const declared = fc.constantFrom(...names).chain((name) => {
  const { params, entity } = TOOLS.get(name)!
  const own = idsOf(name)
  const args = Object.fromEntries(
    [...params].map(([key, field]) => [
      key,
      key === entity.id && own.length > 0
        ? fc.oneof({ weight: 6, arbitrary: fc.constantFrom<unknown>(...own) }, mostlyFitting(field))
        : mostlyFitting(field),
    ]),
  )
  const requiredKeys = [...params].filter(([, field]) => !field.opt).map(([key]) => key)
  return fc.tuple(
    fc.constant<unknown>(name),
    fc.record(args, { requiredKeys }) as fc.Arbitrary<unknown>,
  )
})
const undeclared = fc.tuple(
  fc.oneof(
    fc.constantFrom<unknown>(...names),
    fc.string(),
    fc.constantFrom<unknown>('__proto__', 'toString', null, 7),
  ),
  value,
)
const call = fc.oneof({ weight: 3, arbitrary: declared }, undeclared)
const episode = fc.array(call, { minLength: CALLS_A_RUN, maxLength: CALLS_A_RUN })

test(`${CALLS} hostile calls end in typed errors or results, and a refused call changes nothing`, () => {
  const seen = { calls: 0, refused: 0, written: 0 }
  fc.assert(
    fc.property(episode, fc.string({ unit: 'binary' }), (calls, said) => {
      let { state } = begin(spec)
      for (const [name, args] of calls) {
        const made = {
          id: 'c',
          name: name as string,
          arguments: args as JsonObject,
          arguments_json: '',
        }
        const { state: next, observation, audit } = office.step(state, made, seen.calls)
        const result = JSON.parse(observation.content)
        expect(observation.content.isWellFormed()).toBe(true)
        if (observation.is_error) {
          seen.refused++
          expect(ERROR_CODES).toContain(result.error.code)
          expect(next.tables).toBe(state.tables)
          expect(next.counters).toBe(state.counters)
        } else seen.written += (audit.writes as unknown[]).length
        deepFreeze(next.tables)
        state = next
        seen.calls++
      }
      state = office.hear(state, said, 1)
      state = office.reply(state, said, 2).state
      expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(PROTOTYPE)
      expect(structuredClone(state)).toEqual(state)
      expect(office.grade(state).status).toBe('scored')
      expect(office.anchor(state)).toBe(office.anchor(structuredClone(state)))
    }),
    { numRuns: CALLS / CALLS_A_RUN, seed: SEED },
  )
  console.log(`${seen.calls} calls, ${seen.refused} refused, ${seen.written} records written`)
  expect(seen.calls).toBeGreaterThanOrEqual(CALLS)
  // Calls that all end at the first check would prove nothing about the tools.
  expect(seen.written).toBeGreaterThan(CALLS / 20)
}, 180_000)

const PROTOTYPE = Object.getOwnPropertyNames(Object.prototype)

/** Freezes what is new: a tool that changes a record in place then throws. */
function deepFreeze(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return
  Object.freeze(value)
  for (const member of Object.values(value)) deepFreeze(member)
}
