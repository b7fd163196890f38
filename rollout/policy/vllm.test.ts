import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Message, ToolDefinition } from '../../protocol/conversation.ts'
import type { Expectation, PromptTurn } from './dialect.ts'
import { brokenReplies, JSON_HEADERS, jsonBytes, withValue } from './reply.testkit.ts'
import { vllm } from './vllm.ts'

const tool: ToolDefinition = {
  type: 'function',
  function: { name: 'add', description: 'Adds.', parameters: { type: 'object' } },
}
const turn: PromptTurn = {
  model: 'Qwen/Qwen3-4B',
  messages: [{ role: 'user', content: 'Moin!' }],
  tools: [tool],
  promptIds: null,
  sampling: { temperature: 0.7, top_p: 0.9, max_tokens: 64, seed: 12 },
  chatTemplateKwargs: { enable_thinking: false },
  stopTokenIds: [151645, 151643],
}
const bodyOf = (asked: PromptTurn) =>
  JSON.parse(new TextDecoder().decode(vllm.request(asked).body)) as Record<string, unknown>

describe('a chat request', () => {
  test('asks for token ids and the sampled token’s log-probability', () => {
    const { path, headers } = vllm.request(turn)
    expect(path).toBe('/v1/chat/completions')
    expect(headers['content-type']).toBe('application/json')
    expect(bodyOf(turn)).toEqual({
      model: 'Qwen/Qwen3-4B',
      messages: [{ role: 'user', content: 'Moin!' }],
      tools: [tool],
      tool_choice: 'none',
      max_tokens: 64,
      temperature: 0.7,
      top_p: 0.9,
      seed: 12,
      stop_token_ids: [151645, 151643],
      return_token_ids: true,
      skip_special_tokens: false,
      spaces_between_special_tokens: false,
      stream: false,
      logprobs: true,
      top_logprobs: 0,
      chat_template_kwargs: { enable_thinking: false },
    })
  })

  test('leaves out tools, stop ids and template arguments where there are none', () => {
    const bare = bodyOf({ ...turn, tools: [], stopTokenIds: [], chatTemplateKwargs: {} })
    for (const key of ['tools', 'tool_choice', 'stop_token_ids', 'chat_template_kwargs'])
      expect(bare).not.toHaveProperty(key)
  })

  test('gives calls the ids of their results, and their arguments as they were written', () => {
    const call = (name: string) => ({
      type: 'function' as const,
      function: { name, arguments: '{"10":1,"2":1.0}' },
    })
    const messages: Message[] = [
      { role: 'assistant', content: '', tool_calls: [call('add'), call('sub')] },
      { role: 'tool', name: 'add', tool_call_id: 'call_0_0', content: '3' },
    ]
    const [assistant] = bodyOf({ ...turn, messages }).messages as { tool_calls: unknown[] }[]
    expect(assistant?.tool_calls).toEqual([
      { id: 'call_0_0', ...call('add') },
      { id: 'call_0_1', ...call('sub') },
    ])
  })
})

test('token ids are sent to the completions endpoint', () => {
  const asked = { ...turn, promptIds: Int32Array.of(151644, 872) }
  expect(vllm.request(asked).path).toBe('/v1/completions')
  expect(bodyOf(asked)).toEqual({
    model: 'Qwen/Qwen3-4B',
    prompt: [151644, 872],
    max_tokens: 64,
    temperature: 0.7,
    top_p: 0.9,
    seed: 12,
    stop_token_ids: [151645, 151643],
    return_token_ids: true,
    skip_special_tokens: false,
    spaces_between_special_tokens: false,
    stream: false,
    logprobs: 0,
  })
})

