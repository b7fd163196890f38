// Public reports of policy backends that went wrong, played through the whole server.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { SimulatorOptions } from '../bench/simulator/options.ts'
import { startSimulator } from '../bench/simulator/server.ts'
import type { DeliveredEpisode } from '../protocol/group.ts'
import type { JsonObject } from '../protocol/json.ts'
import { type House, openHouse, scripts } from './testkit/house.testkit.ts'
import { type Crossing, startProxy } from './testkit/recording-proxy.testkit.ts'

/** Simulators by what is wrong with them, each behind a proxy that keeps what crosses. */
const closing: (() => unknown)[] = []
async function backend(
  options: Partial<SimulatorOptions>,
  afterReply?: (crossing: Crossing) => Promise<void>,
) {
  const simulator = await startSimulator({ scripts: scripts(), ...options })
  const proxy = await startProxy(simulator.url, afterReply)
  closing.push(proxy.close, simulator.close)
  return { proxy, url: simulator.url }
}
type Backend = Awaited<ReturnType<typeof backend>>

const style = { format: 'hermes' as const, thinking: false, mix: { truncated: 1 } }
const varied = {
  format: 'hermes' as const,
  thinking: true,
  mix: { correct: 1, wrong: 1, prose: 1 },
}
let house: House
let raw: Backend
let eater: Backend
let healthy: Backend
let endless: Backend
let seeded: Backend[]

beforeAll(async () => {
  raw = await backend({ logprobsMode: 'raw' })
  endless = await backend({ style, weightVersion: '7' }, newVersionAfterAbort)
  eater = await backend({ faults: [{ kind: 'eaten', rate: 1 }] })
  healthy = await backend({})
  const falling = { fallbackSeed: 0, style: varied }
  seeded = [await backend(falling), await backend(falling)]
  const deaf = { faults: [{ kind: 'seedless' as const, rate: 1 }] }
  const seedless = [await backend(deaf), await backend(deaf)]
  const urls = (...backends: Backend[]) => backends.map(({ proxy }) => proxy.url)
  house = await openHouse({
    backends: {
      raw: { dialect: 'sglang', urls: urls(raw), logprobs_mode: 'raw' },
      endless: { dialect: 'sglang', urls: urls(endless) },
      eater: { dialect: 'vllm', urls: urls(eater) },
      mixed: { dialect: 'vllm', urls: urls(eater, healthy) },
      again: { dialect: 'vllm', urls: urls(eater, healthy) },
      seeded: { dialect: 'vllm', urls: urls(...seeded) },
      seedless: { dialect: 'vllm', urls: urls(...seedless) },
    },
  })
}, 120_000)
afterAll(async () => {
  await house.close()
  for (const close of closing) await close()
})

async function setFaults({ url }: { url: string }, ...faults: JsonObject[]) {
  await fetch(`${url}/simulator/faults`, { method: 'POST', body: JSON.stringify({ faults }) })
}

/** The weights change while the turn is broken off, and what comes then comes whole. */
async function newVersionAfterAbort({ reply }: Crossing) {
  const meta = reply.meta_info as { finish_reason: { type: string } } | undefined
  if (meta?.finish_reason.type !== 'abort') return
  await setFaults(endless)
  const body = JSON.stringify({ new_version: '8', abort_all_requests: false })
  await fetch(`${endless.url}/update_weight_version`, { method: 'POST', body })
}

let count = 0
const batch = (some: JsonObject): JsonObject => ({
  id: `report-${count++}`,
  tasks: [{ task: 'arithmetic/sum-0' }],
  group_size: 1,
  mode: 'eval',
  groups: { attempts: 1 },
  ...some,
})

