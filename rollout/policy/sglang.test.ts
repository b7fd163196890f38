import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ToolDefinition } from '../../protocol/conversation.ts'
import type { Expectation, PromptTurn } from './dialect.ts'
import { dialects } from './dialects.ts'
import { brokenReplies, JSON_HEADERS, jsonBytes, withValue } from './reply.testkit.ts'
import { sglang } from './sglang.ts'

const turn: PromptTurn = {
  model: 'Qwen/Qwen3-4B',
  messages: [{ role: 'user', content: 'Moin!' }],
  tools: [],
  promptIds: Int32Array.of(151644, 872, 198),
  sampling: { temperature: 0.7, top_p: 0.9, max_tokens: 64, seed: 12 },
  chatTemplateKwargs: {},
  stopTokenIds: [151645, 151643],
}

describe('a request', () => {
  test('sends token ids and asks for the log-probabilities of what is sampled', () => {
    const { path, body } = sglang.request(turn)
    expect(path).toBe('/generate')
    expect(JSON.parse(new TextDecoder().decode(body))).toEqual({
      input_ids: [151644, 872, 198],
      sampling_params: {
        max_new_tokens: 64,
        temperature: 0.7,
        top_p: 0.9,
        sampling_seed: 12,
        stop_token_ids: [151645, 151643],
        skip_special_tokens: false,
        spaces_between_special_tokens: false,
        no_stop_trim: true,
      },
      return_logprob: true,
      logprob_start_len: -1,
      stream: false,
    })
  })

  test('without token ids asks the chat endpoint, which gives them back', () => {
    const tool = { type: 'function', function: { name: 'add', description: '', parameters: {} } }
    const chat = { ...turn, promptIds: null, tools: [tool as ToolDefinition], stream: true }
    const { path, body } = sglang.request(chat)
    expect(path).toBe('/v1/chat/completions')
    expect(JSON.parse(new TextDecoder().decode(body))).toEqual({
      model: 'Qwen/Qwen3-4B',
      messages: [{ role: 'user', content: 'Moin!' }],
      // No tool_choice: `none` would leave the tools out of the prompt.
      tools: [tool],
      max_tokens: 64,
      temperature: 0.7,
      top_p: 0.9,
      seed: 12,
      stop_token_ids: [151645, 151643],
      skip_special_tokens: false,
      no_stop_trim: false,
      logprobs: true,
      return_meta_info: true,
      return_prompt_token_ids: true,
      // SGLang refuses to stream what is asked for here.
      stream: false,
    })
  })

  test('each dialect says in which modes it is asked', () => {
    expect(dialects.sglang.modes).toEqual(['chat', 'tokens'])
    expect(dialects['vllm-generate'].modes).toEqual(['tokens'])
    expect(dialects.vllm.modes).toEqual(['chat', 'tokens'])
  })
})

const reply = {
  text: 'Looking.',
  output_ids: [22464, 13, 151645],
  meta_info: {
    id: 'r1',
    finish_reason: { type: 'stop', matched: 151645 },
    prompt_tokens: 3,
    completion_tokens: 3,
    cached_tokens: 0,
    weight_version: '7',
    output_token_logprobs: [
      [-0.5, 22464, null],
      [-0.25, 13, '.'],
      [0, 151645],
    ],
  },
}
const expected: Expectation = {
  tokens: true,
  promptIds: Int32Array.of(151644, 872, 198),
  maxTokens: 64,
  knowsId: (id) => id < 151_669,
}
const read = (value: unknown, asked = expected) =>
  sglang.read(200, JSON_HEADERS, jsonBytes(value), asked)
const completion = {
  kind: 'completion',
  finish: 'stop',
  content: 'Looking.',
  promptIds: Int32Array.of(151644, 872, 198),
  ids: Int32Array.of(22464, 13, 151645),
  logprobs: Float32Array.of(-0.5, -0.25, 0),
  usage: { promptTokens: 3, completionTokens: 3 },
  version: 7,
  // Stamped when the request finished (sglang's tokenizer manager), so not known of every id.
  versions: [{ version: 7, count: 3, approximate: true }],
}

describe('a reply', () => {
  test('is read into ids, log-probabilities and version', () => {
    expect(read(reply)).toEqual(completion)
  })

  test('of an older release has its ids in the log-probabilities alone', () => {
    expect(read(withValue(reply, 'output_ids', undefined))).toEqual(completion)
  })

  test('across a weight update tells which version made which ids', () => {
    const spans = [
      { version: '6', start: 0, end: 2 },
      { version: '7', start: 2, end: 3 },
    ]
    expect(read(withValue(reply, 'meta_info.weight_versions', spans))).toEqual({
      ...completion,
      versions: [
        { version: 6, count: 2 },
        { version: 7, count: 1 },
      ],
    })
  })

  test.each(['length', 'abort'])('of finish type %s is taken as it is', (type) => {
    const value = withValue(reply, 'meta_info.finish_reason', { type })
    expect(read(value)).toMatchObject({ kind: 'completion', finish: type })
  })

  test('that was aborted before its first token is an empty completion', () => {
    const value = {
      text: '',
      output_ids: [],
      meta_info: { finish_reason: { type: 'abort' }, prompt_tokens: 3, completion_tokens: 0 },
    }
    expect(read(value)).toMatchObject({
      kind: 'completion',
      finish: 'abort',
      ids: new Int32Array(0),
    })
  })

  test('keeps an end of text in mid-answer that its text leaves out', () => {
    let value = withValue(reply, 'output_ids', [22464, 151643, 151645])
    value = withValue(value, 'meta_info.output_token_logprobs.1', [-0.25, 151643, null])
    expect(read(value)).toMatchObject({
      content: 'Looking.',
      ids: Int32Array.of(22464, 151643, 151645),
    })
  })
})

