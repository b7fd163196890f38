// An engine that comes back with other weights than the announced ones: nothing of it is trained on until it has them.
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { SimulatorOptions } from '../bench/simulator/options.ts'
import { startSimulator } from '../bench/simulator/server.ts'
import type { DeliveredGroup } from '../protocol/group.ts'
import type { JsonObject } from '../protocol/json.ts'
import { type House, openHouse, scripts } from './testkit/house.testkit.ts'

const closing: (() => unknown)[] = []
afterAll(async () => {
  for (const close of closing.reverse()) await close()
})

async function engine(options: Partial<SimulatorOptions>) {
  const simulator = await startSimulator({ scripts: scripts(), ...options })
  closing.push(() => simulator.close())
  const { url } = simulator
  return {
    url,
    async reports(version: string) {
      const body = JSON.stringify({ new_version: version, abort_all_requests: false })
      await fetch(`${url}/update_weight_version`, { method: 'POST', body })
    },
    async asked(): Promise<number> {
      const { requests } = (await (await fetch(`${url}/simulator/stats`)).json()) as {
        requests: Record<string, number>
      }
      return Object.values(requests).reduce((sum, count) => sum + count, 0)
    },
  }
}

let house: House
let kept: Awaited<ReturnType<typeof engine>>
let replaced: typeof kept
let unnamed: (typeof kept)[]

beforeAll(async () => {
  kept = await engine({ weightVersion: '9' })
  replaced = await engine({ weightVersion: '9' })
  unnamed = [await engine({ weightVersion: 'default' }), await engine({ weightVersion: 'default' })]
  house = await openHouse({
    backends: {
      pair: { dialect: 'sglang', urls: [kept.url, replaced.url] },
      unnamed: { dialect: 'sglang', urls: unnamed.map(({ url }) => url) },
    },
  })
  closing.push(() => house.close())
  for (const backend of ['pair', 'unnamed']) await announce({ backend, version: 9 })
}, 120_000)

async function announce(body: JsonObject) {
  const answer = await fetch(`${house.url}/v1/policy`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  expect(answer.status).toBe(200)
}

async function play(backend: string, groups: number): Promise<DeliveredGroup[]> {
  const played = await house.run({
    tasks: Array.from({ length: groups }, (_, n) => ({ task: `arithmetic/sum-${n}` })),
    group_size: 10,
    policy: { backend, mode: 'tokens', sampling: { max_tokens: 256 } },
  })
  return played.groups
}

const versions = (groups: readonly DeliveredGroup[]) =>
  new Set(groups.flatMap(({ policy }) => [policy.version_min, policy.version_max]))

async function retries(): Promise<number> {
  const text = await (await fetch(`${house.url}/metrics`)).text()
  const line = /^paddock_backend_retries_total\{backend="pair",reason="version"\} (\d+)/m.exec(text)
  return Number(line?.[1])
}

test('O10: replies of initial or old weights are asked for again elsewhere, counted, and never trained on', async () => {
  expect(await retries()).toBe(0)
  for (const label of ['default', '3']) {
    await replaced.reports(label)
    const counted = await retries()
    // An engine that is held is asked again within seconds, by one request.
    await untilTrue(async () => {
      const groups = await play('pair', 5)
      expect(groups.flatMap(({ episodes }) => episodes)).toHaveLength(50)
      expect(versions(groups)).toEqual(new Set([9]))
      return (await retries()) > counted
    })
  }
  const held = await replaced.asked()
  await play('pair', 5)
  // Of 100 turns it gets a probe or two.
  expect((await replaced.asked()) - held).toBeLessThan(10)

  await replaced.reports('9')
  const [before, counted] = [await replaced.asked(), await retries()]
  await untilTrue(async () => {
    await play('pair', 2)
    return (await replaced.asked()) - before >= 20
  })
  expect(await retries()).toBe(counted)
}, 180_000)

async function untilTrue(holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 60_000
  while (!(await holds())) if (performance.now() > deadline) throw new Error('it never came')
}

test('engines that never name a version are asked all the same, and their tokens have the announced one', async () => {
  const groups = await play('unnamed', 3)
  expect(groups.flatMap(({ episodes }) => episodes)).toHaveLength(30)
  const [a, b] = [await unnamed[0]!.asked(), await unnamed[1]!.asked()]
  expect(Math.min(a, b)).toBeGreaterThan(0)
}, 120_000)
