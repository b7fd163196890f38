// Every wire form of a policy, whole and streamed: what is delivered is what the backend sampled, token for token.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JsonObject } from '../protocol/json.ts'
import { arithmeticRequest, type House, openHouse } from './testkit/house.testkit.ts'

let house: House
let count = 0
beforeAll(async () => {
  house = await openHouse({
    simulator: { record: true, weightVersion: '7' },
    backends: {
      generate: { dialect: 'vllm-generate' },
      tokenized: { dialect: 'vllm', first_prompt: 'tokenize' },
      'main-stream': { dialect: 'vllm', stream: true },
      'generate-stream': { dialect: 'vllm-generate', stream: true },
      'sglang-stream': { dialect: 'sglang', stream: true },
    },
  })
}, 60_000)
afterAll(() => house.close())

const batch = (policy: JsonObject, some: JsonObject = {}): JsonObject => ({
  id: `forms-${count++}`,
  tasks: [{ task: 'arithmetic/sum-0' }, { task: 'arithmetic/sum-1' }],
  group_size: 2,
  mode: 'eval',
  policy: { ...policy, sampling: { max_tokens: 256, seed: 5 } },
  groups: { attempts: 1 },
  ...some,
})

interface Recorded {
  path: string
  seed: number
  ids: number[]
}

describe.each([
  ['main', 'chat', '/v1/chat/completions'],
  ['main', 'tokens', '/v1/completions'],
  ['main-stream', 'chat', '/v1/chat/completions'],
  ['main-stream', 'tokens', '/v1/completions'],
  ['generate', 'tokens', '/inference/v1/generate'],
  ['generate-stream', 'tokens', '/inference/v1/generate'],
  ['tokenized', 'tokens', '/v1/completions'],
  ['sglang', 'chat', '/v1/chat/completions'],
  ['sglang', 'tokens', '/generate'],
  ['sglang-stream', 'chat', '/v1/chat/completions'],
  ['sglang-stream', 'tokens', '/generate'],
])('backend %s in mode %s', (backend, mode, path) => {
  test('delivers the ids that were sampled, masked and with a log-probability each', async () => {
    const before = (await recorded()).length
    const { groups } = await house.run(batch({ backend, mode }))
    const sampled = (await recorded()).slice(before)
    expect(new Set(sampled.map((one) => one.path))).toEqual(new Set([path]))
    const delivered: number[][] = []
    for (const { outcome, samples, turns } of groups.flatMap(({ episodes }) => episodes)) {
      expect(outcome).toBe('ok')
      for (const { sample, start, end } of turns) {
        const row = samples[sample ?? -1]
        if (!row) throw new Error('a turn without its sample')
        delivered.push(row.ids.slice(start, end))
        expect(row.mask.slice(start, end).every((bit) => bit === 1)).toBe(true)
        for (const value of row.logprobs.slice(start, end)) expect(value).toBeLessThan(0)
      }
      for (const row of samples)
        expect(row.mask.filter((bit) => bit === 1)).toHaveLength(
          turns.reduce((sum, { start, end }) => sum + end - start, 0),
        )
    }
    const sorted = (all: number[][]) => all.map((ids) => ids.join(' ')).sort()
    expect(sorted(delivered)).toEqual(sorted(sampled.map(({ ids }) => ids)))
  })

  test.each(['badjson', 'cut', 'noend', 'nofinish'])(
    'a reply that is hit by %s is infra_backend',
    async (kind) => {
      await house.setFaults({ kind: kind as 'cut', match: arithmeticRequest(0), turns: [1] })
      const { groups } = await house.run(batch({ backend, mode }))
      await house.setFaults()
      const outcomes = (task: string) =>
        groups.find((group) => group.task === task)?.episodes.map(({ outcome }) => outcome)
      expect(outcomes('arithmetic/sum-0')).toEqual(['infra_backend', 'infra_backend'])
      expect(outcomes('arithmetic/sum-1')).toEqual(['ok', 'ok'])
    },
  )

  test.each(['notokens', 'nologprobs', 'misaligned', 'nan', 'usage', 'empty'])(
    'a reply that is hit by %s breaks the contract',
    async (kind) => {
      await house.setFaults({ kind: kind as 'nan', match: arithmeticRequest(0), turns: [1] })
      const { groups } = await house.run(batch({ backend, mode }))
      await house.setFaults()
      const group = groups.find(({ task }) => task === 'arithmetic/sum-0')
      for (const { outcome, reason } of group?.episodes ?? []) {
        expect(outcome).toBe('contract_violation')
        expect(reason).toMatch(/ids|logprobs|tokens|choices/)
      }
    },
  )
})

/** Engines and gateways that echo what they sampled with; `/inference/v1/generate` and streams have no place for it. */
test.each([
  ['main', 'chat'],
  ['main', 'tokens'],
  ['sglang', 'chat'],
  ['sglang', 'tokens'],
])(
  'backend %s in mode %s that echoes another temperature breaks the contract, and is counted',
  async (backend, mode) => {
    const before = await mismatches(backend)
    await house.setFaults({ kind: 'echo', match: arithmeticRequest(0), turns: [1] })
    const { groups } = await house.run(batch({ backend, mode }))
    await house.setFaults()
    const of = (task: string) => groups.find((group) => group.task === task)?.episodes ?? []
    for (const { outcome, reason, reward, samples } of of('arithmetic/sum-0')) {
      expect([outcome, reward, samples]).toEqual(['contract_violation', null, []])
      expect(reason).toBe('temperature: the backend sampled with 0, but 1 was asked for')
    }
    expect(of('arithmetic/sum-0')).toHaveLength(2)
    expect(of('arithmetic/sum-1').map(({ outcome }) => outcome)).toEqual(['ok', 'ok'])
    expect(await mismatches(backend)).toBe(before + 2)
  },
)

test('the first prompt of the backend’s own template is the one that the model folder gives', async () => {
  const rows = async (backend: string) => {
    const { groups } = await house.run(batch({ backend, mode: 'tokens' }))
    return groups.flatMap(({ episodes }) =>
      episodes.map(({ samples }) => samples[0]?.ids.slice(0, samples[0].prompt_length)),
    )
  }
  const before = (await house.stats()).requests['/tokenize'] ?? 0
  expect(await rows('tokenized')).toEqual(await rows('main'))
  // Once for each episode, and never for a later turn.
  expect((await house.stats()).requests['/tokenize']).toBe(before + 4)
})

async function recorded(): Promise<Recorded[]> {
  return ((await house.stats()) as unknown as { records: Recorded[] }).records
}

async function mismatches(backend: string): Promise<number> {
  const text = await (await fetch(`${house.url}/metrics`)).text()
  const series = `paddock_sampling_mismatch_total{backend="${backend}",param="temperature"} `
  const line = text.split('\n').find((one) => one.startsWith(series))
  return Number(line?.slice(series.length) ?? 0)
}
