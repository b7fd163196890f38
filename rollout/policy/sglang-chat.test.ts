// SGLang's chat replies: ids, log-probabilities and versions are meta_info's, whatever its parsers did to the text.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Expectation } from './dialect.ts'
import { brokenReplies, JSON_HEADERS, jsonBytes, withValue } from './reply.testkit.ts'
import { sglang } from './sglang.ts'

const reply = {
  id: 'r1',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'Looking.', tool_calls: null },
      finish_reason: 'stop',
      prompt_token_ids: [151644, 872],
      meta_info: {
        finish_reason: { type: 'stop', matched: 151645 },
        prompt_tokens: 2,
        completion_tokens: 3,
        weight_version: '4',
        weight_versions: [
          { version: '3', start: 0, end: 1 },
          { version: '4', start: 1, end: 3 },
        ],
        output_token_logprobs: [
          [-0.5, 22464, 'Look'],
          [-0.25, 13, 'ing.'],
          [-0.01, 151645, '<|im_end|>'],
        ],
      },
    },
  ],
  usage: { prompt_tokens: 2, completion_tokens: 3 },
}
const withTokens: Expectation = { tokens: true, promptIds: null, maxTokens: 64, knowsId: null }
const textOnly: Expectation = { ...withTokens, tokens: false }
const read = (body: unknown, expectation = withTokens) =>
  sglang.read(200, JSON_HEADERS, jsonBytes(body), expectation)

test('a whole reply is read with the ids of prompt and answer, and the version of each', () => {
  expect(read(reply)).toEqual({
    kind: 'completion',
    finish: 'stop',
    promptIds: Int32Array.of(151644, 872),
    ids: Int32Array.of(22464, 13, 151645),
    logprobs: Float32Array.of(-0.5, -0.25, -0.01),
    content: 'Looking.',
    usage: { promptTokens: 2, completionTokens: 3 },
    version: 4,
    versions: [
      { version: 3, count: 1 },
      { version: 4, count: 2 },
    ],
  })
})

test('with the ids at hand, calls that a parser took out of the text change nothing', () => {
  const parsed = withValue(reply, 'choices.0.message', {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
  })
  expect(read(withValue(parsed, 'choices.0.finish_reason', 'tool_calls'))).toMatchObject({
    kind: 'completion',
    finish: 'stop',
    ids: Int32Array.of(22464, 13, 151645),
  })
  expect(read(parsed, textOnly)).toMatchObject({ kind: 'contract_violation', field: 'tool_calls' })
})

test.each<[path: string, value: unknown, kind: string, field: string]>([
  ['choices', [], 'contract_violation', 'choices'],
  ['choices.0.prompt_token_ids', undefined, 'contract_violation', 'prompt_token_ids'],
  ['choices.0.meta_info', undefined, 'contract_violation', 'meta_info'],
  ['choices.0.finish_reason', 'tool_calls', 'contract_violation', 'finish_reason'],
  ['choices.0.meta_info.finish_reason', null, 'infra_backend', 'finish_reason'],
  ['choices.0.meta_info.completion_tokens', 31, 'contract_violation', 'output_ids'],
  [
    'choices.0.meta_info.output_token_logprobs.1.0',
    null,
    'contract_violation',
    'meta_info.output_token_logprobs',
  ],
  ['choices.0.meta_info.prompt_tokens', 9, 'contract_violation', 'meta_info.prompt_tokens'],
])('%s = %j is %s and names %s', (path, value, kind, field) => {
  expect(read(withValue(reply, path, value))).toMatchObject({ kind, field })
})

test('without a tokenizer the text is taken, and nothing may be missing from it', () => {
  expect(read(reply, textOnly)).toMatchObject({ content: 'Looking.', ids: null, logprobs: null })
  const silent = withValue(reply, 'choices.0.message.content', '')
  expect(read(silent, textOnly)).toMatchObject({ kind: 'contract_violation', field: 'content' })
})

test('never throws for whatever bytes come', () => {
  fc.assert(
    fc.property(brokenReplies(reply), (body) => {
      sglang.read(200, JSON_HEADERS, body, withTokens)
    }),
  )
})
