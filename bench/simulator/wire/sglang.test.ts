import { beforeAll, describe, expect, test } from 'vitest'
import { defaultModelDir, loadModel, type Model } from '../policy/model.ts'
import {
  AFTER_CALL,
  ASKED,
  CALL,
  type Client,
  type GenerateReply,
  RAW_PROMPT,
  RAW_TEXT,
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
  simulator = await start({ weightVersion: '3' })
}, 30_000)

test('a reply has the fields that SGLang sends', async () => {
  const { prompt_token_ids: input_ids } = await simulator.chat()
  const reply = await simulator.generate({
    rid: 'r-1',
    input_ids,
    sampling_params: { max_new_tokens: 100, temperature: 0 },
    return_logprob: true,
  })
  const ids = reply.output_ids
  expect(reply).toEqual({
    text: CALL,
    output_ids: ids,
    meta_info: {
      id: 'r-1',
      finish_reason: { type: 'stop', matched: IM_END },
      prompt_tokens: input_ids.length,
      weight_version: '3',
      weight_versions: [{ version: '3', start: 0, end: ids.length }],
      completion_tokens: ids.length,
      cached_tokens: expect.any(Number),
      input_token_logprobs: [],
      output_token_logprobs: ids.map((id) => [expect.any(Number), id, null]),
      e2e_latency: expect.any(Number),
    },
  })
})

test.each([
  ['a first turn', ASKED],
  ['a later turn', AFTER_CALL],
])('%s samples the ids that chat samples for the same prompt and seed', async (_turn, messages) => {
  for (const seed of [1, 2, 3]) {
    const asked = await simulator.chat({ messages, seed, max_tokens: 100 })
    const sampling_params = { sampling_seed: seed, max_new_tokens: 100 }
    const byIds = { input_ids: asked.prompt_token_ids, sampling_params }
    expect((await simulator.generate(byIds)).output_ids).toEqual(asked.choices[0].token_ids)
    const byText = { text: model.decode(asked.prompt_token_ids), sampling_params }
    expect((await simulator.generate(byText)).output_ids).toEqual(asked.choices[0].token_ids)
  }
})

describe('the text', () => {
  const said = async (params: object) => {
    const sampling_params = { max_new_tokens: 50, ...params }
    return (await simulator.generate({ text: RAW_PROMPT, sampling_params })).text
  }

  test('has the end of turn exactly where it is asked to stay', async () => {
    expect(await said({})).toBe(RAW_TEXT)
    expect(await said({ no_stop_trim: true })).toBe(RAW_TEXT)
    expect(await said({ no_stop_trim: true, skip_special_tokens: false })).toBe(
      `${RAW_TEXT}<|im_end|>`,
    )
  })

  test('has a stop string exactly where it is asked to stay', async () => {
    expect(await said({ stop: ' two' })).toBe('one')
    expect(await said({ stop: ' two', no_stop_trim: true })).toBe('one two')
  })
})

test('a completion that was cut says so with its length', async () => {
  const reply = await simulator.generate({
    text: RAW_PROMPT,
    sampling_params: { max_new_tokens: 2 },
  })
  expect(reply.meta_info.finish_reason).toEqual({ type: 'length', length: 2 })
  expect(reply.output_ids).toHaveLength(2)
})

test('a stream tells all that was sampled so far in each event, and ends with [DONE]', async () => {
  const asked = { text: RAW_PROMPT, sampling_params: { max_new_tokens: 50 }, return_logprob: true }
  const whole = await simulator.generate(asked)
  const response = await fetch(`${simulator.url}/generate`, {
    method: 'POST',
    body: JSON.stringify({ ...asked, stream: true }),
  })
  expect(response.headers.get('content-type')).toContain('text/event-stream')
  const events = (await response.text()).trim().split('\n\n')
  expect(events.at(-1)).toBe('data: [DONE]')
  const told = events.slice(0, -1).map((event) => JSON.parse(event.slice('data: '.length)))
  expect(told.map(({ output_ids }) => output_ids)).toEqual(
    whole.output_ids.map((_, index) => whole.output_ids.slice(0, index + 1)),
  )
  expect(told.at(-1).meta_info.output_token_logprobs).toEqual(whole.meta_info.output_token_logprobs)
  expect(told.map(({ meta_info }) => meta_info.finish_reason !== null)).toEqual([
    ...whole.output_ids.slice(1).map(() => false),
    true,
  ])
})

describe('a chat request that asks for meta_info', () => {
  const wanted = { logprobs: true, return_meta_info: true, return_prompt_token_ids: true }

  test('samples what /generate samples for the prompt that it names', async () => {
    const asked = await simulator.chat({ ...wanted, seed: 4, max_tokens: 100 })
    const choice = asked.choices[0] as unknown as {
      prompt_token_ids: number[]
      meta_info: GenerateReply['meta_info']
    }
    const reply = await simulator.generate({
      input_ids: choice.prompt_token_ids,
      sampling_params: { sampling_seed: 4, max_new_tokens: 100 },
      return_logprob: true,
    })
    const ids = choice.meta_info.output_token_logprobs.map(([, id]) => id)
    expect(ids).toEqual(reply.output_ids)
    expect(choice.meta_info.completion_tokens).toBe(ids.length)
  })

  test('has no stream, and no tools in its prompt where it chooses none', async () => {
    const messages = ASKED
    const streamed = { ...wanted, messages, stream: true }
    expect((await simulator.post('/v1/chat/completions', streamed)).status).toBe(400)
    const promptOf = async (fields: object) => {
      const { choices } = await simulator.chat({ ...wanted, ...fields, tools: TOOLS })
      return model.decode(
        (choices[0] as unknown as { prompt_token_ids: number[] }).prompt_token_ids,
      )
    }
    expect(await promptOf({})).toContain('stock_get')
    expect(await promptOf({ tool_choice: 'none' })).not.toContain('stock_get')
  })
})

test('a turn that was aborted goes on where it stopped, with the ids it would have had', async () => {
  const { prompt_token_ids: prompt, choices } = await simulator.chat({ seed: 9 })
  const whole = choices[0].token_ids
  for (let at = 1; at < whole.length; at++) {
    const rest = await simulator.generate({
      input_ids: [...prompt, ...whole.slice(0, at)],
      sampling_params: { sampling_seed: 9, max_new_tokens: 200 },
    })
    expect(rest.output_ids).toEqual(whole.slice(at))
  }
})

test.each([
  [{ text: 'x', sampling_params: { max_new_tokens: 50_000 } }, 'maximum context length of 40960'],
  [{}, 'text or input_ids'],
])('%j is refused', async (request, said) => {
  const { status, body } = await simulator.post('/generate', request)
  expect(status).toBe(400)
  expect(JSON.stringify(body)).toContain(said)
})

test('the weight version can be read and set, without aborting where that is said', async () => {
  const own = await start({ weightVersion: '3' })
  expect(await own.get('/weight_info')).toEqual({ weight_version: '3' })
  const update = { new_version: '4', abort_all_requests: false }
  expect((await own.post('/update_weight_version', update)).body).toMatchObject({
    success: true,
    new_version: '4',
  })
  expect(await own.get('/get_weight_version')).toEqual({ weight_version: '4' })
})
