import { beforeAll, describe, expect, test } from 'vitest'
import { defaultModelDir, loadModel, type Model } from '../policy/model.ts'
import {
  AFTER_CALL,
  ASKED,
  CALL,
  type ChatChoice,
  type ChatReply,
  type Client,
  RAW,
  simulatorsOfThisFile,
  TOOLS,
} from '../simulator.testkit.ts'

/** `<|im_end|>` of the Qwen3 vocabulary. */
const IM_END = 151_645

const start = simulatorsOfThisFile()
let model: Model
let simulator: Client

beforeAll(async () => {
  model = await loadModel(defaultModelDir())
  simulator = await start()
}, 30_000)

const chat = (fields: object) => simulator.chat(fields)
const choiceOf = async (fields: object): Promise<ChatChoice> => (await chat(fields)).choices[0]

describe('POST /v1/chat/completions', () => {
  test('a reply has the fields that vLLM sends', async () => {
    const reply = await chat({ temperature: 0, logprobs: true, top_logprobs: 2, tools: TOOLS })
    const ids = reply.choices[0].token_ids
    expect(reply).toEqual({
      id: expect.stringMatching(/^chatcmpl-/),
      object: 'chat.completion',
      created: expect.any(Number),
      model: 'qwen3-8b',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: CALL,
            refusal: null,
            annotations: null,
            audio: null,
            function_call: null,
            tool_calls: [],
            reasoning_content: null,
          },
          logprobs: { content: expect.any(Array) },
          finish_reason: 'stop',
          stop_reason: null,
          token_ids: ids,
        },
      ],
      service_tier: null,
      system_fingerprint: null,
      usage: {
        prompt_tokens: reply.prompt_token_ids.length,
        total_tokens: reply.prompt_token_ids.length + ids.length,
        completion_tokens: ids.length,
        prompt_tokens_details: null,
      },
      prompt_logprobs: null,
      prompt_token_ids: expect.any(Array),
      kv_transfer_params: null,
    })
  })

  test('ids end with the end of turn, and decode to the content before it', async () => {
    const { token_ids: ids, message } = await choiceOf({ temperature: 0 })
    expect(ids.at(-1)).toBe(IM_END)
    expect(model.decode(ids.slice(0, -1))).toBe(message.content)
  })

  test('the prompt is the rendered conversation with its tools', async () => {
    const prompt = model.decode((await chat({ tools: TOOLS })).prompt_token_ids)
    const end = '<|im_start|>user\nHow many boxes?<|im_end|>\n<|im_start|>assistant\n'
    expect(prompt).toContain('{"type": "function", "function": {"name": "stock_get"')
    expect(prompt.endsWith(end)).toBe(true)
    const closed = await chat({ chat_template_kwargs: { enable_thinking: false } })
    expect(model.decode(closed.prompt_token_ids)).toBe(`${end}<think>\n\n</think>\n\n`)
  })

  test('each sampled id has its token, bytes and log-probability, and the alternatives asked for', async () => {
    const choice = await choiceOf({ seed: 5, logprobs: true, top_logprobs: 2 })
    const { content } = choice.logprobs
    expect(content.map(({ token }) => token)).toEqual(
      choice.token_ids.map((id) => model.decode([id])),
    )
    for (const { token, bytes, logprob, top_logprobs: top } of content) {
      expect(Buffer.from(bytes).toString()).toBe(token)
      expect(logprob).toBeLessThan(0)
      expect(Number.isFinite(logprob)).toBe(true)
      expect(top).toHaveLength(2)
      expect(top[0]?.logprob).toBeGreaterThanOrEqual(top[1]?.logprob ?? 0)
    }
  })

  test('what is not asked for is null', async () => {
    const { body } = await simulator.post<ChatReply>('/v1/chat/completions', { messages: ASKED })
    expect(body.prompt_token_ids).toBeNull()
    expect(body.choices[0].token_ids).toBeNull()
    expect(body.choices[0].logprobs).toBeNull()
  })

  test('tokens can be named by their ids', async () => {
    const choice = await choiceOf({ logprobs: true, return_tokens_as_token_ids: true })
    const names = choice.logprobs.content.map(({ token }) => token)
    expect(names).toEqual(choice.token_ids.map((id) => `token_id:${id}`))
  })

  test('max_tokens cuts the very same completion, with finish length', async () => {
    const whole = (await choiceOf({ seed: 5 })).token_ids
    const cut = await chat({ seed: 5, max_tokens: 10 })
    expect(cut.choices[0].token_ids).toEqual(whole.slice(0, 10))
    expect(cut.choices[0].finish_reason).toBe('length')
    expect(cut.usage.completion_tokens).toBe(10)
    const exact = await choiceOf({ seed: 5, max_tokens: whole.length })
    expect(exact.finish_reason).toBe('stop')
  })

  test('a stop string ends the turn, named and left out of the text', async () => {
    const choice = await choiceOf({ messages: RAW, stop: [' three'] })
    expect(choice).toMatchObject({ finish_reason: 'stop', stop_reason: ' three' })
    expect(choice.message.content).toBe('one two')
    expect(model.decode(choice.token_ids)).toBe('one two three')
  })

  test('a stop id ends the turn, named and sampled', async () => {
    const three = model.encode('one two three')[2]
    const choice = await choiceOf({ messages: RAW, stop_token_ids: [three] })
    expect(choice).toMatchObject({ finish_reason: 'stop', stop_reason: three })
    expect(choice.token_ids.at(-1)).toBe(three)
    expect(choice.message.content).toBe('one two')
  })
})