const chatReply = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  model: 'Qwen/Qwen3-4B',
  prompt_token_ids: [151644, 872, 198],
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'Looking.', tool_calls: [] as unknown[] },
      finish_reason: 'stop',
      token_ids: [22464, 13, 151645],
      logprobs: {
        content: [
          { token: 'Looking', logprob: -0.5, top_logprobs: [] },
          { token: '.', logprob: -0.25, top_logprobs: [] },
          { token: '<|im_end|>', logprob: 0, top_logprobs: [] },
        ],
      },
    },
  ],
  usage: { prompt_tokens: 3, completion_tokens: 3, total_tokens: 6 },
}
const withTokens: Expectation = {
  tokens: true,
  promptIds: null,
  maxTokens: 64,
  // Qwen3: 151,643 entries and 26 added tokens. The model itself has 151,936 embeddings.
  knowsId: (id) => id < 151_669,
}
const withoutTokens: Expectation = { ...withTokens, tokens: false, knowsId: null }
const read = (reply: unknown, expected = withTokens) =>
  vllm.read(200, JSON_HEADERS, jsonBytes(reply), expected)

describe('a chat reply', () => {
  test('is read into ids, log-probabilities and the rendered prompt', () => {
    expect(read(chatReply)).toEqual({
      kind: 'completion',
      finish: 'stop',
      content: 'Looking.',
      promptIds: Int32Array.of(151644, 872, 198),
      ids: Int32Array.of(22464, 13, 151645),
      logprobs: Float32Array.of(-0.5, -0.25, 0),
      usage: { promptTokens: 3, completionTokens: 3 },
      version: null,
      versions: [{ version: null, count: 3 }],
    })
  })

  test.each(['length', 'abort', 'stop'])('finish reason %s is taken as it is', (reason) => {
    const reply = withValue(chatReply, 'choices.0.finish_reason', reason)
    expect(read(reply)).toMatchObject({ kind: 'completion', finish: reason })
  })

  test.each([
    ['12', 12],
    [12, 12],
    ['step-12', null],
    [null, null],
  ])('a weight version %j is the version %j', (told, version) => {
    expect(read({ ...chatReply, weight_version: told })).toMatchObject({ version })
  })

  test('with ids, what the engine’s parsers made of the text does not matter', () => {
    let reply = withValue(chatReply, 'choices.0.finish_reason', 'tool_calls')
    reply = withValue(reply, 'choices.0.message.tool_calls', [{ id: 'x' }])
    reply = withValue(reply, 'choices.0.message.content', null)
    expect(read(reply)).toMatchObject({ kind: 'completion', finish: 'stop', content: '' })
  })

  test('without a tokenizer the text is taken', () => {
    const bare = withValue(
      withValue(chatReply, 'choices.0.token_ids', undefined),
      'prompt_token_ids',
      null,
    )
    expect(read(bare, withoutTokens)).toMatchObject({
      kind: 'completion',
      content: 'Looking.',
      ids: null,
      logprobs: null,
      promptIds: null,
      versions: [],
      usage: { promptTokens: 3, completionTokens: 3 },
    })
  })
})

describe('a chat reply that is odd but right', () => {
  test.each([undefined, null, []])('an abort before the first token has ids %j', (none) => {
    let reply = withValue(chatReply, 'choices.0.finish_reason', 'abort')
    reply = withValue(reply, 'choices.0.token_ids', none)
    reply = withValue(reply, 'choices.0.logprobs', null)
    reply = withValue(reply, 'choices.0.message.content', null)
    reply = withValue(reply, 'usage.completion_tokens', 0)
    const empty = { kind: 'completion', finish: 'abort', usage: { completionTokens: 0 } }
    expect(read(reply)).toMatchObject({ ...empty, ids: new Int32Array(0) })
    expect(read(reply, withoutTokens)).toMatchObject({ ...empty, ids: null })
  })

  test('without a tokenizer, one token that is the end of turn is an empty answer', () => {
    const reply = withValue(chatReply, 'choices.0.message.content', '')
    expect(read(withValue(reply, 'usage.completion_tokens', 1), withoutTokens)).toMatchObject({
      kind: 'completion',
      content: '',
    })
  })

  test('rounding may bring a log-probability a hair above 0', () => {
    const reply = withValue(chatReply, 'choices.0.logprobs.content.1.logprob', 1e-5)
    expect(read(reply)).toMatchObject({ kind: 'completion' })
  })
})

