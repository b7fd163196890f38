// Sentences of the specification of tool calls that no case of the corpus speaks of.
import { expect, test } from 'vitest'
import { createParser } from './create-parser.ts'

const tool = {
  type: 'function' as const,
  function: {
    name: 'f',
    description: '',
    parameters: { type: 'object', properties: { s: { type: 'string' }, i: { type: 'integer' } } },
  },
}
const read = (format: 'hermes' | 'qwen3-coder', text: string) => {
  const parser = createParser({ format, tools: [tool], thinking: 'none' })
  parser.feed(text)
  const { calls, errors, flags, content } = parser.end('stop')
  const codes = errors.map(({ code }) => code)
  return { calls: calls.map((call) => call.arguments_json), codes, flags, content }
}
const hermes = (args: string) => `<tool_call>\n{"name": "f", "arguments": ${args}}\n</tool_call>`
const coder = (name: string, value: string) =>
  `<tool_call>\n<function=f>\n<parameter=${name}>\n${value}\n</parameter>\n</function>\n</tool_call>`

// Section 1: deeper than 512 levels is INVALID_JSON. The call's object and its arguments are two of them.
test.each([
  [510, []],
  [511, ['INVALID_JSON']],
])('%i lists in the arguments: %j', (lists, codes) => {
  const text = hermes(`{"s": ${'['.repeat(lists)}${']'.repeat(lists)}}`)
  expect(read('hermes', text).codes).toEqual(codes)
})

// Section 2: white space is %x20, %x09, %x0A and %x0D, and keys are equal once their escapes are read.
test.each(['\u00A0', '\uFEFF', '\f', '\u2028'])('%j is no white space round the JSON', (space) => {
  expect(
    read('hermes', `<tool_call>${space}{"name": "f", "arguments": {}}</tool_call>`),
  ).toMatchObject({
    calls: [],
    codes: ['INVALID_JSON'],
  })
})
test('a key that is spelled with an escape is a key twice', () => {
  expect(read('hermes', hermes('{"s": 1, "\\u0073": 2}')).codes).toEqual(['DUPLICATE_KEY'])
})

// Section 3: exactly one newline goes at each end; an integer is -?(0|[1-9][0-9]*), its digits kept.
test.each([
  ['s', '', '{"s":""}'],
  ['s', '\n\nx\n', '{"s":"\\n\\nx\\n"}'],
  ['s', '  x\t', '{"s":"  x\\t"}'],
  ['i', '-0', '{"i":-0}'],
  ['i', '90071992547409930', '{"i":90071992547409930}'],
])('parameter %s of %j is %s', (name, value, json) => {
  expect(read('qwen3-coder', coder(name, value)).calls).toEqual([json])
})
test.each(['007', '+5', '5.0', '1e3', '1_000', ''])('%j is no integer', (value) => {
  expect(read('qwen3-coder', coder('i', value))).toMatchObject({
    calls: [],
    codes: ['TYPE_MISMATCH'],
  })
})

// Section 1: text behind a refused block is text after a call; flags of the refused call are not told.
test('behind a refused block stands text after a call', () => {
  expect(read('hermes', '<tool_call>\n[]\n</tool_call>\nand so on')).toMatchObject({
    codes: ['NOT_AN_OBJECT'],
    flags: ['TEXT_AFTER_CALL'],
    content: 'and so on',
  })
  const refused = '<tool_call>\n{"name": "unknown", "arguments": [], "more": 1}\n</tool_call>'
  expect(read('hermes', refused)).toMatchObject({ codes: ['ARGUMENTS_NOT_OBJECT'], flags: [] })
})
test('one final end of turn is no part of the message, one in the middle is text', () => {
  expect(read('hermes', `${hermes('{}')}<|im_end|> \n`)).toMatchObject({
    content: null,
    flags: [],
  })
  expect(read('hermes', 'a<|im_end|>b').content).toBe('a<|im_end|>b')
})
