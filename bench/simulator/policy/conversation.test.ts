import { expect, test } from 'vitest'
import { argumentsKey, readPrompt, takeApart } from './conversation.ts'

const PROMPT = [
  '<|im_start|>system\nYou help.<|im_end|>\n',
  '<|im_start|>user\nCount the boxes.<|im_end|>\n',
  '<|im_start|>assistant\n<tool_call>\n{"name": "count", "arguments": {"row": 1}}\n</tool_call><|im_end|>\n',
  '<|im_start|>user\n<tool_response>\n42 boxes\n</tool_response><|im_end|>\n',
  '<|im_start|>assistant\n',
].join('')

test('a prompt tells the first user message and the finished assistant turns', () => {
  const { firstUser, turns, partial } = readPrompt(PROMPT)
  expect(firstUser).toBe('Count the boxes.')
  expect(turns).toEqual(['<tool_call>\n{"name": "count", "arguments": {"row": 1}}\n</tool_call>'])
  expect(partial).toBe('')
})

test('what stands in the open assistant turn is its partial text, not a turn', () => {
  const { turns, partial } = readPrompt(`${PROMPT}<think>\nLet me`)
  expect(turns).toHaveLength(1)
  expect(partial).toBe('<think>\nLet me')
})

test('text that is no ChatML has neither messages nor turns', () => {
  const { firstUser, turns, partial } = readPrompt('Once upon a time')
  expect({ firstUser, turns, partial }).toEqual({ firstUser: '', turns: [], partial: '' })
})

test('a turn comes apart into content and the calls of both tag forms, without its reasoning', () => {
  const turn = [
    '<think>\nDraft: <tool_call>\n{"name": "draft", "arguments": {}}\n</tool_call>\n</think>\n\nBoth.\n',
    '<tool_call>\n{"name": "a", "arguments": {"x": 1}}\n</tool_call>\n',
    '<tool_call>\n<function=b>\n<parameter=y>\nTrue\n</parameter>\n</function>\n</tool_call>',
  ].join('')
  const { content, calls } = takeApart(turn)
  expect(content).toBe('Both.')
  expect(calls.map(({ name, arguments: values }) => [name, values])).toEqual([
    ['a', { x: 1 }],
    ['b', { y: 'True' }],
  ])
})

test('a block that cannot be read is no call', () => {
  expect(takeApart('<tool_call>\n{"name": "a", "arguments": {\n</tool_call>').calls).toEqual([])
  expect(takeApart('<tool_call>\n{"name": "a"}\n</tool_call>').calls).toEqual([])
})

test('arguments compare across the tag forms, where every value is text', () => {
  const json = argumentsKey({ flag: true, count: 3, list: [1, 'a'], none: null })
  const tagged = argumentsKey({ count: '3', flag: 'True', list: '[1, "a"]', none: 'null' })
  expect(tagged).toBe(json)
  expect(argumentsKey({ count: 4 })).not.toBe(argumentsKey({ count: 3 }))
})
