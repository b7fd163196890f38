// A streamed reply is read as the same reply that came whole; one that does not come to its end is refused.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Dialect, Expectation } from './dialect.ts'
import { JSON_HEADERS, jsonBytes } from './reply.testkit.ts'
import { sglang } from './sglang.ts'
import { vllm } from './vllm.ts'
import { vllmGenerate } from './vllm-generate.ts'

const STREAM = { 'content-type': 'text/event-stream; charset=utf-8' }
const promptIds = Int32Array.of(151644, 872)
const chat: Expectation = {
  tokens: true,
  promptIds: null,
  maxTokens: 1000,
  knowsId: null,
  stream: true,
}
const tokens: Expectation = { ...chat, promptIds }

const sse = (events: unknown[], end = 'data: [DONE]\n\n') =>
  new TextEncoder().encode(events.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('') + end)
const readStream = (dialect: Dialect, body: Uint8Array, expect: Expectation) =>
  dialect.read(200, STREAM, body, expect)

/** Sampled tokens in groups, each group one event. */
const sampled = fc
  .array(
    fc.array(
      fc.record({
        id: fc.nat(150_000),
        logprob: fc.double({ min: -50, max: -1e-6, noNaN: true }),
        text: fc.string({ unit: 'grapheme', maxLength: 3 }),
      }),
      { maxLength: 4 },
    ),
    { minLength: 1, maxLength: 12 },
  )
  .filter((groups) => groups.flat().length > 0)
type Groups = typeof sampled extends fc.Arbitrary<infer T> ? T : never
const textOf = (group: Groups[number]) => group.map(({ text }) => text).join('')
const usageOf = (groups: Groups) => ({
  prompt_tokens: promptIds.length,
  completion_tokens: groups.flat().length,
})
const last = (index: number, groups: Groups) =>
  index === groups.length - 1 ? { finish_reason: 'stop' } : { finish_reason: null }

const contentLogprobs = (group: Groups[number]) => ({
  content: group.map(({ id, logprob }) => ({ token: `token_id:${id}`, logprob })),
})

const forms: [
  name: string,
  dialect: Dialect,
  expect: Expectation,
  write: (g: Groups) => unknown[],
][] = [
  [
    'vLLM chat',
    vllm,
    chat,
    (groups) => [
      {
        prompt_token_ids: [...promptIds],
        choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }],
      },
      ...groups.map((group, index) => ({
        choices: [
          {
            index: 0,
            delta: { content: textOf(group) },
            logprobs: contentLogprobs(group),
            token_ids: group.map(({ id }) => id),
            ...last(index, groups),
          },
        ],
      })),
      { choices: [], usage: usageOf(groups) },
    ],
  ],
  [
    'vLLM completions',
    vllm,
    tokens,
    (groups) => [
      ...groups.map((group, index) => ({
        choices: [
          {
            index: 0,
            text: textOf(group),
            logprobs: { token_logprobs: group.map(({ logprob }) => logprob) },
            token_ids: group.map(({ id }) => id),
            ...(index === 0 && { prompt_token_ids: [...promptIds] }),
            ...last(index, groups),
          },
        ],
      })),
      { choices: [], usage: usageOf(groups) },
    ],
  ],
  [
    'vLLM generate',
    vllmGenerate,
    tokens,
    (groups) =>
      groups.map((group, index) => ({
        request_id: 'r',
        choices: [
          {
            index: 0,
            logprobs: contentLogprobs(group),
            token_ids: group.map(({ id }) => id),
            ...last(index, groups),
          },
        ],
      })),
  ],
  ...(['cumulative', 'incremental'] as const).map((kind): (typeof forms)[number] => [
    `SGLang ${kind}`,
    sglang,
    tokens,
    (groups) =>
      groups.map((group, index) => {
        const soFar = groups.slice(0, index + 1).flat()
        const told = kind === 'cumulative' ? soFar : group
        return {
          text: textOf(told),
          output_ids: told.map(({ id }) => id),
          meta_info: {
            finish_reason: index === groups.length - 1 ? { type: 'stop' } : null,
            prompt_tokens: promptIds.length,
            completion_tokens: soFar.length,
            weight_version: '3',
            output_token_logprobs: told.map(({ id, logprob }) => [logprob, id, null]),
          },
        }
      }),
  ]),
]