describe('stream: true', () => {
  interface Chunk {
    prompt_token_ids?: number[]
    choices: {
      delta: { content: string }
      token_ids?: number[]
      logprobs: { content: unknown[] } | null
      finish_reason: string | null
    }[]
    usage?: object
  }

  async function readEvents(fields: object): Promise<string[]> {
    const response = await fetch(`${simulator.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ ...fields, stream: true, stream_options: { include_usage: true } }),
    })
    expect(response.headers.get('content-type')).toContain('text/event-stream')
    return (await response.text()).split('\n\n').filter((event) => event !== '')
  }

  test('says the same, delta by delta, with prompt ids once and usage at the end', async () => {
    const fields = { messages: AFTER_CALL, seed: 4, logprobs: true, return_token_ids: true }
    const whole = await chat(fields)
    const events = await readEvents(fields)
    expect(events.every((event) => event.startsWith('data: '))).toBe(true)
    expect(events.at(-1)).toBe('data: [DONE]')
    const chunks: Chunk[] = events.slice(0, -1).map((event) => JSON.parse(event.slice(6)))
    const deltas = chunks.flatMap((chunk) => chunk.choices)
    const [choice] = whole.choices
    expect(deltas.map(({ delta }) => delta.content).join('')).toBe(choice.message.content)
    expect(deltas.flatMap((one) => one.token_ids ?? [])).toEqual(choice.token_ids)
    const logprobs = deltas.flatMap((one) => one.logprobs?.content ?? [])
    expect(logprobs).toEqual(choice.logprobs.content)
    expect(deltas.map((one) => one.finish_reason).filter(Boolean)).toEqual(['stop'])
    const prompts = chunks.map((chunk) => chunk.prompt_token_ids).filter(Boolean)
    expect(prompts).toEqual([whole.prompt_token_ids])
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: whole.usage })
  })
})

describe('POST /v1/completions', () => {
  test('a token prompt gets the ids that chat samples, in the fields of a text completion', async () => {
    const asked = await chat({ seed: 6, max_tokens: 100 })
    const [{ token_ids: ids, message }] = asked.choices
    const prompt = asked.prompt_token_ids
    const fields = { prompt, seed: 6, max_tokens: 100, logprobs: 0, return_token_ids: true }
    const { body } = await simulator.post<{ choices: unknown[] }>('/v1/completions', fields)
    expect(body).toMatchObject({
      id: expect.stringMatching(/^cmpl-/),
      object: 'text_completion',
      usage: { prompt_tokens: prompt.length, completion_tokens: ids.length },
    })
    expect(body.choices).toEqual([
      {
        index: 0,
        text: message.content,
        logprobs: {
          text_offset: expect.any(Array),
          token_logprobs: ids.map(() => expect.any(Number)),
          tokens: ids.map((id) => model.decode([id])),
          top_logprobs: ids.map(() => expect.any(Object)),
        },
        finish_reason: 'stop',
        stop_reason: null,
        token_ids: ids,
        prompt_logprobs: null,
        prompt_token_ids: prompt,
      },
    ])
  })
})

describe('around completions', () => {
  test('tokenize counts the tokens of a prompt or of a conversation', async () => {
    const prompt = await simulator.post('/tokenize', { prompt: '</tool_call>' })
    const expected = { count: 1, max_model_len: 40_960, tokens: [151_658], token_strs: null }
    expect(prompt.body).toEqual(expected)
    const conversation = { messages: ASKED, tools: TOOLS }
    const { body } = await simulator.post<{ tokens: number[] }>('/tokenize', conversation)
    expect(body.tokens).toEqual((await chat({ tools: TOOLS })).prompt_token_ids)
    const back = await simulator.post('/detokenize', { tokens: body.tokens })
    expect(back.body).toEqual({ prompt: model.decode(body.tokens) })
  })

  test('models are listed under the name they are served by', async () => {
    expect(await simulator.get('/v1/models')).toMatchObject({
      object: 'list',
      data: [{ id: 'qwen3-8b', object: 'model', owned_by: 'vllm', max_model_len: 40_960 }],
    })
  })

  test.each([
    [{ messages: ASKED, model: 'gpt' }, 404, 'does not exist'],
    [{ messages: [] }, 400, 'messages'],
    [{ messages: ASKED, tools: TOOLS, tool_choice: 'auto' }, 400, '--tool-call-parser'],
    [{ messages: ASKED, max_tokens: 50_000 }, 400, 'maximum context length is 40960'],
    [{ messages: [{ role: 'user', content: 'x' }], n: 2 }, 400, 'n'],
  ])('%j is refused with %d', async (request, status, said) => {
    const { status: got, body } = await simulator.post<{ error: { message: string } }>(
      '/v1/chat/completions',
      request,
    )
    expect(got).toBe(status)
    expect(body.error).toMatchObject({ type: expect.any(String), code: status })
    expect(body.error.message).toContain(said)
  })

  test('a prompt that leaves no room within the window is refused, one that just fits is not', async () => {
    const small = await start({ maxModelLen: 30 })
    const room = 30 - (await chat({})).prompt_token_ids.length
    const statusOf = async (max_tokens: number) =>
      (await small.post('/v1/chat/completions', { messages: ASKED, max_tokens })).status
    expect(await statusOf(room)).toBe(200)
    expect(await statusOf(room + 1)).toBe(400)
  })
})
