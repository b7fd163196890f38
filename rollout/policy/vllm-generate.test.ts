// vLLM's token generation: what is asked, and replies whose log-probabilities are of other tokens.
import { expect, test } from 'vitest'
import type { Expectation, PromptTurn } from './dialect.ts'
import { JSON_HEADERS, jsonBytes, withValue } from './reply.testkit.ts'
import { readTokenized, tokenizeRequest } from './tokenize.ts'
import { vllmGenerate } from './vllm-generate.ts'

const turn: PromptTurn = {
  model: 'Qwen/Qwen3-4B',
  messages: [{ role: 'user', content: 'Moin!' }],
  tools: [],
  promptIds: Int32Array.of(151644, 872, 198),
  sampling: { temperature: 0.7, top_p: 0.9, max_tokens: 64, seed: 12 },
  chatTemplateKwargs: { enable_thinking: false },
  stopTokenIds: [151645],
}
const bodyOf = ({ body }: { body: Uint8Array }) => JSON.parse(new TextDecoder().decode(body))

test('a request sends token ids, and the sampling parameters apart', () => {
  const request = vllmGenerate.request({ ...turn, stream: true })
  expect(request.path).toBe('/inference/v1/generate')
  expect(bodyOf(request)).toEqual({
    model: 'Qwen/Qwen3-4B',
    token_ids: [151644, 872, 198],
    sampling_params: {
      max_tokens: 64,
      temperature: 0.7,
      top_p: 0.9,
      seed: 12,
      stop_token_ids: [151645],
      logprobs: 0,
      skip_special_tokens: false,
      spaces_between_special_tokens: false,
    },
    stream: true,
    stream_options: { include_usage: true },
  })
  expect(() => vllmGenerate.request({ ...turn, promptIds: null })).toThrow(
    expect.objectContaining({ code: 'invalid_config', path: 'policy.mode' }),
  )
})

const expectation: Expectation = {
  tokens: true,
  promptIds: turn.promptIds,
  maxTokens: 64,
  knowsId: (id) => id < 151_700,
}
const entry = (id: number, logprob: number) => ({ token: `token_id:${id}`, logprob })
const reply = {
  request_id: 'generate-tokens-1',
  choices: [
    {
      index: 0,
      logprobs: { content: [entry(22464, -0.5), entry(151645, -0.01)] },
      finish_reason: 'stop',
      token_ids: [22464, 151645],
    },
  ],
}
const read = (body: unknown) => vllmGenerate.read(200, JSON_HEADERS, jsonBytes(body), expectation)

test('a reply of an early release, without usage, is counted by its ids', () => {
  expect(read(reply)).toMatchObject({
    kind: 'completion',
    finish: 'stop',
    ids: Int32Array.of(22464, 151645),
    usage: { promptTokens: 3, completionTokens: 2 },
  })
})

test.each([
  ['choices.0.logprobs.content.1', entry(151643, -0.01), 'logprobs.content', '151643'],
  ['choices.0.logprobs.content.0.logprob', -9999, 'logprobs.content', '-9999'],
  ['choices.0.logprobs', null, 'logprobs.content', 'null'],
  ['choices.0.token_ids', [22464], 'token_ids', '1'],
])('%s = %j names %s', (path, value, field, word) => {
  const broken = read(withValue({ ...reply, usage: { completion_tokens: 2 } }, path, value))
  expect(broken).toMatchObject({ kind: 'contract_violation', field })
  expect(broken.kind !== 'completion' && broken.message).toContain(word)
})

test('the first prompt is asked for with messages, tools and the template’s arguments', () => {
  const request = tokenizeRequest(turn)
  expect(request.path).toBe('/tokenize')
  expect(bodyOf(request)).toEqual({
    model: 'Qwen/Qwen3-4B',
    messages: turn.messages,
    add_generation_prompt: true,
    chat_template_kwargs: { enable_thinking: false },
  })
})

test.each<[what: string, body: object, kind: string]>([
  ['ids', { count: 2, tokens: [1, 2] }, 'prompt'],
  ['fewer ids than told', { count: 3, tokens: [1, 2] }, 'contract_violation'],
  ['no ids', { count: 0, tokens: [] }, 'contract_violation'],
  ['an id that the vocabulary lacks', { count: 1, tokens: [999_999] }, 'contract_violation'],
  ['text', { count: 1, tokens: ['a'] }, 'contract_violation'],
  ['nothing', {}, 'contract_violation'],
])('a prompt of %s is a %s', (_what, body, kind) => {
  expect(readTokenized(200, JSON_HEADERS, jsonBytes(body), expectation.knowsId).kind).toBe(kind)
})
