// The calculator is exact, the generated tasks are stable, and their transcripts score as they declare.
import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../protocol/json.ts'
import { arithmetic } from './arithmetic.ts'
import { evaluate, formatRational } from './expression.ts'

const value = (expression: string) => {
  const result = evaluate(expression)
  return result.ok ? formatRational(result.value) : result.message
}

describe('the calculator', () => {
  test.each([
    ['2 + 3 * 4', '14'],
    ['(2 + 3) * 4', '20'],
    ['10 - 4 - 3', '3'],
    ['7 / 3 + 2 / 3', '3'],
    ['1 / -2', '-1/2'],
    ['-(4 - 6)', '2'],
    ['99999999999999999999 * 99999999999999999999', '9999999999999999999800000000000000000001'],
  ])('%s is %s', (expression, expected) => expect(value(expression)).toBe(expected))

  test.each([
    ['2 +', 'expected a whole number or "(", got the end'],
    ['(2', 'expected ")", got the end'],
    ['2 ** 3', 'expected a whole number or "(", got "*"'],
    ['1 / 0', 'expected a divisor other than 0'],
    ['process.exit()', 'expected a whole number or "(", got "p"'],
    ['1 2', 'expected + - * / or the end, got "2"'],
  ])('%s is refused with a sentence', (expression, message) =>
    expect(value(expression)).toBe(message),
  )
})

function play(spec: JsonObject, steps: { call?: string; args?: JsonObject; say?: string }[]) {
  let state = arithmetic.reset({ id: `arithmetic/${spec.id}`, environment: 'arithmetic', spec }, 1)
  for (const [turn, { call, args = {}, say = '' }] of steps.entries())
    state = call
      ? arithmetic.step(
          state,
          { id: `c${turn}`, name: call, arguments: args, arguments_json: JSON.stringify(args) },
          turn,
        ).state
      : arithmetic.reply(state, say, turn).state
  return arithmetic.grade(state)
}

type Transcripts = Record<
  string,
  { steps: { call?: string; say?: string }[]; expect: { score: number } }
>

test('every transcript of 300 generated tasks scores as it declares', () => {
  for (let index = 0; index < 300; index++) {
    const spec = arithmetic.generate?.(index, 1) as JsonObject
    expect(arithmetic.problems(spec)).toEqual([])
    for (const { steps, expect: wanted } of Object.values(
      spec.transcripts as unknown as Transcripts,
    ))
      expect(play(spec, steps)).toMatchObject({ status: 'scored', rewards: wanted })
  }
})

test('a generated task is the same for the same index and seed, and differs for another', () => {
  expect(arithmetic.generate?.(3, 1)).toEqual(arithmetic.generate?.(3, 1))
  expect(arithmetic.generate?.(3, 1)).not.toEqual(arithmetic.generate?.(4, 1))
  expect(arithmetic.generate?.(3, 1)).not.toEqual(arithmetic.generate?.(3, 2))
})

test('a final number with thousands separators counts, an earlier number does not', () => {
  const spec = { id: 'x', request: 'How many?', answer: '4200' }
  expect(play(spec, [{ say: 'The total is 4,200.' }])).toMatchObject({ rewards: { score: 1 } })
  expect(play(spec, [{ say: '4200 before, 17 now.' }])).toMatchObject({ rewards: { score: 0 } })
  expect(play(spec, [{ say: 'Done.' }])).toMatchObject({ rewards: { score: 0 } })
})

test('a wrong call is answered with a typed error and changes nothing', () => {
  const spec = { id: 'x', request: 'How many?', answer: '1' }
  const state = arithmetic.reset({ id: 'arithmetic/x', environment: 'arithmetic', spec }, 1)
  for (const [name, args] of [
    ['abacus', {}],
    ['calculator', { expression: 4 }],
    ['calculator', { expression: '1', note: 'x' }],
    ['calculator', JSON.parse('{"__proto__": {"expression": "1"}}')],
  ] as [string, JsonObject][]) {
    const call = { id: 'c', name, arguments: args, arguments_json: JSON.stringify(args) }
    const after = arithmetic.step(state, call, 0)
    expect(after.observation.is_error).toBe(true)
    expect(JSON.parse(after.observation.content).error.code).toMatch(
      /UNKNOWN_TOOL|INVALID_ARGUMENT/,
    )
    expect(after.state).toEqual(state)
  }
})
