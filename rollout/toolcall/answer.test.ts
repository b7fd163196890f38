// The line that `paddock parse` and `POST /v1/parse` take, and the answer.
import { expect, it, test } from 'vitest'
import { PaddockError } from '../../protocol/errors.ts'
import { answerParse } from './answer.ts'

const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }]
const line = { id: 'a', format: 'hermes', tools, text: 'Hi.' }

test('a line gets an answer, and other keys of it are ignored', () => {
  expect(answerParse({ ...line, kind: 'x', expect: {}, why: 'y' })).toEqual({
    id: 'a',
    reasoning: null,
    content: 'Hi.',
    calls: [],
    errors: [],
    flags: [],
  })
})

test('chunks are joined', () => {
  expect(answerParse({ ...line, text: undefined, chunks: ['H', '', 'i.'] }).content).toBe('Hi.')
})

test('a tool without description or parameters is a tool', () => {
  const text = '<tool_call>{"name": "g", "arguments": {}}</tool_call>'
  expect(
    answerParse({ ...line, tools: [{ type: 'function', function: { name: 'g' } }], text }).flags,
  ).toEqual([])
})

test('an own key __proto__ survives into the answer as text', () => {
  const text = '<tool_call>{"name": "f", "arguments": {"__proto__": {"a": 1}}}</tool_call>'
  const answer = JSON.stringify(answerParse({ ...line, text }).calls[0])
  expect(answer).toBe(
    '{"name":"f","arguments":{"__proto__":{"a":1}},"arguments_json":"{\\"__proto__\\":{\\"a\\":1}}"}',
  )
})

test('a parameter called __proto__ has its type from the schema', () => {
  const parameters = JSON.parse('{"type":"object","properties":{"__proto__":{"type":"integer"}}}')
  const text = '<tool_call><function=f><parameter=__proto__>3</parameter></function></tool_call>'
  const answer = answerParse({
    id: 1,
    format: 'qwen3-coder',
    tools: [{ type: 'function', function: { name: 'f', parameters } }],
    text,
  })
  expect(answer.calls[0]?.arguments_json).toBe('{"__proto__":3}')
  expect(answer.flags).toEqual([])
})

test('an error has its span in UTF-16 units of the text, and a sentence', () => {
  const text = '😀 <tool_call>\n</tool_call>!'
  expect(answerParse({ ...line, text }).errors).toEqual([
    {
      code: 'EMPTY_CALL',
      start: 3,
      end: text.length - 1,
      message: 'expected a call between <tool_call> and </tool_call>, came only white space',
    },
  ])
})

test.each([
  ['no object', [], ''],
  ['no id', { ...line, id: undefined }, 'id'],
  ['an unknown format', { ...line, format: 'xml' }, 'format'],
  ['no tools', { ...line, tools: undefined }, 'tools'],
  [
    'a tool without a name',
    { ...line, tools: [...tools, { type: 'function', function: {} }] },
    'tools[1].function.name',
  ],
  [
    'parameters that are no schema',
    { ...line, tools: [{ type: 'function', function: { name: 'f', parameters: 3 } }] },
    'tools[0].function.parameters',
  ],
  ['neither text nor chunks', { ...line, text: undefined }, 'text'],
  ['both text and chunks', { ...line, chunks: [] }, 'text'],
  ['a chunk that is no text', { ...line, text: undefined, chunks: ['a', 1] }, 'chunks[1]'],
  ['an unknown thinking mode', { ...line, thinking: 'on' }, 'thinking'],
  ['an unknown finish reason', { ...line, finish_reason: 'abort' }, 'finish_reason'],
])('%s is refused with its path', (_name, bad, path) => {
  expect(() => answerParse(bad)).toThrow(
    expect.objectContaining({ name: 'PaddockError', code: 'invalid_request', path }),
  )
  expect(() => answerParse(bad)).toThrow(PaddockError)
})

it('T10: a response block in the text of a policy is plain text behind its call', () => {
  const invented = '<tool_response>\n{"stock": 12}\n</tool_response>\nSo there are 12.'
  const stock = {
    name: 'stock_get',
    parameters: { type: 'object', properties: { sku: { type: 'string' } } },
  }
  const call = '{"name": "stock_get", "arguments": {"sku": "PAL-9"}}'
  const answer = answerParse({
    id: 'T10',
    format: 'hermes',
    tools: [{ type: 'function', function: stock }],
    text: `<tool_call>\n${call}\n</tool_call>\n${invented}`,
  })
  expect(answer).toMatchObject({ content: invented, errors: [], flags: ['TEXT_AFTER_CALL'] })
  expect(answer.calls).toMatchObject([{ name: 'stock_get', arguments: { sku: 'PAL-9' } }])
})

test('lenient readings are asked for by name, and those that made a difference are told', () => {
  const text = "<tool_call>{'name': 'f', 'arguments': {}}</tool_call>"
  expect(answerParse({ ...line, text })).not.toHaveProperty('leniencies')
  const asked = { ...line, text, leniencies: ['json5', 'closeAtStop', 'acceptBareFunction'] }
  const answer = answerParse(asked)
  expect(answer.calls).toMatchObject([{ name: 'f' }])
  expect(answer.leniencies).toEqual(['json5'])
  expect(() => answerParse({ ...line, leniencies: ['guess'] })).toThrow(/leniencies/)
})