describe('a reply that breaks the contract', () => {
  const logprobs = 'meta_info.output_token_logprobs'

  test.each<[path: string, value: unknown, field: string]>([
    ['meta_info', undefined, 'meta_info'],
    [logprobs, undefined, logprobs],
    [logprobs, null, logprobs],
    [`${logprobs}.1`, [null, 13, null], logprobs],
    [`${logprobs}.1`, [-0.25], logprobs],
    [`${logprobs}.1`, [-0.25, 'x'], logprobs],
    [`${logprobs}.1`, 5, logprobs],
    [`${logprobs}.1`, [-0.25, 14, null], 'output_ids'],
    ['output_ids', [22464, 13], 'output_ids'],
    ['output_ids', 'x', 'output_ids'],
    ['meta_info.completion_tokens', 31, 'output_ids'],
    ['meta_info.prompt_tokens', 2, 'meta_info.prompt_tokens'],
    ['meta_info.prompt_tokens', -1, 'meta_info.prompt_tokens'],
    ['meta_info.finish_reason', { type: 'tool_calls' }, 'finish_reason'],
    [
      'meta_info.weight_versions',
      [{ version: '6', start: 0, end: 2 }],
      'meta_info.weight_versions',
    ],
    [
      'meta_info.weight_versions',
      [{ version: '6', start: 1, end: 3 }],
      'meta_info.weight_versions',
    ],
    ['meta_info.weight_versions', ['6'], 'meta_info.weight_versions'],
    ['text', 5, 'text'],
    [`${logprobs}.1`, [0.5, 13, null], logprobs],
  ])('%s = %j names %s', (path, value, field) => {
    expect(read(withValue(reply, path, value))).toMatchObject({ kind: 'contract_violation', field })
  })

  test('no sampled token, where it did not abort', () => {
    let value = withValue(reply, 'output_ids', [])
    value = withValue(value, logprobs, [])
    value = withValue(value, 'meta_info.completion_tokens', 0)
    value = withValue(value, 'text', '')
    expect(read(value)).toMatchObject({ kind: 'contract_violation', field: 'output_ids' })
  })

  test.each([151_669, 200_000, 1e9])('id %d, which the tokenizer lacks', (id) => {
    let value = withValue(reply, 'output_ids.1', id)
    value = withValue(value, `${logprobs}.1.1`, id)
    expect(read(value)).toMatchObject({
      kind: 'contract_violation',
      field: 'output_ids',
      message: expect.stringContaining(String(id)),
    })
  })

  test('more ids than were asked for', () => {
    expect(read(reply, { ...expected, maxTokens: 2 })).toMatchObject({
      kind: 'contract_violation',
      field: 'output_ids',
    })
  })
})

describe('a reply that is no answer', () => {
  test.each([undefined, null])('with finish reason %s ended too early', (reason) => {
    expect(read(withValue(reply, 'meta_info.finish_reason', reason))).toMatchObject({
      kind: 'infra_backend',
      field: 'finish_reason',
    })
  })

  test.each([
    [503, 'server is shutting down', 'infra_backend'],
    [400, 'The input (240 tokens) is longer than the context length (230)', 'context_length'],
    [400, 'bad regex', 'infra_backend'],
  ])('aborted with status %s (%s) is %s', (status_code, message, kind) => {
    const reason = { type: 'abort', message, status_code }
    expect(read(withValue(reply, 'meta_info.finish_reason', reason))).toMatchObject({ kind })
  })

  test.each([
    "The input (240 tokens) is longer than the model's context length (230 tokens).",
    "Requested token count exceeds the model's maximum context length of 230 tokens.",
  ])('status 400 is a full context window where it says: %s', (message) => {
    const body = jsonBytes({ error: { message } })
    expect(sglang.read(400, JSON_HEADERS, body, expected)).toMatchObject({ kind: 'context_length' })
  })
})

test('whatever comes is a completion or a fault', () => {
  const kinds = ['completion', 'contract_violation', 'infra_backend', 'context_length']
  fc.assert(
    fc.property(
      brokenReplies(reply),
      fc.constantFrom(200, 200, 200, 400, 500),
      fc.constantFrom(JSON_HEADERS, {}),
      (body, status, headers) => {
        const outcome = sglang.read(status, headers, body, expected)
        expect(kinds).toContain(outcome.kind)
        if (outcome.kind !== 'completion') return
        expect(outcome.logprobs?.length).toBe(outcome.ids?.length)
        const counted = outcome.versions.reduce((sum, { count }) => sum + count, 0)
        expect(counted).toBe(outcome.ids?.length)
      },
    ),
    { numRuns: 1_000 },
  )
})