test.each([0.5, 1])(
  'B01: at temperature %s log-probabilities are delivered as they came, never rescaled',
  async (temperature) => {
    raw.proxy.crossings.length = 0
    const sampling = { max_tokens: 256, temperature }
    const { groups } = await house.run(
      batch({ policy: { backend: 'raw', mode: 'tokens', sampling } }),
    )
    const came = raw.proxy.crossings.flatMap(
      ({ reply }) => (reply.meta_info as Meta).output_token_logprobs,
    )
    const [row] = groups.flatMap(({ episodes }) => episodes)[0]?.samples ?? []
    const kept = row?.logprobs.filter((_, index) => row.mask[index] === 1) ?? []
    expect(kept.length).toBeGreaterThan(5)
    expect(kept).toEqual(came.map(([logprob]) => Math.fround(logprob)))
    expect(groups[0]?.policy.logprobs_mode).toBe('raw')
  },
)

test('B02: ids that an engine’s tool parser lost are refused against usage, and leave no sample', async () => {
  const policy = { backend: 'eater', sampling: { max_tokens: 256 } }
  const { groups } = await house.run(batch({ policy }))
  for (const { outcome, reason, reward, samples } of groups.flatMap((g) => g.episodes)) {
    expect([outcome, reward, samples]).toEqual(['contract_violation', null, []])
    expect(reason).toContain('token_ids')
    expect(reason).toContain('usage.completion_tokens')
  }
  expect(groups[0]?.policy.logprobs_mode).toBe('unknown')
})

test('B02: the next attempt asks another endpoint first', async () => {
  eater.proxy.crossings.length = 0
  const policy = { backend: 'mixed', sampling: { max_tokens: 256 } }
  const { groups, progress } = await house.run(batch({ policy, groups: { attempts: 2 } }))
  expect(groups.flatMap(({ episodes }) => episodes.map(({ outcome }) => outcome))).toEqual(['ok'])
  expect(progress.episodes.retried).toEqual({ contract_violation: 1 })
  expect(eater.proxy.crossings).toHaveLength(1)
  expect(healthy.proxy.crossings.length).toBeGreaterThan(0)
})

describe('B05: an answer that is broken off', () => {
  const asked = () =>
    batch({
      policy: { backend: 'endless', mode: 'tokens', sampling: { max_tokens: 100 } },
      limits: { max_turns: 1 },
    })
  const sent = () =>
    endless.proxy.crossings.map(
      ({ request }) => request as unknown as { input_ids: number[]; sampling_params: JsonObject },
    )
  const sampledOf = ({ samples }: DeliveredEpisode) =>
    samples.flatMap(({ mask }) => mask).filter((bit) => bit === 1).length

  async function run(...faults: JsonObject[]): Promise<DeliveredEpisode> {
    endless.proxy.crossings.length = 0
    await setFaults(endless, ...faults)
    const { groups } = await house.run(asked())
    return groups.flatMap(({ episodes }) => episodes)[0] as DeliveredEpisode
  }

  test('after 60 of 100 tokens asks for 40 more, with one border between two versions', async () => {
    const episode = await run({ kind: 'abort', after: 60 })
    const [first, second] = sent()
    const prompt = first?.input_ids.length ?? 0
    expect(first?.sampling_params.max_new_tokens).toBe(100)
    expect(second?.sampling_params.max_new_tokens).toBe(40)
    expect(second?.input_ids).toHaveLength(prompt + 60)
    expect(sampledOf(episode)).toBe(100)
    expect(episode.samples[0]?.versions.filter(({ start }) => start >= prompt)).toMatchObject([
      { version: 7, start: prompt, end: prompt + 60 },
      { version: 8, start: prompt + 60, end: prompt + 100 },
    ])
    expect(episode.outcome).toBe('ok_truncated')
  })

  test('after the whole budget ends as length, and nothing more is asked', async () => {
    const episode = await run({ kind: 'abort', after: 100 })
    expect(sent()).toHaveLength(1)
    expect([episode.outcome, sampledOf(episode)]).toEqual(['ok_truncated', 100])
  })

  test('a context that is exceeded is said once and never asked again', async () => {
    const episode = await run({ kind: 'context' })
    expect(endless.proxy.crossings.map(({ status }) => status)).toEqual([400])
    expect(episode).toMatchObject({ outcome: 'infra_backend', reward: null })
    expect(episode.reason).toContain('maximum context length')
  })
})

