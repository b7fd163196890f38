import { describe, expect, test } from 'vitest'
import { answerRender, parseRenderLine } from './answer-render.ts'
import { createChatModel } from './qwen-chat-model.ts'
import { qwen3Files } from './qwen3.testkit.ts'

const model = createChatModel(qwen3Files())

describe('a line of paddock render', () => {
  test('gives the text and its ids', () => {
    const line = parseRenderLine(
      '{"id": "a", "messages": [{"role": "user", "content": "Moin!"}], "add_generation_prompt": true, "enable_thinking": false}',
    )
    const text = '<|im_start|>user\nMoin!<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n'
    const answer = answerRender(model, line)
    expect(answer).toEqual({ id: 'a', text, ids: [...model.encode(text)] })
  })

  test('ends without a generation prompt unless it asks for one', () => {
    const line = parseRenderLine('{"messages": [{"role": "user", "content": "Moin!"}]}')
    expect(answerRender(model, line)).toMatchObject({
      id: null,
      text: '<|im_start|>user\nMoin!<|im_end|>\n',
    })
  })

  test('writes arguments in the order and spelling of the line', () => {
    const call =
      '{"type": "function", "function": {"name": "f", "arguments": {"10": 1.0, "2": [1, {"b": 0, "1": 1e5}]}}}'
    const line = parseRenderLine(
      `{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "", "tool_calls": [${call}]}]}`,
    )
    expect(answerRender(model, line)).toMatchObject({
      text: expect.stringContaining('"arguments": {"10": 1.0, "2": [1, {"b": 0, "1": 100000.0}]}}'),
    })
  })

  test('names the folder of its model', () => {
    const line = parseRenderLine('{"id": "a", "model_dir": "models/q", "messages": []}')
    expect(line.modelDir).toBe('models/q')
    expect([...line.variables.keys()]).toEqual(['messages'])
  })

  test('answers with the error where the template raises', () => {
    const line = parseRenderLine(
      '{"id": "a", "messages": [{"role": "assistant", "content": null}]}',
    )
    expect(answerRender(model, line)).toEqual({
      id: 'a',
      error: expect.stringContaining('the chat template refuses this conversation'),
    })
  })

  test.each([
    ['{"messages": [', 'malformed_json'],
    ['[]', 'invalid_request'],
    ['{"messages": {}}', 'invalid_request'],
  ])('%s is refused as %s', (text, code) => {
    expect(() => parseRenderLine(text)).toThrow(expect.objectContaining({ code }))
  })
})
