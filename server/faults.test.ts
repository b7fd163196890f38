// Every fault of a policy backend ends in its own outcome, within its deadline, and the neighbours notice nothing.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { DeliveredGroup } from '../protocol/group.ts'
import type { JsonObject } from '../protocol/json.ts'
import { arithmeticRequest, type House, openHouse } from './testkit/house.testkit.ts'

let house: House
let count = 0
beforeAll(async () => {
  house = await openHouse()
}, 60_000)
afterAll(() => house.close())

/** Task 0 is hit by the fault, tasks 1 and 2 are its neighbours; in `eval` failed groups are delivered too. */
const batch = (some: JsonObject = {}): JsonObject => ({
  id: `faults-${count++}`,
  tasks: [0, 1, 2].map((index) => ({ task: `arithmetic/sum-${index}` })),
  group_size: 2,
  mode: 'eval',
  policy: { backend: 'main', sampling: { max_tokens: 256 } },
  groups: { attempts: 1 },
  limits: { turn_timeout_s: 3 },
  ...some,
})

function expectNeighboursFine(groups: DeliveredGroup[]) {
  for (const index of [1, 2]) {
    const neighbour = groups.find((group) => group.task === `arithmetic/sum-${index}`)
    expect(neighbour?.episodes.map(({ outcome }) => outcome)).toEqual(['ok', 'ok'])
    expect(neighbour?.episodes.map(({ reward }) => reward)).toEqual([1, 1])
  }
}

async function hit(fault: JsonObject, some: JsonObject = {}) {
  await house.setFaults({ match: arithmeticRequest(0), ...fault })
  const started = performance.now()
  const { groups, progress } = await house.run(batch(some))
  const seconds = (performance.now() - started) / 1000
  expectNeighboursFine(groups)
  const group = groups.find(({ task }) => task === 'arithmetic/sum-0') as DeliveredGroup
  for (const episode of group.episodes)
    expect(episode).toMatchObject({ reward: null, rewards: null, advantage: null })
  return { group, progress, seconds }
}

const backendFaults = [
  '500',
  '502',
  '503',
  '429',
  'reset',
  'cut',
  'html',
  'badjson',
  'nofinish',
  'redirect',
]

describe.each(['main', 'sglang'] as const)('over backend %s', (backend) => {
  const policy = {
    backend,
    mode: backend === 'main' ? 'chat' : 'tokens',
    sampling: { max_tokens: 256 },
  }

  test.each(backendFaults)('%s ends as infra_backend', async (kind) => {
    const { group } = await hit({ kind }, { policy })
    expect(group.verdict).toBe('infra')
    for (const { outcome, reason } of group.episodes) {
      expect(outcome).toBe('infra_backend')
      expect(reason).toMatch(/\w{4}/)
    }
  })

  const contractFaults: [string, RegExp][] = [
    ['notokens', /token_ids|output_ids|output_token_logprobs/],
    ['nologprobs', /logprobs/],
    ['misaligned', /logprobs|output_ids/],
    ['nan', /logprobs/],
    ['usage', /completion_tokens/],
    ...(backend === 'main' ? ([['empty', /choices/]] as [string, RegExp][]) : []),
  ]
  test.each(contractFaults)(
    '%s is a contract violation that names the field',
    async (kind, field) => {
      const { group } = await hit({ kind }, { policy })
      expect(group.verdict).toBe('contract_violation')
      for (const { outcome, reason } of group.episodes) {
        expect(outcome).toBe('contract_violation')
        expect(reason).toMatch(field)
      }
    },
  )

  test.each(['hang', 'trickle'])(
    '%s ends as timeout at the turn limit, which it names',
    async (kind) => {
      const { group, seconds } = await hit({ kind }, { policy, limits: { turn_timeout_s: 1 } })
      expect(group.verdict).toBe('timeout')
      for (const { outcome, reason } of group.episodes) {
        expect(outcome).toBe('timeout')
        expect(reason).toContain('turn_timeout_s')
      }
      expect(seconds).toBeLessThan(1 + 1 + 1)
    },
  )
})

test.each([
  ['episode_timeout_s', { turn_timeout_s: 30, episode_timeout_s: 1 }],
  ['group_timeout_s', { turn_timeout_s: 30, group_timeout_s: 1 }],
])('a wait that passes %s first names that limit', async (name, limits) => {
  const { group, seconds } = await hit({ kind: 'hang' }, { limits })
  for (const { outcome, reason } of group.episodes) {
    expect(outcome).toBe('timeout')
    expect(reason).toContain(name)
  }
  expect(seconds).toBeLessThan(1 + 1 + 1)
})

