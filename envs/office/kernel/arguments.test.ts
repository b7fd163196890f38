// Argument checks are strict and say what was expected; no argument reaches a record or a prototype it should not.
import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../protocol/json.ts'
import { office } from '../office.ts'
import { begin, callAll, smallSpec, toolCall } from '../transcripts.testkit.ts'

const services = { initial_state: { todo: {}, travel: {}, mail: {}, calendar: {}, inventory: {} } }
const event = {
  title: 't',
  attendees: [],
  start: '2027-03-11T10:00:00Z',
  end: '2027-03-11T11:00:00Z',
}

const refusals: [what: string, tool: string, args: unknown][] = [
  ['a missing parameter', 'todo_create', {}],
  ['null for a required parameter', 'todo_create', { title: null }],
  ['an unknown parameter', 'todo_create', { title: 'x', colour: 'red' }],
  ['an unknown parameter that is null', 'todo_create', { title: 'x', colour: null }],
  ['a number for a string', 'todo_create', { title: 7 }],
  ['a value outside the enum', 'todo_create', { title: 'x', priority: 'urgent' }],
  ['an enum value in other case', 'todo_create', { title: 'x', priority: 'LOW' }],
  ['a day that does not exist', 'todo_create', { title: 'x', due_date: '2027-02-29' }],
  ['a date in another order', 'todo_create', { title: 'x', due_date: '18.01.2027' }],
  ['a date-time for a date', 'todo_create', { title: 'x', due_date: '2027-01-18T00:00:00Z' }],
  [
    'a date-time without offset',
    'calendar_create_event',
    { ...event, start: '2027-03-11T10:00:00' },
  ],
  ['a date for a date-time', 'calendar_create_event', { ...event, start: '2027-03-11' }],
  [
    'an hour that does not exist',
    'calendar_create_event',
    { ...event, start: '2027-03-11T24:00:00Z' },
  ],
  ['a name for an e-mail address', 'todo_create', { title: 'x', owner: 'Ada Berg' }],
  ['two addresses for one', 'todo_create', { title: 'x', owner: 'a@b.example, c@d.example' }],
  ['a string for a list', 'todo_create', { title: 'x', tags: 'home' }],
  [
    'a list with a wrong member',
    'mail_send',
    { to: ['a@b.example', 'c'], subject: 's', body: 'b' },
  ],
  ['a fraction for an integer', 'todo_list', { limit: 1.5 }],
  ['digits in quotes for an integer', 'todo_list', { limit: '5' }],
  ['a limit of 0', 'todo_list', { limit: 0 }],
  ['a negative offset', 'todo_list', { offset: -1 }],
  ['a string for a number', 'travel_search', { max_price: '100' }],
  ['an infinite number', 'travel_search', { max_price: Number.POSITIVE_INFINITY }],
  ['a string for a boolean', 'mail_list_messages', { read: 'true' }],
  ['1 for a boolean', 'mail_list_messages', { read: 1 }],
  ['an update of nothing', 'todo_update', { todo_id: 'TD-1' }],
  ['an update by null only', 'todo_update', { todo_id: 'TD-1', title: null }],
  ['a start that is not before the end', 'calendar_create_event', { ...event, end: event.start }],
  ['a list instead of an object', 'todo_list', []],
  ['no arguments at all', 'todo_list', null],
]

test.each(refusals)('%s is refused as INVALID_ARGUMENT', (_what, tool, args) => {
  const { error, state } = callAll(services, [tool, args])
  expect(error).toBe('INVALID_ARGUMENT')
  expect(state.audit[0]!.writes).toEqual([])
})

test('the message names the parameter, what was expected and what came', () => {
  const { result } = callAll(services, ['todo_create', { title: 'x', due_date: '2027-02-30' }])
  expect((result.error as JsonObject).message).toBe(
    'due_date: expected a date that exists, as YYYY-MM-DD, got "2027-02-30"',
  )
})

test('null for an optional parameter counts as absent', () => {
  const { error, result, audit } = callAll(services, [
    'todo_create',
    { title: 'x', due_date: null },
  ])
  expect(error).toBeUndefined()
  expect(result).not.toHaveProperty('due_date')
  expect(audit.args).toEqual({ title: 'x' })
})

test('a leap day and any offset are taken', () => {
  const dated = callAll(services, ['todo_create', { title: 'x', due_date: '2028-02-29' }])
  expect(dated.error).toBeUndefined()
  const timed = { ...event, start: '2027-03-11T10:00:00.250+05:45', end: '2027-03-11T10:00:00Z' }
  expect(callAll(services, ['calendar_create_event', timed]).error).toBeUndefined()
})

describe('hostile arguments', () => {
  test('__proto__ is an unknown parameter like any other', () => {
    const args = JSON.parse('{"title":"x","__proto__":{"status":"done"}}')
    const { error, audit } = callAll(services, ['todo_create', args])
    expect(error).toBe('INVALID_ARGUMENT')
    expect(Object.hasOwn(audit.args, '__proto__')).toBe(true)
    expect(Object.getPrototypeOf(audit.args)).toBe(Object.prototype)
  })
  test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])(
    'the id %s is only an id that is not there',
    (id) => {
      expect(callAll(services, ['todo_get', { todo_id: id }]).error).toBe('NOT_FOUND')
    },
  )
  test.each(['__proto__', 'constructor', 'toString', ''])(
    'the tool name "%s" is unknown',
    (name) => {
      expect(callAll(services, [name, {}]).error).toBe('UNKNOWN_TOOL')
    },
  )
  test('inherited properties are no arguments', () => {
    expect(callAll(services, ['todo_create', Object.create({ title: 'x' })]).error).toBe(
      'INVALID_ARGUMENT',
    )
  })
  test('arguments of a million characters are refused and not kept', () => {
    const { error, audit } = callAll(services, ['todo_create', { title: 'x'.repeat(1_000_000) }])
    expect(error).toBe('INVALID_ARGUMENT')
    expect(audit.args).toEqual({})
  })
  test.each([
    ['in a parameter', (deep: unknown) => ({ title: 'x', tags: deep })],
    ['instead of an object', (deep: unknown) => deep],
  ])('values nested 100,000 deep %s are refused and not kept', (_where, argumentsOf) => {
    let deep: unknown = []
    for (let i = 0; i < 100_000; i++) deep = [deep]
    const call = { ...toolCall('todo_create', {}), arguments: argumentsOf(deep) as JsonObject }
    const { state } = office.step(begin(smallSpec(services)).state, call, 0)
    expect(state.audit[0]).toMatchObject({ error: 'INVALID_ARGUMENT', args: {} })
  })
})
