import { Agent, request } from 'undici'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createFaultPlan, type FaultRule } from './faults.ts'
import { readPrompt } from './policy/conversation.ts'
import { defaultModelDir, loadModel, type Model } from './policy/model.ts'
import {
  AFTER_CALL,
  ASKED,
  CALL,
  type Client,
  RAW,
  RAW_PROMPT,
  RAW_TEXT,
  simulatorsOfThisFile,
  TOOLS,
} from './simulator.testkit.ts'

const start = simulatorsOfThisFile()
/** For clients that do not wait: the faults that never end. */
const hasty = new Agent({ headersTimeout: 200, bodyTimeout: 200 })
const patient = new Agent()
let model: Model
let sound: Client

beforeAll(async () => {
  model = await loadModel(defaultModelDir())
  sound = await start()
}, 30_000)

afterAll(() => Promise.all([hasty.destroy(), patient.destroy()]))

const faulty = (...faults: (Partial<FaultRule> & Pick<FaultRule, 'kind'>)[]) =>
  start({ faults: faults.map((fault) => ({ rate: 1, ...fault })), weightVersion: '3' })
const ask = (at: Client, fields: object = {}, dispatcher = patient) =>
  request(`${at.url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ messages: ASKED, temperature: 0, ...fields }),
    dispatcher,
  })
const everything = { temperature: 0, logprobs: true, top_logprobs: 0, return_token_ids: true }
const generateRaw = { text: RAW_PROMPT, return_logprob: true }

describe('what a client sees of a fault on the way', () => {
  test.each([
    ['500', 500],
    ['502', 502],
    ['503', 503],
    ['429', 429],
    ['context', 400],
    ['redirect', 307],
  ] as const)('%s is the status %d', async (kind, status) => {
    const response = await ask(await faulty({ kind }))
    expect(response.statusCode).toBe(status)
    await response.body.dump()
  })

  test('429 says when to come again', async () => {
    const response = await ask(await faulty({ kind: '429' }))
    expect(response.headers['retry-after']).toBe('1')
    await response.body.dump()
  })

  test('a context refusal says so in the words of the engine', async () => {
    const response = await ask(await faulty({ kind: 'context' }))
    expect(await response.body.text()).toContain('maximum context length')
  })

  test('hang sends no headers', async () => {
    const pending = ask(await faulty({ kind: 'hang' }), {}, hasty)
    await expect(pending).rejects.toMatchObject({ code: 'UND_ERR_HEADERS_TIMEOUT' })
  })

  test('reset closes the connection before any header', async () => {
    const pending = ask(await faulty({ kind: 'reset' }))
    await expect(pending).rejects.toMatchObject({
      code: expect.stringMatching(/^(ECONNRESET|UND_ERR_SOCKET)$/),
    })
  })

  test('cut ends the body early, in both forms: short of its length, and chunked without an end', async () => {
    const cut = await faulty({ kind: 'cut' })
    const forms = new Set<boolean>()
    for (let seed = 0; seed < 12; seed++) {
      const response = await ask(cut, { seed })
      expect(response.statusCode).toBe(200)
      forms.add('content-length' in response.headers)
      await expect(response.body.text()).rejects.toMatchObject({ code: 'UND_ERR_SOCKET' })
    }
    expect(forms.size).toBe(2)
  })

  test('trickle keeps the body coming, so that no timeout between bytes fires', async () => {
    const response = await ask(await faulty({ kind: 'trickle' }), {}, hasty)
    let sizes: number[] = []
    for await (const chunk of response.body) {
      sizes = [...sizes, chunk.length]
      // Ten bytes at 50 ms take longer than the body timeout of 200 ms.
      if (sizes.length === 10) break
    }
    expect(sizes).toEqual(Array.from({ length: 10 }, () => 1))
  })

  test('html is a page with status 200', async () => {
    const response = await ask(await faulty({ kind: 'html' }))
    expect(response.statusCode).toBe(200)
    expect(response.headers['content-type']).toBe('text/html')
    expect(await response.body.text()).toContain('<html>')
  })

  test('badjson is JSON by its type alone', async () => {
    const response = await ask(await faulty({ kind: 'badjson' }))
    expect(response.headers['content-type']).toBe('application/json')
    await expect(response.body.json()).rejects.toThrow(SyntaxError)
  })

  test('noend is a clean end without the rest: an empty body, a stream without finish and [DONE]', async () => {
    const noend = await faulty({ kind: 'noend' })
    expect(await (await ask(noend)).body.text()).toBe('')
    const stream = await (await ask(noend, { stream: true })).body.text()
    expect(stream).toContain('data: ')
    expect(stream).not.toContain('[DONE]')
    expect(stream).not.toContain('"finish_reason":"stop"')
  })
})

describe('what is wrong with a reply that came', () => {
  /** The reply with the fault, and the same reply without. */
  const both = async (kind: FaultRule['kind'], fields: object = {}) => {
    const asked = { ...everything, ...fields }
    return { bad: await (await faulty({ kind })).chat(asked), good: await sound.chat(asked) }
  }

  test('empty has no choices', async () => {
    expect((await both('empty')).bad.choices).toEqual([])
  })

  test('nologprobs leaves the log-probabilities out, notokens the ids', async () => {
    const { bad: silent, good } = await both('nologprobs')
    expect(silent.choices[0].logprobs).toBeNull()
    expect(silent.choices[0].token_ids).toEqual(good.choices[0].token_ids)
    const { bad: unnamed } = await both('notokens')
    expect(unnamed.choices[0].token_ids).toBeNull()
    expect(unnamed.prompt_token_ids).toBeNull()
    expect(unnamed.choices[0].logprobs).toEqual(good.choices[0].logprobs)
  })

  test('misaligned has one log-probability less than ids', async () => {
    const [choice] = (await both('misaligned')).bad.choices
    expect(choice.logprobs.content).toHaveLength(choice.token_ids.length - 1)
  })

  test('nan is one log-probability that is null', async () => {
    const { content } = (await both('nan')).bad.choices[0].logprobs
    expect(content.filter(({ logprob }) => logprob === null)).toHaveLength(1)
  })

  test('nofinish does not say how it ended', async () => {
    expect((await both('nofinish')).bad.choices[0].finish_reason).toBeNull()
  })

  test('usage counts other tokens than came', async () => {
    const { bad } = await both('usage')
    expect(bad.usage.completion_tokens).not.toBe(bad.choices[0].token_ids.length)
  })

  test('toolcalls moves the calls out of the text, with the ids complete', async () => {
    const { bad, good } = await both('toolcalls')
    const [choice] = bad.choices
    expect(choice.finish_reason).toBe('tool_calls')
    expect(choice.message.content).toBeNull()
    expect(choice.message.tool_calls).toEqual([
      {
        id: expect.stringMatching(/^chatcmpl-tool-/),
        type: 'function',
        function: { name: 'stock_get', arguments: '{"sku": "A-1"}' },
      },
    ])
    expect(choice.token_ids).toEqual(good.choices[0].token_ids)
  })

  test('eaten does the same and loses the ids of the markup, which usage still counts', async () => {
    const { bad, good } = await both('eaten', { temperature: 1, seed: 3 })
    const [choice] = bad.choices
    expect(choice.message.tool_calls).toHaveLength(1)
    expect(bad.usage).toEqual(good.usage)
    expect(choice.token_ids.length).toBeGreaterThan(0)
    expect(choice.token_ids.length).toBeLessThan(bad.usage.completion_tokens)
    expect(choice.logprobs.content).toHaveLength(choice.token_ids.length)
  })

  test('reasoning moves the thought out of the text', async () => {
    const { bad, good } = await both('reasoning', { temperature: 1, seed: 3 })
    const { content, reasoning_content: thought } = bad.choices[0].message
    expect(content).toBe(CALL)
    expect(`${thought}${content}`).toBe(good.choices[0].message.content)
  })

  test('spelled writes the closing tag in four ids instead of one', async () => {
    const { bad, good } = await both('spelled')
    expect(bad.choices[0].message.content).toBe(good.choices[0].message.content)
    const spelled = good.choices[0].token_ids.flatMap((id) =>
      id === 151_658 ? [522, 14_172, 13_429, 29] : [id],
    )
    expect(bad.choices[0].token_ids).toEqual(spelled)
    expect(bad.choices[0].logprobs.content).toHaveLength(spelled.length)
  })

  test('dropstools renders the prompt without the tools', async () => {
    const { bad, good } = await both('dropstools', { tools: TOOLS })
    expect(model.decode(good.prompt_token_ids)).toContain('stock_get')
    expect(model.decode(bad.prompt_token_ids)).not.toContain('stock_get')
  })

  test('greedy ignores the temperature, seedless the seed', async () => {
    const said = async (at: Client) =>
      new Set(
        await Promise.all(
          [1, 2, 3, 4].map(async (seed) => (await at.chat({ seed })).choices[0].message.content),
        ),
      )
    expect(await said(await faulty({ kind: 'greedy' }))).toEqual(new Set([CALL]))
    const seedless = await said(await faulty({ kind: 'seedless' }))
    expect(seedless.size).toBe(1)
    expect(seedless).not.toEqual(new Set([CALL]))
  })
})

describe('the same in the form of /generate', () => {
  const generate = async (kind: FaultRule['kind']) => (await faulty({ kind })).generate(generateRaw)

  test('nothing that is missing is made up', async () => {
    expect((await generate('nologprobs')).meta_info).not.toHaveProperty('output_token_logprobs')
    expect(await generate('notokens')).not.toHaveProperty('output_ids')
    expect((await generate('nofinish')).meta_info.finish_reason).toBeNull()
    const silent = (await generate('noversion')).meta_info
    expect(silent).not.toHaveProperty('weight_version')
    expect(silent).not.toHaveProperty('weight_versions')
    expect(await generate('empty')).toMatchObject({ text: '', output_ids: [] })
  })

  test('nothing that disagrees is made to agree', async () => {
    const misaligned = await generate('misaligned')
    expect(misaligned.meta_info.output_token_logprobs).toHaveLength(
      misaligned.output_ids.length - 1,
    )
    const values = (await generate('nan')).meta_info.output_token_logprobs
    expect(values.filter(([logprob]) => logprob === null)).toHaveLength(1)
    const usage = await generate('usage')
    expect(usage.meta_info.completion_tokens).not.toBe(usage.output_ids.length)
  })

  test('noversion holds for the endpoints beside it too', async () => {
    const silent = await faulty({ kind: 'noversion' })
    expect(await silent.get('/weight_info')).toEqual({})
  })
})

describe('abort', () => {
  test('ends a turn in the middle, with what was sampled so far, in both wire forms', async () => {
    const abort = await faulty({ kind: 'abort', after: 3 })
    const reply = await abort.chat({ ...everything, messages: RAW })
    const [choice] = reply.choices
    expect(choice.finish_reason).toBe('abort')
    expect(choice.token_ids).toHaveLength(3)
    expect(choice.logprobs.content).toHaveLength(3)
    expect(choice.message.content).toBe('one two three')
    expect(reply.usage.completion_tokens).toBe(3)
    const generated = await abort.generate(generateRaw)
    expect(generated).toMatchObject({
      text: 'one two three',
      meta_info: { finish_reason: { type: 'abort' }, completion_tokens: 3 },
    })
    expect(generated.meta_info.weight_versions).toEqual([{ version: '3', start: 0, end: 3 }])
  })

  test('once, the turn goes on where it stopped', async () => {
    const abort = await faulty({ kind: 'abort', after: 3, times: 1 })
    const sampling_params = { sampling_seed: 4, max_new_tokens: 50 }
    const first = await abort.generate({ ...generateRaw, sampling_params })
    const rest = await abort.generate({ text: RAW_PROMPT + first.text, sampling_params })
    expect(first.text + rest.text).toBe(RAW_TEXT)
    expect(rest.meta_info.finish_reason.type).toBe('stop')
  })
})

describe('whom faults hit', () => {
  const statusOf = async (at: Client, fields: object) =>
    (await at.post('/v1/chat/completions', { messages: ASKED, ...fields })).status

  test('a share of the requests, drawn by their seeds: the same ones in any order', () => {
    const keys = Array.from({ length: 2000 }, (_, seed) => String(seed))
    const conversation = readPrompt(RAW_PROMPT)
    const hitsOf = (order: string[]) => {
      const plan = createFaultPlan([{ kind: '500', rate: 0.3 }], 0)
      return new Set(order.filter((key) => plan.drawFor({ key, conversation }).has('500')))
    }
    const hits = hitsOf(keys)
    expect(hitsOf(keys.toReversed())).toEqual(hits)
    // Five standard deviations of a binomial count of 2,000 draws at 0.3 are 102.
    expect(Math.abs(hits.size - 600)).toBeLessThan(102)
  })

  test('a share of what arrives, of one request that comes again too', () => {
    const conversation = readPrompt(RAW_PROMPT)
    const hitsOf = (faults: FaultRule[]) => {
      const plan = createFaultPlan(faults, 0)
      return Array.from({ length: 2000 }, () => plan.drawFor({ key: '7', conversation }).has('500'))
    }
    const hits = hitsOf([{ kind: '500', rate: 0.2 }])
    // Five standard deviations of a binomial count of 2,000 draws at 0.2 are 89.
    expect(Math.abs(hits.filter(Boolean).length - 400)).toBeLessThan(90)
    expect(hitsOf([{ kind: '500', rate: 0.2 }])).toEqual(hits)
    // With `times` the share is of the requests: this one is hit the first two times or never.
    for (const rate of [0.01, 0.99])
      expect([0, 2]).toContain(hitsOf([{ kind: '500', rate, times: 2 }]).filter(Boolean).length)
  })

  test('a share of the requests that is counted as it is seen', async () => {
    const half = await faulty({ kind: '500', rate: 0.5 })
    const seeds = Array.from({ length: 16 }, (_, seed) => seed)
    const statuses = await Promise.all(seeds.map((seed) => statusOf(half, { seed })))
    const hit = statuses.filter((status) => status === 500).length
    expect(statuses.filter((status) => status === 200)).toHaveLength(16 - hit)
    expect((await half.stats()).faults).toEqual({ '500': hit })
  })

  test('only conversations that contain a text', async () => {
    const picky = await faulty({ kind: '500', match: 'How many' })
    expect(await statusOf(picky, {})).toBe(500)
    expect(await statusOf(picky, { messages: RAW })).toBe(200)
  })

  test('only some turns of an episode', async () => {
    const second = await faulty({ kind: '500', turns: [2] })
    expect(await statusOf(second, {})).toBe(200)
    expect(await statusOf(second, { messages: AFTER_CALL })).toBe(500)
  })

  test('only the first times that a request comes', async () => {
    const twice = await faulty({ kind: '503', times: 2 })
    const statuses: number[] = []
    for (let i = 0; i < 3; i++) statuses.push(await statusOf(twice, { seed: 1 }))
    expect(statuses).toEqual([503, 503, 200])
    expect(await statusOf(twice, { seed: 2 })).toBe(503)
  })

  test('as they are set at the moment', async () => {
    const live = await start()
    const set = (faults: object[]) => live.post('/simulator/faults', { faults })
    expect(await statusOf(live, {})).toBe(200)
    expect((await set([{ kind: '502' }])).body).toEqual({ faults: [{ kind: '502', rate: 1 }] })
    expect((await ask(live)).statusCode).toBe(502)
    await set([])
    expect(await statusOf(live, {})).toBe(200)
    const refused = await set([{ kind: 'earthquake' }])
    expect(refused.status).toBe(400)
  })
})