describe('a chat reply that breaks the contract', () => {
  test.each<[path: string, value: unknown, field: string]>([
    ['choices', [], 'choices'],
    ['choices', undefined, 'choices'],
    ['choices', [chatReply.choices[0], chatReply.choices[0]], 'choices'],
    ['choices.0', null, 'choices'],
    ['choices.0.message', undefined, 'message'],
    ['choices.0.message.content', 7, 'content'],
    ['choices.0.token_ids', undefined, 'token_ids'],
    ['choices.0.token_ids', null, 'token_ids'],
    ['choices.0.token_ids', [22464, 13], 'token_ids'],
    ['choices.0.token_ids', [22464, 13, 1.5], 'token_ids'],
    ['choices.0.token_ids', [22464, 13, -1], 'token_ids'],
    ['choices.0.token_ids', [22464, 13, '151645'], 'token_ids'],
    ['choices.0.token_ids', [22464, 13, 2 ** 31], 'token_ids'],
    ['choices.0.token_ids', [22464, 151_669, 151645], 'token_ids'],
    ['choices.0.token_ids', [22464, 1e9, 151645], 'token_ids'],
    ['prompt_token_ids', [151644, 151_669, 198], 'prompt_token_ids'],
    ['choices.0.logprobs.content.1.logprob', 5, 'logprobs.content'],
    ['choices.0.logprobs.content.1.logprob', 2e-4, 'logprobs.content'],
    ['choices.0.logprobs', null, 'logprobs.content'],
    ['choices.0.logprobs.content', null, 'logprobs.content'],
    ['choices.0.logprobs.content', [{ logprob: -1 }], 'logprobs.content'],
    ['choices.0.logprobs.content.1.logprob', null, 'logprobs.content'],
    ['choices.0.logprobs.content.1.logprob', -1e300, 'logprobs.content'],
    ['choices.0.logprobs.content.1', 'x', 'logprobs.content'],
    ['prompt_token_ids', undefined, 'prompt_token_ids'],
    ['prompt_token_ids', [151644, 872], 'usage.prompt_tokens'],
    ['usage.completion_tokens', 31, 'token_ids'],
    ['usage.prompt_tokens', 4, 'usage.prompt_tokens'],
    ['usage.prompt_tokens', '3', 'usage.prompt_tokens'],
    ['choices.0.finish_reason', 'content_filter', 'finish_reason'],
  ])('%s = %j names %s', (path, value, field) => {
    expect(read(withValue(chatReply, path, value))).toMatchObject({
      kind: 'contract_violation',
      field,
    })
  })

  test.each(['stop', 'length'])('no sampled token, but finish reason %s', (finish) => {
    const choice = { finish_reason: finish, message: { content: '' } }
    const reply = { choices: [choice], usage: { prompt_tokens: 3, completion_tokens: 0 } }
    expect(read(reply, withoutTokens)).toMatchObject({
      kind: 'contract_violation',
      field: 'usage.completion_tokens',
    })
    const withIds = { ...choice, token_ids: [], logprobs: { content: [] } }
    expect(
      read({ ...reply, choices: [withIds], prompt_token_ids: [151644, 872, 198] }),
    ).toMatchObject({ kind: 'contract_violation', field: 'token_ids' })
  })

  test.each([null, undefined, ''])(
    'without a tokenizer, three sampled tokens with content %j name content and the parser flags',
    (content) => {
      const reply = withValue(chatReply, 'choices.0.message.content', content)
      const fault = read(reply, withoutTokens)
      expect(fault).toMatchObject({ kind: 'contract_violation', field: 'content' })
      for (const flag of ['--tool-call-parser', '--reasoning-parser'])
        expect(fault).toMatchObject({ message: expect.stringContaining(flag) })
    },
  )

  test('more ids than were asked for', () => {
    expect(read(chatReply, { ...withTokens, maxTokens: 2 })).toMatchObject({
      kind: 'contract_violation',
      field: 'token_ids',
      message: expect.stringContaining('at most 2'),
    })
  })

  test('markup that the engine’s tool parser swallowed: six ids of 31', () => {
    const reply = structuredClone(chatReply)
    const [choice] = reply.choices
    Object.assign(choice as object, {
      finish_reason: 'tool_calls',
      message: { role: 'assistant', content: null, tool_calls: [{ id: 'x' }] },
      token_ids: [1, 2, 3, 4, 5, 6],
      logprobs: { content: Array.from({ length: 6 }, () => ({ logprob: -1 })) },
    })
    reply.usage.completion_tokens = 31
    expect(read(reply)).toMatchObject({
      kind: 'contract_violation',
      field: 'token_ids',
      message: expect.stringMatching(/6 .*31 \(usage\.completion_tokens\)/),
    })
  })

  test.each<[path: string, value: unknown, field: string, flag: string]>([
    ['message.tool_calls', [{ id: 'x' }], 'tool_calls', '--tool-call-parser'],
    ['message.reasoning_content', 'hm', 'reasoning_content', '--reasoning-parser'],
    ['message.reasoning', 'hm', 'reasoning', '--reasoning-parser'],
    ['finish_reason', 'tool_calls', 'finish_reason', '--enable-auto-tool-choice'],
  ])('without a tokenizer, %s = %j names %s and the flag %s', (path, value, field, flag) => {
    expect(read(withValue(chatReply, `choices.0.${path}`, value), withoutTokens)).toMatchObject({
      kind: 'contract_violation',
      field,
      message: expect.stringContaining(flag),
    })
  })

  test('without a tokenizer, usage must be told', () => {
    expect(read(withValue(chatReply, 'usage', undefined), withoutTokens)).toMatchObject({
      kind: 'contract_violation',
      field: 'usage.prompt_tokens',
    })
  })
})

