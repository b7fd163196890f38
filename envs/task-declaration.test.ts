// A task of any environment may declare what a refused call does; its environment never sees the declaration.
import { describe, expect, test } from 'vitest'
import { arithmetic } from './arithmetic/arithmetic.ts'
import type { Environment } from './environment.ts'
import { readDeclaration, withDeclarations } from './task-declaration.ts'

const SPEC = { id: 'sum', request: 'How much is 6 * 7?', answer: '42' }
const environment = withDeclarations(arithmetic as Environment)
const task = (spec: typeof SPEC & { on_parse_error?: string }) => ({
  id: 'p/sum',
  environment: 'arithmetic',
  spec,
})

describe.each(['feedback', 'end', 'unscored'])('on_parse_error %s', (rule) => {
  const declared = { ...SPEC, on_parse_error: rule }

  test('is told by describe, and is no problem of the spec', () => {
    expect(environment.problems(declared)).toEqual([])
    expect(environment.describe(task(declared))).toEqual({
      ...arithmetic.describe(task(SPEC)),
      on_parse_error: rule,
    })
  })

  test('is not part of the world', () => {
    expect(environment.reset(task(declared), 3)).toEqual(arithmetic.reset(task(SPEC), 3))
    expect(readDeclaration(declared).spec).toEqual(SPEC)
  })
})

test.each(['retry', '', null, 1, ['end']])('on_parse_error %j is refused with its path', (rule) => {
  const declared = { ...SPEC, on_parse_error: rule }
  const [problem] = environment.problems(declared)
  expect(problem).toMatchObject({ rule: 'V01', path: 'on_parse_error' })
  expect(problem?.message).toContain('feedback, end, unscored')
})

test('a task that declares nothing has the word of its environment, if it has one', () => {
  const strict = {
    ...arithmetic,
    describe: () => ({ title: 't', limits: {}, on_parse_error: 'end' }),
  }
  const declaring = withDeclarations(strict as unknown as Environment)
  expect(environment.describe(task(SPEC))).not.toHaveProperty('on_parse_error')
  expect(declaring.describe(task(SPEC)).on_parse_error).toBe('end')
  expect(declaring.describe(task({ ...SPEC, on_parse_error: 'unscored' })).on_parse_error).toBe(
    'unscored',
  )
})
