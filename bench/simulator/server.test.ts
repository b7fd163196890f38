import { describe, expect, test } from 'vitest'
import { startSimulator } from './server.ts'
import {
  ASKED,
  type ChatReply,
  type Client,
  clientOf,
  type GenerateReply,
  RAW_PROMPT,
  RAW_TEXT,
  simulatorsOfThisFile,
} from './simulator.testkit.ts'

const start = simulatorsOfThisFile()
const BODY = { text: RAW_PROMPT, return_logprob: true, sampling_params: { max_new_tokens: 50 } }

/** Resolves when as many requests are under way. */
async function underWay(count: number, at: Client): Promise<void> {
  while ((await at.stats()).in_flight !== count);
}

test('health is an empty 200, an unknown path a 404', async () => {
  const simulator = await start()
  const health = await fetch(`${simulator.url}/health`)
  expect([health.status, await health.text()]).toEqual([200, ''])
  expect(await simulator.post('/nowhere', {})).toEqual({
    status: 404,
    body: { detail: 'Not Found' },
  })
})

test('a body that is no JSON is refused with the reason', async () => {
  const { url } = await start()
  const response = await fetch(`${url}/generate`, { method: 'POST', body: '{"text": ' })
  expect(response.status).toBe(400)
  expect(await response.text()).toContain('the body is no JSON')
})

test('statistics count requests by path, and record the ids of each with its seed', async () => {
  const simulator = await start({ record: true })
  const { choices, usage } = await simulator.chat({ seed: 5 })
  await simulator.post('/nowhere', {})
  const stats = await simulator.stats()
  expect(stats.requests).toEqual({ '/v1/chat/completions': 1, other: 1, '/simulator/stats': 1 })
  expect(stats.tokens).toEqual({ prompt: usage.prompt_tokens, completion: usage.completion_tokens })
  expect(stats.records).toEqual([
    {
      path: '/v1/chat/completions',
      seed: 5,
      prompt_tokens: usage.prompt_tokens,
      ids: choices[0].token_ids,
      faults: [],
    },
  ])
})

describe('while a completion is under way', () => {
  test('an update aborts it: it answers with a beginning, under the version it began with', async () => {
    const slow = await start({ latency: { kind: 'fixed', ms: 60_000 }, weightVersion: '1' })
    const pending = slow.generate(BODY)
    await underWay(1, slow)
    await slow.post('/update_weight_version', { new_version: 2 })
    const { text, output_ids: ids, meta_info: meta } = await pending
    expect(meta.finish_reason.type).toBe('abort')
    expect(RAW_TEXT.startsWith(text)).toBe(true)
    expect(ids.length).toBeGreaterThan(0)
    expect(meta.completion_tokens).toBe(ids.length)
    expect(meta.output_token_logprobs).toHaveLength(ids.length)
    expect(meta.weight_version).toBe('1')
    expect(await slow.get('/get_weight_version')).toEqual({ weight_version: '2' })
  })

  test('an update that aborts nothing leaves it to the end, with spans of both versions', async () => {
    const slow = await start({ latency: { kind: 'fixed', ms: 1000 }, weightVersion: '1' })
    const pending = slow.generate(BODY)
    await underWay(1, slow)
    const update = { new_version: '2', abort_all_requests: false }
    await slow.post('/update_weight_version', update)
    const { meta_info: meta } = await pending
    expect(meta.finish_reason.type).toBe('stop')
    expect(meta.weight_version).toBe('2')
    const last = meta.weight_versions.at(-1)
    expect(last).toMatchObject({ version: '2', end: meta.completion_tokens })
  })

  test('it can be aborted by its id, and its neighbour goes on', async () => {
    const slow = await start({ latency: { kind: 'fixed', ms: 60_000 } })
    const first = slow.generate({ ...BODY, rid: 'a' })
    const second = slow.generate({ ...BODY, rid: 'b' })
    await underWay(2, slow)
    await slow.post('/abort_request', { rid: 'a' })
    expect((await first).meta_info).toMatchObject({ id: 'a', finish_reason: { type: 'abort' } })
    expect((await slow.stats()).in_flight).toBe(1)
    await slow.post('/abort_request', { abort_all: true })
    expect((await second).meta_info.finish_reason.type).toBe('abort')
  })

  test('closing the server ends it', async () => {
    const simulator = await startSimulator({ latency: { kind: 'fixed', ms: 60_000 } })
    const slow = clientOf(simulator.url)
    const failed = expect(slow.generate(BODY)).rejects.toThrow('fetch failed')
    await underWay(1, slow)
    await simulator.close()
    await failed
  })
})

describe('prepared replies', () => {
  test('a repeated request gets the reply of the first, another one its own', async () => {
    const simulator = await start({ prepared: true })
    const ask = async (seed: number) =>
      (await simulator.post<ChatReply>('/v1/chat/completions', { messages: ASKED, seed })).body
    const first = await ask(1)
    expect(await ask(1)).toEqual(first)
    expect((await ask(2)).choices).not.toEqual(first.choices)
    const stats = await simulator.stats()
    expect(stats.prepared.kept).toBe(2)
    expect(stats.requests['/v1/chat/completions']).toBe(3)
  })

  test('their CPU time is measured from the second in a row on', async () => {
    const simulator = await start({ prepared: true })
    for (let i = 0; i < 20; i++) await simulator.generate(BODY)
    const { replies, cpu_us_per_reply: cost } = (await simulator.stats()).prepared
    // The first made the reply, the second started the measurement.
    expect(replies).toBe(18)
    expect(cost).toBeGreaterThan(0)
  })

  test('they are forgotten when the weights or the faults change', async () => {
    const simulator = await start({ prepared: true, weightVersion: '7' })
    const ask = () => simulator.post<GenerateReply>('/generate', BODY)
    expect((await ask()).body.meta_info.weight_version).toBe('7')
    await simulator.post('/update_weight_version', { new_version: '8' })
    expect((await ask()).body.meta_info.weight_version).toBe('8')
    await simulator.post('/simulator/faults', { faults: [{ kind: '500' }] })
    expect((await ask()).status).toBe(500)
    await simulator.post('/simulator/faults', { faults: [] })
    expect((await ask()).status).toBe(200)
  })
})