describe('a reply that is the machinery’s fault', () => {
  const bytes = (text: string) => new TextEncoder().encode(text)
  const html = { 'Content-Type': 'text/html; charset=utf-8' }

  test.each<[what: string, status: number, headers: Record<string, string>, body: Uint8Array]>([
    ['HTML with status 200', 200, html, bytes('<html>busy</html>')],
    ['HTML that says it is JSON', 200, JSON_HEADERS, bytes('<html>busy</html>')],
    ['JSON of another content type', 200, { 'content-type': 'text/plain' }, jsonBytes(chatReply)],
    ['a stream', 200, { 'content-type': 'text/event-stream' }, bytes('data: {}')],
    ['truncated JSON', 200, JSON_HEADERS, jsonBytes(chatReply).slice(0, -5)],
    ['an empty body', 200, JSON_HEADERS, new Uint8Array(0)],
    ['bytes that are no UTF-8', 200, JSON_HEADERS, Uint8Array.of(0x22, 0xff, 0x22)],
    ['an array', 200, JSON_HEADERS, bytes('[]')],
    ['a redirect', 302, JSON_HEADERS, jsonBytes(chatReply)],
    ['status 500', 500, JSON_HEADERS, bytes('{"error":"boom"}')],
    ['status 429', 429, {}, bytes('')],
    ['another status 400', 400, JSON_HEADERS, bytes('{"error":{"message":"bad seed"}}')],
    ['a body nested without end', 200, JSON_HEADERS, bytes('['.repeat(1_000_000))],
  ])('%s', (_, status, headers, body) => {
    expect(vllm.read(status, headers, body, withTokens)).toMatchObject({ kind: 'infra_backend' })
  })

  test.each([undefined, null])('a reply whose finish reason is %s ended too early', (reason) => {
    expect(read(withValue(chatReply, 'choices.0.finish_reason', reason))).toMatchObject({
      kind: 'infra_backend',
      field: 'finish_reason',
    })
  })

  test('a field nested 100,000 deep is named and not followed', () => {
    const text = JSON.stringify(withValue(chatReply, 'choices.0.finish_reason', 'HERE'))
    const deep = '['.repeat(100_000) + ']'.repeat(100_000)
    const body = bytes(text.replace('"HERE"', deep))
    expect(vllm.read(200, JSON_HEADERS, body, withTokens)).toMatchObject({
      kind: 'contract_violation',
      field: 'finish_reason',
    })
  })

  test('the problem text is told in 200 characters on one line', () => {
    const reply = vllm.read(503, {}, bytes(`over\n\n  loaded ${'x'.repeat(500)}`), withTokens)
    expect(reply).toMatchObject({
      message: `status 503 from the backend: over loaded ${'x'.repeat(188)}`,
    })
  })

  test('a content type may carry parameters and stand under any case of its name', () => {
    const headers = { 'CONTENT-TYPE': 'application/json; charset=utf-8' }
    const reply = vllm.read(200, headers, jsonBytes(chatReply), withTokens)
    expect(reply.kind).toBe('completion')
  })
})

