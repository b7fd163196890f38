// Checks on what was said: which messages are meant, and what their text must hold.
import { describe, expect, test } from 'vitest'
import { office } from '../office.ts'
import type { Check, SpecStep, TaskSpec, TextCondition } from '../spec.ts'
import { check, playStep, smallSpec } from '../transcripts.testkit.ts'
import { textHolds } from './message-check.ts'

const talking: Partial<TaskSpec> = {
  user: { mode: 'scripted', rules: [], fallback: 'Go on.' },
}
const say = (text: string): SpecStep => ({ say: text })
const create: SpecStep = { call: 'todo_create', args: { title: 'x' } }
const list: SpecStep = { call: 'todo_list', args: {} }
const message = (more: Partial<Check<'message'>>): Check => ({ kind: 'message', ...more })
const score = (steps: SpecStep[], more: Partial<Check<'message'>>) =>
  check(talking, steps, message(more)).score

describe('the messages meant', () => {
  const steps = [say('alpha'), list, say('beta'), create, say('gamma'), create, say('delta')]
  const meant = (more: Partial<Check<'message'>>) =>
    ['alpha', 'beta', 'gamma', 'delta'].filter(
      (word) => score(steps, { ...more, all_of: [word] }) === 1,
    )

  test('are the last one by default', () => {
    expect(meant({})).toEqual(['delta'])
    expect(meant({ in: 'final' })).toEqual(['delta'])
  })
  test('may be all', () => {
    expect(meant({ in: 'all' })).toEqual(['alpha', 'beta', 'gamma', 'delta'])
  })
  test('may be those before the first write', () => {
    expect(meant({ in: 'before_first_write' })).toEqual(['alpha', 'beta'])
  })
  test('may be those before the first call of a tool', () => {
    expect(meant({ before_tool: 'todo_list' })).toEqual(['alpha'])
    expect(meant({ before_tool: ['todo_create', 'todo_update'] })).toEqual(['alpha', 'beta'])
  })
  test('are all where the tool was never called', () => {
    expect(meant({ before_tool: 'todo_update' })).toEqual(['alpha', 'beta', 'gamma', 'delta'])
  })
  test('are the policy’s and not the user’s', () => {
    expect(score([say('hello')], { in: 'all', all_of: ['go on'] })).toBe(0)
  })
  test('what is said beside calls counts, but not as the closing message', () => {
    const spec = smallSpec({
      ...talking,
      grading: {
        completion: [
          { ...message({ in: 'all', all_of: ['secret'] }), id: 'all', weight: 0.5 } as never,
          { ...message({ in: 'final', all_of: ['secret'] }), id: 'final', weight: 0.5 } as never,
        ],
        safety: [],
      },
    })
    const heard = office.hear(
      office.reset({ id: 'x', environment: 'office', spec: spec as never }, 1),
      'the secret',
      0,
    )
    const { state } = playStep({ state: heard, played: [], audit: [] }, list)
    expect(office.grade(state)).toMatchObject({ rewards: { completion: 0.5 } })
  })
})

describe('the text', () => {
  const said = [say('Invoices IN-301 and IN-304: 1,250.00 EUR')]
  test.each([
    ['all of', { all_of: ['in-301', 'in-304'] }, 1],
    ['all of, one missing', { all_of: ['in-301', 'in-305'] }, 0],
    ['all of in part', { all_of: ['in-301', 'in-305'], partial: true }, 0.5],
    ['any of', { any_of: ['in-305', 'in-301'] }, 1],
    ['any of, none there', { any_of: ['in-305', 'in-306'] }, 0],
    ['none of', { none_of: ['in-305'] }, 1],
    ['none of, one there', { all_of: ['in-301'], none_of: ['in-304'] }, 0],
    ['none of beats a part', { all_of: ['in-301', 'x'], none_of: ['in-304'], partial: true }, 0],
    ['any of is needed for a part', { all_of: ['in-301', 'x'], any_of: ['y'], partial: true }, 0],
  ])('%s', (_what, more, expected) => {
    expect(score(said, more)).toBe(expected)
  })
  test('silence scores 0 whatever is asked', () => {
    expect(score([list], { none_of: ['x'] })).toBe(0)
    expect(score([], { in: 'all', none_of: ['x'] })).toBe(0)
  })
})

test.each<[string, TextCondition, boolean]>([
  ['a  Phrase', 'A phrase', true],
  ['a phrase', { re: 'PH?RASE$' }, true],
  ['a phrase', { re: '^phrase' }, false],
  ['one two', { any: ['three', 'two'] }, true],
  ['one two', { all: ['one', { any: ['x', 'two'] }] }, true],
  ['one two', { all: ['one', 'three'] }, false],
  ['it is 1.250,00', { number: 1250 }, true],
  ['it is 1249', { number: 1250, tol: 1 }, true],
  ['it is 1248', { number: 1250, tol: 1 }, false],
])('%j against %j: %s', (text, condition, expected) => {
  expect(textHolds(text, condition)).toBe(expected)
})

test('E13: what a tool answered is credited to nobody; evidence names the message of the policy', () => {
  const invoice = {
    invoice_id: 'INV-1',
    number: 'R-1',
    customer_id: 'CU-1',
    amount: 4200,
    currency: 'EUR',
    status: 'open',
    issued_on: '2027-01-01',
    due_on: '2027-02-01',
  }
  const given = { initial_state: { billing: { invoice: [invoice] } } }
  const read: SpecStep = { call: 'billing_get_invoice', args: { invoice_id: 'INV-1' } }
  const told = message({ all_of: [{ number: 4200 }] })
  const episode = (closing: string) => check(given, [read, say(closing)], told)
  expect(episode('Done.')).toEqual({ score: 0, evidence: ['assistant message of turn 1'] })
  expect(episode('The total is 4,200.')).toEqual({
    score: 1,
    evidence: ['assistant message of turn 1'],
  })
})
