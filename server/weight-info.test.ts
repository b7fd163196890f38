// vLLM's completions name no version: with `weight_info` the engine is asked around each of them, and tapes say so.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSimulator } from '../bench/simulator/server.ts'
import type { JsonObject } from '../protocol/json.ts'
import { type House, openHouse, scripts } from './testkit/house.testkit.ts'
import { type Crossing, startProxy } from './testkit/recording-proxy.testkit.ts'

const closing: (() => unknown)[] = []
afterAll(async () => {
  for (const close of closing.reverse()) await close()
})

/** An engine behind a proxy; null: it has no /weight_info that tells anything. */
async function engine(version: string | null, afterReply?: (at: Crossing) => Promise<void>) {
  const simulator = await startSimulator({
    scripts: scripts(),
    weightVersion: version ?? '',
    faults: version === null ? [{ kind: 'noversion', rate: 1 }] : [],
  })
  const proxy = await startProxy(simulator.url, afterReply)
  closing.push(() => simulator.close(), proxy.close)
  return { url: simulator.url, proxy }
}
type Engine = Awaited<ReturnType<typeof engine>>

let house: House
let updated: Engine
let replaced: Engine
beforeAll(async () => {
  const steady = await engine('7')
  const silent = await engine(null)
  updated = await engine('7', async () => reports(updated, '8'))
  replaced = await engine('default')
  const asked = (...engines: Engine[]) => ({
    dialect: 'vllm',
    weight_info: true,
    urls: engines.map(({ proxy }) => proxy.url),
  })
  house = await openHouse({
    backends: {
      asked: asked(steady),
      unasked: { ...asked(steady), weight_info: false },
      silent: asked(silent),
      updated: asked(updated),
      pair: asked(replaced, steady),
    },
  })
  closing.push(() => house.close())
}, 120_000)

async function reports({ url }: Engine, version: string) {
  const body = JSON.stringify({ new_version: version, abort_all_requests: false })
  await fetch(`${url}/update_weight_version`, { method: 'POST', body })
}

async function play(backend: string, policy: JsonObject = {}) {
  const { groups } = await house.run({
    tasks: [{ task: 'arithmetic/sum-0' }],
    group_size: 1,
    mode: 'eval',
    policy: { backend, sampling: { max_tokens: 256 }, ...policy },
  })
  const episode = groups[0]?.episodes[0]
  expect(episode?.outcome).toBe('ok')
  const sampled = episode?.turns.flatMap(({ sample, start }) =>
    episode.samples[sample ?? -1]?.versions.filter((span) => span.start === start),
  )
  return { sampled, policy: groups[0]?.policy }
}

test.each(['chat', 'tokens'])(
  'in mode %s every turn has the version that was told before and after it, as approximate',
  async (mode) => {
    const { sampled, policy } = await play('asked', { mode })
    expect(sampled).not.toHaveLength(0)
    for (const span of sampled ?? []) expect(span).toMatchObject({ version: 7, approximate: true })
    expect(policy).toMatchObject({ version_min: 7, version_max: 7 })
  },
)

test.each(['unasked', 'silent'])('backend %s has no version', async (backend) => {
  const { sampled, policy } = await play(backend)
  for (const span of sampled ?? []) expect(span?.version).toBe(null)
  expect(policy).toMatchObject({ version_min: null, version_max: null })
})

test('where the weights change during the call it is the older version', async () => {
  const { sampled, policy } = await play('updated')
  expect(sampled?.[0]).toMatchObject({ version: 7, approximate: true })
  expect(policy).toMatchObject({ version_min: 7, version_max: 8 })
})

test('an engine that has the announced weights no more is not believed: another is asked', async () => {
  const announced = await fetch(`${house.url}/v1/policy`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ backend: 'pair', version: 7 }),
  })
  expect(announced.status).toBe(200)
  const { sampled } = await play('pair')
  for (const span of sampled ?? []) expect(span).toMatchObject({ version: 7, approximate: true })
  expect(replaced.proxy.crossings).toHaveLength(1)
})