test.each([
  "This model's maximum context length is 230 tokens. However, you requested 260 tokens",
  'The decoder prompt (length 4000) is longer than the maximum model length of 2048.',
  "max_tokens is too large: 100. This model's maximum context length is 230 tokens",
])('status 400 is a full context window where it says: %s', (message) => {
  const body = jsonBytes({ error: { message, type: 'BadRequestError', code: 400 } })
  expect(vllm.read(400, JSON_HEADERS, body, withTokens)).toMatchObject({ kind: 'context_length' })
})

const completionsReply = {
  id: 'cmpl-1',
  object: 'text_completion',
  model: 'Qwen/Qwen3-4B',
  choices: [
    {
      index: 0,
      text: 'Looking.',
      finish_reason: 'stop',
      token_ids: [22464, 13, 151645],
      prompt_token_ids: [151644, 872, 198],
      logprobs: { token_logprobs: [-0.5, -0.25, 0], tokens: ['a', 'b', 'c'] },
    },
  ],
  usage: { prompt_tokens: 3, completion_tokens: 3, total_tokens: 6 },
}
const sent: Expectation = { ...withTokens, promptIds: Int32Array.of(151644, 872, 198) }

describe('a completions reply', () => {
  test.each([[[151644, 872, 198]], [null]])('is read with prompt ids %j beside it', (echoed) => {
    const reply = withValue(completionsReply, 'choices.0.prompt_token_ids', echoed)
    expect(read(reply, sent)).toEqual({
      kind: 'completion',
      finish: 'stop',
      content: 'Looking.',
      promptIds: Int32Array.of(151644, 872, 198),
      ids: Int32Array.of(22464, 13, 151645),
      logprobs: Float32Array.of(-0.5, -0.25, 0),
      usage: { promptTokens: 3, completionTokens: 3 },
      version: null,
      versions: [{ version: null, count: 3 }],
    })
  })

  test.each<[path: string, value: unknown, field: string]>([
    ['choices.0.prompt_token_ids', [151644, 872, 199], 'prompt_token_ids'],
    ['choices.0.prompt_token_ids', [151644], 'usage.prompt_tokens'],
    ['choices.0.token_ids', undefined, 'token_ids'],
    ['choices.0.logprobs', null, 'logprobs.token_logprobs'],
    ['choices.0.logprobs.token_logprobs.1', null, 'logprobs.token_logprobs'],
    ['choices.0.logprobs.token_logprobs', [-1], 'logprobs.token_logprobs'],
    ['usage.prompt_tokens', 2, 'usage.prompt_tokens'],
  ])('with %s = %j breaks the contract in %s', (path, value, field) => {
    expect(read(withValue(completionsReply, path, value), sent)).toMatchObject({
      kind: 'contract_violation',
      field,
    })
  })
})

test('whatever comes is a completion or a fault', () => {
  const kinds = ['completion', 'contract_violation', 'infra_backend', 'context_length']
  const bodies = fc.oneof(brokenReplies(chatReply), brokenReplies(completionsReply))
  fc.assert(
    fc.property(
      bodies,
      fc.constantFrom(200, 200, 200, 400, 500),
      fc.constantFrom(JSON_HEADERS, {}),
      fc.constantFrom(withTokens, withoutTokens, sent),
      (body, status, headers, expected) => {
        const reply = vllm.read(status, headers, body, expected)
        expect(kinds).toContain(reply.kind)
        if (reply.kind === 'completion' && expected.tokens) {
          expect(reply.logprobs?.length).toBe(reply.ids?.length)
          expect(reply.usage.completionTokens).toBe(reply.ids?.length)
        }
      },
    ),
    { numRuns: 1_000 },
  )
})