describe('B09: engines that fall back to one seed', () => {
  test('get one with every request, another for each member, the same for the same batch seed', async () => {
    const runs: unknown[][] = []
    /** As `turn: seed`, of all that was asked and of all that the trajectories keep. */
    const asked: string[] = []
    const recorded: string[] = []
    for (let run = 0; run < 2; run++) {
      for (const { proxy } of seeded) proxy.crossings.length = 0
      const sampling = { max_tokens: 512, temperature: 1, seed: 11 }
      const policy = { backend: 'seeded', thinking: 'auto', sampling }
      const { groups } = await house.run(batch({ policy, group_size: 4 }))
      const first = seeded
        .flatMap(({ proxy }) => proxy.crossings)
        .filter(({ request }) => (request.messages as unknown[]).length === 2)
      runs.push(first.map(({ request }) => request.seed).sort())
      for (const { request } of seeded.flatMap(({ proxy }) => proxy.crossings))
        asked.push(`${turnOf(request)}: ${request.seed}`)
      for (const { id } of groups[0]?.episodes ?? [])
        for (const { turn, seed } of (await trajectory(id)).turns) recorded.push(`${turn}: ${seed}`)
      for (const { proxy } of seeded) expect(proxy.crossings.length).toBeGreaterThan(0)
      expect(groups[0]?.stats.distinct).toBe(4)
    }
    expect(new Set(runs[0]).size).toBe(4)
    expect(runs[0]?.every((seed) => Number.isSafeInteger(seed))).toBe(true)
    expect(runs[1]).toEqual(runs[0])
    expect(new Set(asked).size).toBe(asked.length / 2)
    expect(recorded.sort()).toEqual(asked.sort())
  })

  test('an attempt that is played again has seeds of its own', async () => {
    for (const { proxy } of [eater, healthy]) proxy.crossings.length = 0
    const policy = { backend: 'again', sampling: { max_tokens: 256, temperature: 1, seed: 11 } }
    const { groups } = await house.run(batch({ policy, groups: { attempts: 2 } }))
    const [episode] = groups[0]?.episodes ?? []
    const seeds = (...backends: Backend[]) =>
      backends.flatMap(({ proxy }) => proxy.crossings.map(({ request }) => request.seed))
    expect(episode?.attempt).toBe(2)
    expect(new Set(seeds(eater, healthy)).size).toBe(1 + seeds(healthy).length)
    const { turns } = await trajectory(episode?.id ?? '')
    expect(turns.map(({ seed }) => seed)).toEqual(seeds(healthy))
  })

  test('and ignore what is sent are found: the group is one completion, and counted', async () => {
    const policy = { backend: 'seedless', sampling: { max_tokens: 256 } }
    const { groups, progress } = await house.run(batch({ policy, group_size: 4 }))
    expect(groups[0]).toMatchObject({ greedy_suspect: true, stats: { distinct: 1 } })
    expect(progress.groups.greedy_suspect).toEqual([groups[0]?.id])
    const metrics = await (await fetch(`${house.url}/metrics`)).text()
    expect(metrics).toMatch(/paddock_groups_identical_total\{[^}]*env="arithmetic"[^}]*\} 1/)
  })
})

/** What is kept of an episode to read. */
async function trajectory(id: string): Promise<{ turns: { turn: number; seed: number }[] }> {
  return (await fetch(`${house.url}/v1/episodes/${encodeURIComponent(id)}`)).json() as never
}

/** System and user open a conversation, and each turn adds the assistant's message to it. */
const turnOf = ({ messages }: Crossing['request']) =>
  (messages as { role: string }[]).filter(({ role }) => role === 'assistant').length

interface Meta {
  output_token_logprobs: [number, number, null][]
}
