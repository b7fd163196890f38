// One attempt: whatever a thread or a backend does, it ends within a second of its nearest limit, which it names.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import type { JsonObject } from '../../../protocol/json.ts'
import type { Engine, EpisodePlan } from '../../../rollout/episode.ts'
import { advance, begin, conclude, emptyState, type TurnResult } from '../../../rollout/turn.ts'
import { labPlan, writeLab } from '../../testkit/lab-environment.testkit.ts'
import { labPool } from '../../testkit/pool.testkit.ts'
import { createBeside } from '../asking/beside.ts'
import { createGraders } from '../asking/graders.ts'
import type { PolicyClient } from '../policy/policy-client.ts'
import type { JobKind, Jobs, TurnJobResult } from '../threads/jobs.ts'
import { GivenUp, type Pool } from '../threads/pool.ts'
import { createStateCache } from '../threads/state-cache.ts'
import { type Deadlines, type PlayerWorld, playAttempt } from './player.ts'

const lab = writeLab()
let pool: Pool
beforeAll(async () => {
  pool = labPool(lab.module, { threads: 2 })
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
  threads: Pick<Pool, 'run'> = pool,
) {
  const far = performance.now() + 60_000
  const deadlines: Deadlines = { turnMs: 60_000, episodeAt: far, groupAt: far, ...some }
  const beside = createBeside({
    client,
    graders: createGraders({}),
    rewardModels: { post: noRewardModel },
  })
  const world: PlayerWorld = {
    pool: threads as Pool,
    client,
    beside,
    keepTurn: async () => {},
    onEvents: () => {},
  }
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
      setImmediate(() => withdraw.abort())
      return reply('stop', 'It is 5.', 9)
    },
  }
  const { outcome, sealed } = await play(
    { trouble: 'hang', at: 'grade' },
    client,
    {},
    withdraw.signal,
  )
  expect(outcome).toBe('aborted')
  expect(sealed?.header).toMatchObject({ outcome: 'aborted', reward: null })
}, 60_000)

test('an attempt whose thread hangs ends by its limit, while the thread hangs on', async () => {
  const { outcome, reason } = await play({ trouble: 'hang', at: 'step' }, says('stop', CALL), {
    turnMs: 500,
  })
  expect([outcome, reason]).toEqual(['timeout', 'turn_timeout_s ran out while turn 0 was played'])
}, 60_000)

const LIMIT_MS = 700
const within = (name: 'turn' | 'episode' | 'group'): Partial<Deadlines> =>
  name === 'turn' ? { turnMs: LIMIT_MS } : { [`${name}At`]: performance.now() + LIMIT_MS }

/** Threads that hang where they are told to, under a clock of the test's own. */
async function hangingThreads(...kinds: JobKind[]): Promise<Pick<Pool, 'run'>> {
  const { default: environment } = await import(lab.module)
  const engine: Engine = { environment: () => environment, chatModel: () => null }
  const states = createStateCache(0)
  const crossed = (result: TurnResult): TurnJobResult =>
    result.kind === 'end' ? result : { ...result, state: states.keep(result.state) }
  const play = (kind: JobKind, input: never) => {
    const { state, reply, plan, outcome, reason } = input as Played
    if (kind === 'begin') return crossed(begin(input as EpisodePlan, engine))
    if (kind === 'advance') return crossed(advance(states.open(state), reply, engine))
    const open = state ? states.open(state) : emptyState(plan)
    return crossed(conclude(open, outcome, reason, engine))
  }
  return {
    run: (kind, input, patience) =>
      new Promise((resolve, reject) => {
        if (patience?.ended()) return reject(new GivenUp(kind))
        if (!kinds.includes(kind)) return resolve(play(kind, input as never) as never)
        patience?.onEnd(() => reject(new GivenUp(kind)))
      }),
  }
}

type Played = Jobs['advance']['in'] & Jobs['conclude']['in']

describe.each(['turn', 'episode', 'group'] as const)('the limit of the %s', (name) => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
  afterEach(() => void vi.useRealTimers())

  /** The attempt, and the milliseconds that it took. */
  async function timed(client: PolicyClient, ...hanging: JobKind[]) {
    const threads = await hangingThreads(...hanging)
    const started = performance.now()
    let ended = Number.NaN
    const { signal } = new AbortController()
    const playing = play({}, client, within(name), signal, threads).finally(() => {
      ended = performance.now()
    })
    await vi.advanceTimersByTimeAsync(LIMIT_MS + 2000)
    return { ...(await playing), ms: ended - started }
  }

  test.each([
    ['begin', says('stop', CALL)],
    ['advance', says('stop', CALL)],
  ] as const)('bounds a hang in %s', async (kind, client) => {
    const { outcome, reason, sealed, ms } = await timed(client, kind)
    expect(outcome).toBe('timeout')
    expect(reason).toContain(`${name}_timeout_s`)
    expect(sealed?.header).toMatchObject({ outcome: 'timeout', reward: null })
    expect(ms).toBeLessThan(LIMIT_MS + 10)
  })

  test('bounds an attempt of which no thread can seal what there is', async () => {
    const { outcome, reason, sealed, ms } = await timed(says('stop', CALL), 'advance', 'conclude')
    expect([outcome, sealed]).toEqual(['timeout', null])
    expect(reason).toContain(`${name}_timeout_s`)
    expect(ms).toBeLessThan(LIMIT_MS + 1000)
  })

  test('bounds a turn that its backend breaks off again and again', async () => {
    const { outcome, reason, ms } = await timed(says('abort', '', 0))
    expect(outcome).toBe('timeout')
    expect(reason).toContain(`${name}_timeout_s`)
    expect(ms).toBeLessThan(LIMIT_MS + 10)
  })
})
