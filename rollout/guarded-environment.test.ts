// Whatever an environment throws or returns, its guard tells as one fault that names the function.
import { describe, expect, test } from 'vitest'
import { arithmetic } from '../envs/arithmetic/arithmetic.ts'
import type { Environment } from '../envs/environment.ts'
import { guardedEnvironment, isEnvironmentFault, stateFault } from './guarded-environment.ts'

type Method = 'reset' | 'open' | 'tools' | 'step' | 'hear' | 'reply' | 'grade' | 'anchor'

const task = { id: 't', environment: 'user', spec: {} }
const call = { id: 'c', name: 'n', arguments: {}, arguments_json: '{}' }
const ARGUMENTS: Record<Method, unknown[]> = {
  reset: [task, 1],
  open: [{}],
  tools: [{}],
  step: [{}, call, 0],
  hear: [{}, 'hm', 0],
  reply: [{}, 'hm', 0],
  grade: [{}],
  anchor: [{}],
}
const METHODS = Object.keys(ARGUMENTS) as Method[]

/** Calls a function of an environment that does this in it. */
function run(method: Method, does: () => unknown): unknown {
  const environment = { ...arithmetic, [method]: does } as unknown as Environment
  const guarded = guardedEnvironment('user', environment)
  return (guarded[method] as (...args: unknown[]) => unknown)(...ARGUMENTS[method])
}

function faultOf(method: Method, does: () => unknown): string {
  try {
    run(method, does)
  } catch (error) {
    if (isEnvironmentFault(error)) return error.message
    throw error
  }
  throw new Error('it was taken')
}

const circle: Record<string, unknown> = {}
circle.self = circle
const step = { state: {}, observation: { content: 'seen', is_error: false }, audit: {} }
const scored = { status: 'scored', rewards: { score: 1 }, evidence: {} }
const thrower = (name: string) => ({
  get [name]() {
    throw new Error('gotcha')
  },
})

const NO_TEXT = 'something that cannot be written as text'

function withThrowingMessage(): Error {
  return Object.defineProperty(new Error('x'), 'message', {
    get() {
      throw new Error('gotcha')
    },
  })
}

function throwingProxy(): object {
  return new Proxy(
    {},
    {
      getPrototypeOf() {
        throw new Error('trap')
      },
    },
  )
}

describe.each(METHODS)('%s', (method) => {
  test.each<[what: string, text: string, make: () => unknown]>([
    ['an error', 'no', () => new Error('no')],
    ['a symbol', 'Symbol(odd)', () => Symbol('odd')],
    ['nothing', 'undefined', () => undefined],
    ['an object without a prototype', NO_TEXT, () => Object.create(null)],
    ['an error whose message throws', NO_TEXT, () => withThrowingMessage()],
    ['a proxy that throws', NO_TEXT, () => throwingProxy()],
  ])('may throw %s, which is told in words', (_, text, make) => {
    const fault = faultOf(method, () => {
      throw make()
    })
    expect(fault).toContain(`user.${method} threw: ${text}`)
  })

  test.each<[string, () => unknown]>([
    ['a promise', async () => ({})],
    ['a promise that is rejected', () => Promise.reject(new Error('late'))],
    [
      'an object with a promise in it',
      () => ({ ...step, state: Promise.reject(new Error('late')) }),
    ],
  ])('must return at once, so that %s is refused', (_, does) => {
    expect(faultOf(method, does)).toContain(`user.${method} must return at once`)
  })
})

