// One way of writing a turn and what must become of it: the rows of the tests of the forms.
import { expect } from 'vitest'
import type { JsonObject } from '../../protocol/json.ts'
import { answerParse } from './answer.ts'

const parameters: JsonObject = {
  type: 'object',
  properties: {
    city: { type: 'string' },
    days: { type: 'integer' },
    metric: { type: 'boolean' },
    box: { type: 'object' },
    note: { anyOf: [{ type: 'string' }, { type: 'null' }] },
    count: { anyOf: [{ type: 'integer' }, { type: 'null' }] },
    point: { $ref: '#/$defs/point' },
    mixed: { anyOf: [{ type: 'string' }, { type: 'integer' }] },
  },
  $defs: { point: { type: 'object', properties: { x: { type: 'integer' } } } },
}
const tools = ['weather', 'stations'].map((name) => ({
  type: 'function',
  function: { name, description: '', parameters },
}))

interface Result {
  reasoning?: string
  content?: string
  /** `name` and compact arguments. */
  calls?: [string, string][]
  errors?: string[]
  flags?: string[]
}

export type Row = [situation: string, text: string, result: Result, line?: Record<string, unknown>]

export const json = (body: string) => `<tool_call>\n${body}\n</tool_call>`
export const call = (name: string, args = '{}') => json(`{"name": "${name}", "arguments": ${args}}`)
export const xml = (body: string) =>
  `<tool_call>\n<function=weather>\n${body}\n</function>\n</tool_call>`
export const param = (key: string, value: string) => `<parameter=${key}>\n${value}\n</parameter>`
export const city = '{"city":"Rome"}'
export const rome: [string, string] = ['weather', city]
export const stations: [string, string] = ['stations', '{}']

export function check([, text, result, line = {}]: Row, format: string): void {
  const answer = answerParse({ id: 'row', format, tools, text, ...line })
  expect({
    reasoning: answer.reasoning,
    content: answer.content,
    calls: answer.calls.map((one) => [one.name, one.arguments_json]),
    errors: answer.errors.map((error) => error.code),
    flags: answer.flags,
  }).toEqual({ reasoning: null, content: null, calls: [], errors: [], flags: [], ...result })
}
