import { beforeAll, describe, expect, test } from 'vitest'
import type { SimulatorOptions } from '../options.ts'
import {
  AFTER_CALL,
  ANSWER,
  CALL,
  type ChatChoice,
  type Client,
  RAW,
  simulatorsOfThisFile,
} from '../simulator.testkit.ts'

const start = simulatorsOfThisFile()
let simulator: Client

beforeAll(async () => {
  simulator = await start()
}, 30_000)

const choiceOf = async (fields: object, at = simulator): Promise<ChatChoice> =>
  (await at.chat(fields)).choices[0]
const idsOf = async (fields: object, at = simulator) => (await choiceOf(fields, at)).token_ids
const styled = (style: Partial<SimulatorOptions['style']>) =>
  start({ style: { format: 'hermes', thinking: false, mix: { correct: 1 }, ...style } })

const eight = Array.from({ length: 8 }, (_, seed) => seed)

describe('seeds and temperature', () => {
  test('temperature 0 says the same whatever the seed', async () => {
    const all = await Promise.all(eight.map((seed) => idsOf({ seed, temperature: 0 })))
    expect(new Set(all.map(String)).size).toBe(1)
  })

  test('temperature 1 says something else for each seed of a group', async () => {
    const all = await Promise.all(eight.map((seed) => idsOf({ seed })))
    expect(new Set(all.map(String)).size).toBe(8)
  })

  test('without a seed every request is drawn anew, unless a fallback is set', async () => {
    const anew = await Promise.all(eight.map(() => idsOf({})))
    expect(new Set(anew.map(String)).size).toBe(8)
    const fixed = await start({ fallbackSeed: 0 })
    const same = await Promise.all(eight.map(() => idsOf({}, fixed)))
    expect(new Set(same.map(String)).size).toBe(1)
    expect(same[0]).toEqual(await idsOf({ seed: 0 }))
  })

  test('a seed and a conversation give one completion, in any order and on another server', async () => {
    const requests = eight.flatMap((seed) => [{ seed }, { seed, messages: AFTER_CALL }])
    const ask = (request: object, at: Client) => choiceOf({ ...request, logprobs: true }, at)
    const forth: ChatChoice[] = []
    for (const request of requests) forth.push(await ask(request, simulator))
    const twin = await start()
    const back: ChatChoice[] = []
    for (const request of requests.toReversed()) back.unshift(await ask(request, twin))
    expect(back).toEqual(forth)
  })
})

describe('scripts', () => {
  test('the place in the script is found in the conversation', async () => {
    expect((await choiceOf({ messages: AFTER_CALL })).message.content).toBe(ANSWER)
  })

  test('the mixture decides between transcripts by the seed', async () => {
    const mixed = await styled({ mix: { correct: 0.5, wrong: 0.5 } })
    const said = await Promise.all(
      Array.from({ length: 16 }, async (_, seed) => (await choiceOf({ seed }, mixed)).message),
    )
    expect(said.some(({ content }) => content === 'Seven.')).toBe(true)
    expect(said.some(({ content }) => content.endsWith(CALL))).toBe(true)
  })

  test('truncated turns run on inside a call until max_tokens, however many that is', async () => {
    const long = await styled({ mix: { truncated: 1 } })
    for (const max_tokens of [30, 300]) {
      const reply = await long.chat({ max_tokens })
      expect(reply.choices[0].finish_reason).toBe('length')
      expect(reply.usage.completion_tokens).toBe(max_tokens)
    }
    const { content } = (await choiceOf({ max_tokens: 300 }, long)).message
    expect(content).toContain('<tool_call>')
    expect(content).not.toContain('</tool_call>')
  })

  test('calls can be written in the other tag form, and turns with thinking', async () => {
    const other = await styled({ format: 'qwen3-coder', thinking: true })
    const { content } = (await choiceOf({ temperature: 0 }, other)).message
    expect(content).toMatch(/^<think>\n[^<]+\n<\/think>\n\n<tool_call>\n<function=stock_get>\n/)
  })
})

describe('log-probabilities', () => {
  const valuesOf = async (fields: object, at = simulator) =>
    (await choiceOf({ messages: RAW, logprobs: true, top_logprobs: 4, ...fields }, at)).logprobs
      .content
  const sampled = async (fields: object, at = simulator) =>
    (await valuesOf(fields, at)).map(({ logprob }) => logprob)

  test('a token has one untempered value in its context, whatever the seed', async () => {
    expect(await sampled({ seed: 1 })).toEqual(await sampled({ seed: 2 }))
  })

  test('processed values at temperature 0 are those of the untempered distribution', async () => {
    expect(await sampled({ temperature: 0 })).toEqual(await sampled({ temperature: 1 }))
  })

  test.each([0.5, 2])(
    'at temperature %d they are the softmax of the untempered ones',
    async (t) => {
      const untempered = await valuesOf({ temperature: 1 })
      const tempered = await valuesOf({ temperature: t })
      expect(tempered.length).toBe(untempered.length)
      untempered.forEach(({ top_logprobs: top }, index) => {
        const weights = top.map(({ logprob }) => Math.exp(logprob / t))
        const total = weights.reduce((sum, weight) => sum + weight, 0)
        const expected = weights.map((weight) => Math.log(weight / total))
        tempered[index]?.top_logprobs.forEach(({ logprob }, rank) => {
          expect(logprob).toBeCloseTo(expected[rank] as number, 6)
        })
      })
    },
  )

  test('raw values do not follow the temperature', async () => {
    const raw = await start({ logprobsMode: 'raw' })
    const cold = await sampled({ temperature: 0.5 }, raw)
    expect(cold).toEqual(await sampled({ temperature: 2 }, raw))
    expect(cold).not.toEqual(await sampled({ temperature: 0.5 }))
  })

  test('they stay finite and below zero where the temperature rounds all to certainty', async () => {
    for (const { logprob, top_logprobs: top } of await valuesOf({ temperature: 0.001 })) {
      expect(logprob).toBeLessThan(0)
      for (const one of top) expect(Number.isFinite(one.logprob)).toBe(true)
    }
  })
})