describe.each(forms)('%s', (_name, dialect, expectation, write) => {
  test('holds what was sampled, in whatever pieces it came', () => {
    fc.assert(
      fc.property(sampled, (groups) => {
        const all = groups.flat()
        const read = readStream(dialect, sse(write(groups)), expectation)
        expect(read).toMatchObject({ kind: 'completion', finish: 'stop' })
        if (read.kind !== 'completion') return
        expect([...(read.ids ?? [])]).toEqual(all.map(({ id }) => id))
        expect([...(read.logprobs ?? [])]).toEqual(all.map(({ logprob }) => Math.fround(logprob)))
        expect([...(read.promptIds ?? [])]).toEqual([...promptIds])
        if (dialect !== vllmGenerate) expect(read.content).toBe(textOf(all))
      }),
    )
  })

  test('is refused where it ends before [DONE], wherever it was cut', () => {
    fc.assert(
      fc.property(sampled, fc.double({ min: 0, max: 1, noNaN: true }), (groups, share) => {
        const whole = sse(write(groups), '')
        const cut = whole.slice(0, Math.floor(whole.length * share))
        expect(readStream(dialect, cut, expectation).kind).toBe('infra_backend')
      }),
    )
  })

  test('without a finish reason is refused, however clean its end', () => {
    const groups = [[{ id: 1, logprob: -1, text: 'a' }], [{ id: 2, logprob: -1, text: 'b' }]]
    const events = write(groups).map((event) =>
      JSON.parse(
        JSON.stringify(event).replace(/"finish_reason":("stop"|\{[^}]*\})/, '"finish_reason":null'),
      ),
    )
    expect(readStream(dialect, sse(events), expectation)).toMatchObject({
      kind: 'infra_backend',
      field: 'finish_reason',
    })
  })

  test('that was not asked for is refused as what it is', () => {
    const groups = [[{ id: 1, logprob: -1, text: 'a' }]]
    expect(
      readStream(dialect, sse(write(groups)), { ...expectation, stream: false }),
    ).toMatchObject({
      kind: 'infra_backend',
      field: 'content-type',
    })
  })

  test('with an error of the engine in it is refused with its words', () => {
    const failed = { error: { message: 'CUDA out of memory', code: 500 } }
    const read = readStream(dialect, sse([failed]), expectation)
    expect(read).toMatchObject({ kind: 'infra_backend' })
    expect(read.kind !== 'completion' && read.message).toContain('CUDA out of memory')
    const long = { error: { message: "the model's maximum context length is 10 tokens" } }
    expect(readStream(dialect, sse([long]), expectation).kind).toBe('context_length')
  })

  test('never throws for whatever bytes come', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue(), { maxLength: 4 }), (events) => {
        readStream(dialect, sse(events), expectation)
      }),
    )
  })
})

test('comments that keep the connection alive, and lines that end in CRLF, change nothing', () => {
  const event = {
    text: 'a',
    output_ids: [1],
    meta_info: {
      finish_reason: { type: 'stop' },
      prompt_tokens: 2,
      completion_tokens: 1,
      output_token_logprobs: [[-1, 1, null]],
    },
  }
  const text = `: ping\r\n\r\nevent: message\r\ndata: ${JSON.stringify(event)}\r\n\r\ndata:[DONE]\r\n\r\n`
  expect(readStream(sglang, new TextEncoder().encode(text), tokens).kind).toBe('completion')
})

test('a backend that answers whole although a stream was asked for is heard', () => {
  const whole = {
    choices: [
      { text: 'a', token_ids: [1], logprobs: { token_logprobs: [-1] }, finish_reason: 'stop' },
    ],
    usage: { prompt_tokens: 2, completion_tokens: 1 },
  }
  expect(vllm.read(200, JSON_HEADERS, jsonBytes(whole), tokens).kind).toBe('completion')
})
