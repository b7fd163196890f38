// One attempt: whatever a thread or a backend does, it ends within a second of its nearest limit, which it names.
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JsonObject } from '../../protocol/json.ts'
import { labPlan, writeLab } from '../testkit/lab-environment.testkit.ts'
import { createBeside } from './beside.ts'
import { createGraders } from './graders.ts'
import { type Deadlines, type PlayerWorld, playAttempt } from './player.ts'
import type { PolicyClient } from './policy-client.ts'
import { createPool, type Pool } from './pool.ts'

const lab = writeLab()
let pool: Pool
beforeAll(async () => {
  pool = createPool({
    threads: 2,
    maxTurnSeconds: 4,
    heapMb: 96,
    environments: { lab: pathToFileURL(lab.module).href },
    models: {},
  })
  await pool.ready()
}, 60_000)
afterAll(() => pool.close())

const reply = (finish_reason: string, content: string, completion_tokens: number) => ({
  kind: 'reply' as const,
  status: 200,
  headers: { 'content-type': 'application/json' },
  body: new TextEncoder().encode(
    JSON.stringify({
      choices: [{ message: { role: 'assistant', content }, finish_reason }],
      usage: { prompt_tokens: 9, completion_tokens },
    }),
  ),
})
const CALL = '<tool_call>\n{"name": "measure", "arguments": {}}\n</tool_call>'

/** A backend that is always there. */
const says = (finish: string, text: string, tokens = 9): PolicyClient => ({
  ask: async () => reply(finish, text, tokens),
  inFlight: () => 0,
  blame: () => {},
  resumed: async () => {},
  close: async () => {},
})

const noRewardModel = () => Promise.reject(new Error('there is none'))

async function play(
  spec: JsonObject,
  client: PolicyClient,
  some: Partial<Deadlines> = {},
  signal = new AbortController().signal,
) {
  const far = performance.now() + 60_000
  const deadlines: Deadlines = { turnMs: 60_000, episodeAt: far, groupAt: far, ...some }
  const beside = createBeside({
    client,
    graders: createGraders({}),
    rewardModels: { post: noRewardModel },
  })
  const world: PlayerWorld = { pool, client, beside, keepTurn: async () => {}, onEvents: () => {} }
  return playAttempt(labPlan(spec), deadlines, world, signal)
}

test('an attempt without trouble is ok', async () => {
  const { outcome, sealed } = await play({}, says('stop', 'It is 5.'))
  expect([outcome, sealed?.header.reward]).toEqual(['ok', 0])
})

test('the limit of a turn begins anew with the next turn', async () => {
  let asked = 0
  const slow: PolicyClient = {
    ...says('stop', CALL),
    async ask(_request, deadline) {
      // Each turn may wait for as long as the first.
      expect(deadline - performance.now()).toBeGreaterThan(4_000)
      return asked++ < 2 ? reply('stop', CALL, 9) : reply('stop', 'It is 5.', 9)
    },
  }
  const { outcome } = await play({}, slow, { turnMs: 5_000 })
  expect([outcome, asked]).toEqual(['ok', 3])
})

test('an attempt that is withdrawn while a thread hangs on it ends as aborted', async () => {
  const withdraw = new AbortController()
  const client: PolicyClient = {
    ...says('stop', 'It is 5.'),
    async ask() {
      setTimeout(() => withdraw.abort(), 100)
      return reply('stop', 'It is 5.', 9)
    },
  }
  const { outcome, seconds, sealed } = await play(
    { trouble: 'hang', at: 'grade' },
    client,
    {},
    withdraw.signal,
  )
  expect(outcome).toBe('aborted')
  expect(sealed?.header).toMatchObject({ outcome: 'aborted', reward: null })
  expect(seconds).toBeLessThan(3)
}, 20_000)

const within = (name: 'turn' | 'episode' | 'group', ms: number): Partial<Deadlines> =>
  name === 'turn' ? { turnMs: ms } : { [`${name}At`]: performance.now() + ms }

// Threads that hang work on for a while, so that some of these wait for one all the time: the limit bounds that too.
describe.each(['turn', 'episode', 'group'] as const)('the limit of the %s', (name) => {
  test.each([
    ['reset', 'stop', 'It is 5.'],
    ['step', 'stop', CALL],
    ['grade', 'stop', 'It is 5.'],
  ])(
    'bounds a hang in %s',
    async (at, finish, text) => {
      const { outcome, reason, seconds, sealed } = await play(
        { trouble: 'hang', at },
        says(finish, text),
        within(name, 500),
      )
      expect(outcome).toBe('timeout')
      expect(reason).toContain(`${name}_timeout_s`)
      expect(seconds).toBeLessThan(0.5 + 1)
      if (sealed) expect(sealed.header).toMatchObject({ outcome: 'timeout', reward: null })
    },
    20_000,
  )

  test('bounds a turn that its backend breaks off again and again', async () => {
    const { outcome, reason, seconds } = await play({}, says('abort', '', 0), within(name, 700))
    expect(outcome).toBe('timeout')
    expect(reason).toContain(`${name}_timeout_s`)
    expect(seconds).toBeLessThan(0.7 + 1)
  }, 20_000)
})