describe('refused in what goes on record', () => {
  test.each<[method: Method, words: string, does: () => unknown]>([
    ['step', 'audit.n is a bigint', () => ({ ...step, audit: { n: 1n } })],
    [
      'step',
      'audit.deep[0].f is a function',
      () => ({ ...step, audit: { deep: [{ f: () => 1 }] } }),
    ],
    ['step', 'audit.self is a circle', () => ({ ...step, audit: circle })],
    ['step', 'audit.at is a Date', () => ({ ...step, audit: { at: new Date(0) } })],
    ['step', 'threw: gotcha', () => ({ ...step, audit: thrower('n') })],
    ['step', 'threw: gotcha', () => thrower('observation')],
    [
      'step',
      'is_error: boolean',
      () => ({ ...step, observation: { content: 'seen', is_error: 1n } }),
    ],
    ['step', 'content: string', () => ({ ...step, observation: { content: 7, is_error: false } })],
    ['step', 'must return {state', () => ({ ...step, state: undefined })],
    ['step', 'end?: non-empty string', () => ({ ...step, end: 7 })],
    ['step', 'end?: non-empty string', () => ({ ...step, end: '' })],
    ['step', 'end?: non-empty string', () => ({ ...step, end: null })],
    ['reply', 'end: non-empty string', () => ({ state: {}, end: 7 })],
    ['reply', 'end: non-empty string', () => ({ state: {}, end: '' })],
    ['reply', '{state, say: string}, {state, end', () => ({ state: {}, say: 'a', end: 'b' })],
    ['reply', '{state, say: string}, {state, end', () => ({ say: 'a' })],
    ['hear', 'must return the state', () => undefined],
    ['reset', 'must return a state', () => undefined],
    ['open', 'messages[0].n is a bigint', () => [{ role: 'user', content: 'a', n: 1n }]],
    ['open', 'at least one message', () => []],
    ['open', 'role system, user, assistant or tool', () => [{ content: 'a' }]],
    ['open', 'role system, user, assistant or tool', () => [{ role: 'robot', content: 'a' }]],
    ['reply', 'at least one message', () => ({ state: {}, ask: { kind: 'user', messages: [] } })],
    [
      'tools',
      'n is a bigint',
      () => [{ type: 'function', function: { name: 'a', parameters: { n: 1n } } }],
    ],
    ['grade', 'grade.evidence.n is a bigint', () => ({ ...scored, evidence: { n: 1n } })],
    ['grade', 'grade.evidence.self is a circle', () => ({ ...scored, evidence: circle })],
    ['grade', 'grade.evidence.f is a function', () => ({ ...scored, evidence: { f: () => 1 } })],
    ['grade', 'grade.evidence.m is a Map', () => ({ ...scored, evidence: { m: new Map() } })],
    ['grade', 'evidence: {…}', () => ({ ...scored, evidence: 'none' })],
    ['grade', 'grade.rewards.score is a bigint', () => ({ ...scored, rewards: { score: 1n } })],
    ['grade', 'rewards: {…}', () => ({ ...scored, rewards: [1] })],
    ['grade', 'reason: string', () => ({ status: 'unavailable', evidence: {} })],
  ])('%s: %s', (method, words, does) => {
    const fault = faultOf(method, does)
    expect(fault).toContain(`user.${method} `)
    expect(fault).toContain(words)
  })
})

describe('taken', () => {
  test('is a grade without evidence, whose evidence is then empty', () => {
    const { evidence, ...bare } = scored
    expect(run('grade', () => bare)).toEqual({ ...bare, evidence: {} })
  })

  test('is what the record needs as a copy that no later change reaches', () => {
    const audit = { tool: 'a', args: [1] }
    const taken = run('step', () => ({ ...step, audit })) as typeof step
    audit.args.push(2)
    expect(taken).toEqual({ ...step, audit: { tool: 'a', args: [1] } })
  })

  test('are undefined members, objects without a prototype and the same object twice', () => {
    const twice = { n: 1 }
    const evidence = Object.assign(Object.create(null), { twice, again: twice, none: undefined })
    expect(run('grade', () => ({ ...scored, evidence }))).toEqual({
      ...scored,
      evidence: { twice, again: twice },
    })
  })
})

test('a state that cannot cross is a fault of the function that made it', () => {
  const state = { f: () => 1 }
  run('hear', () => state)
  const { message } = stateFault('user', state, new Error('() => 1 could not be cloned.'))
  expect(message).toMatch(/^user\.hear must return a state of plain data.*could not be cloned/)
})