test('a backend whose template drops the tools is a contract violation that names a tool', async () => {
  const { group } = await hit({ kind: 'dropstools' })
  for (const { outcome, reason } of group.episodes) {
    expect(outcome).toBe('contract_violation')
    expect(reason).toContain('calculator')
  }
})

test('a transient failure costs a retry of the request and no episode', async () => {
  await house.setFaults({ kind: '503', match: arithmeticRequest(0), times: 1 })
  const { groups, progress } = await house.run(batch())
  expect(groups.flatMap(({ episodes }) => episodes.map(({ outcome }) => outcome))).toEqual(
    Array(6).fill('ok'),
  )
  expect(progress.episodes.retried).toEqual({})
})

test('a failed attempt is played again, alone, and only its last try counts', async () => {
  await house.setFaults({ kind: 'nologprobs', match: arithmeticRequest(0), turns: [1], times: 1 })
  const { groups, progress } = await house.run(batch({ groups: { attempts: 3 } }))
  const group = groups.find(({ task }) => task === 'arithmetic/sum-0')
  // A seed is made of the attempt too, so the second try is another request and the fault hits it once more.
  expect(group?.episodes.map(({ outcome }) => outcome)).toEqual([
    'contract_violation',
    'contract_violation',
  ])
  expect(group?.episodes.map(({ attempt }) => attempt)).toEqual([3, 3])
  expect(progress.episodes.retried).toEqual({ contract_violation: 4 })
  expect(progress.episodes).toMatchObject({ total: 6, started: 6, finished: 6, in_flight: 0 })
})

test('a failed group is never leased in mode train: it settles as dropped, with its cost and reason', async () => {
  await house.setFaults({ kind: 'usage', match: arithmeticRequest(2), turns: [2] })
  const { groups, progress } = await house.run(batch({ mode: 'train' }))
  expect(groups.map(({ task }) => task).sort()).toEqual(['arithmetic/sum-0', 'arithmetic/sum-1'])
  expect(progress.groups).toMatchObject({
    finished: 3,
    settled: { acked: 2, dropped: 1 },
    in_flight: 0,
  })
  const [dropped] = progress.groups.dropped
  expect(dropped).toMatchObject({ task: 'arithmetic/sum-2', verdict: 'contract_violation' })
  expect(dropped?.reason).toContain('completion_tokens')
  expect(dropped?.cost.completion_tokens).toBeGreaterThan(0)
})

test.each([
  ['toolcalls', 'tool_calls', '--tool-call-parser'],
  ['reasoning', 'reasoning_content', '--reasoning-parser'],
])(
  'without a tokenizer a reply with %s is refused, naming the engine flag to drop',
  async (kind, field, flag) => {
    const bare = await openHouse({
      tokens: false,
      simulator: { style: { format: 'hermes', thinking: true, mix: { correct: 1 } } },
    })
    try {
      const policy = { thinking: 'auto', sampling: { max_tokens: 512 } }
      const calm = await bare.run(batch({ policy }))
      for (const { outcome, samples, turns } of calm.groups.flatMap((group) => group.episodes)) {
        expect([outcome, samples]).toEqual(['ok', []])
        for (const turn of turns) expect(turn.sample).toBe(null)
      }
      await bare.setFaults({ kind: kind as 'toolcalls' })
      const { groups } = await bare.run(batch({ policy }))
      for (const { outcome, reason } of groups.flatMap((group) => group.episodes)) {
        expect(outcome).toBe('contract_violation')
        expect(reason).toContain(field)
        expect(reason).toContain(flag)
      }
    } finally {
      await bare.close()
    }
  },
  60_000,
)

test('a backend that nobody listens on is infra_backend, the server lives on, and /readyz names it', async () => {
  const alone = await openHouse({ backendUrl: 'http://127.0.0.1:9' })
  try {
    const { groups } = await alone.run(batch())
    for (const { outcome, reason } of groups.flatMap((group) => group.episodes)) {
      expect(outcome).toBe('infra_backend')
      expect(reason).toContain('ECONNREFUSED')
    }
    expect((await fetch(`${alone.url}/healthz`)).status).toBe(200)
    const ready = await fetch(`${alone.url}/readyz`)
    expect(ready.status).toBe(503)
    expect(await ready.text()).toContain('backend main gives no tokens')
  } finally {
    await alone.close()
  }
}, 60_000)
