// The pool: a thread that is lost costs one turn, which is played again elsewhere; neighbours notice nothing.
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JsonObject } from '../../protocol/json.ts'
import type { EpisodePlan } from '../../rollout/episode.ts'
import { writeLab } from '../testkit/lab-environment.testkit.ts'
import { createPool, type Pool, type WorkerExit, WorkerLost } from './pool.ts'

const lab = writeLab()
let pool: Pool
const exits: WorkerExit[] = []

beforeAll(async () => {
  pool = createPool({
    threads: 2,
    maxTurnSeconds: 1,
    heapMb: 96,
    environments: { lab: pathToFileURL(lab.module).href },
    models: {},
  })
  pool.onExit((exit) => exits.push(exit))
  await pool.ready()
}, 60_000)

afterAll(() => pool.close())

const plan = (spec: JsonObject): EpisodePlan => ({
  episode: 'b.g0.e0',
  batch: 'b',
  group: 'b.g0',
  groupIndex: 0,
  index: 0,
  attempt: 1,
  task: { id: 'inline/x', environment: 'lab', spec: { request: 'Measure it.', ...spec } },
  seed: 1,
  policy: {
    dialect: 'vllm',
    backend: 'main',
    model: 'm',
    mode: 'chat',
    toolFormat: 'hermes',
    thinking: 'none',
    sampling: { temperature: 1, top_p: 1, max_tokens: 16 },
    seedBase: 'b',
    chatTemplateKwargs: {},
  },
  contract: {
    name: 'lab',
    version: 2,
    fields: { quality: { type: 'number', min: 0, max: 1, required: true } },
    scalar: 'quality',
    components: ['quality'],
  },
  limits: { maxTurns: 4, maxTokens: 1000 },
})

const troubles = [
  ['exit', 'crash'],
  ['memory', 'oom'],
  ['hang', 'hang_killed'],
] as const

describe.each(troubles)('a thread that is lost by %s', (trouble, cause) => {
  test('is replaced, and the same turn is played again with the same result', async () => {
    const before = exits.length
    const quiet = await pool.run('begin', plan({}))
    const once = lab.flag(`once-${trouble}`)
    const troubled = pool.run('begin', plan({ trouble, at: 'reset', once }))
    const neighbours = [1, 2, 3].map(() => pool.run('begin', plan({})))
    const [played, ...others] = await Promise.all([troubled, ...neighbours])
    expect(exits.slice(before)).toEqual([cause])
    for (const one of [played, ...others])
      expect(one).toMatchObject({
        kind: 'request',
        request: (quiet as { request: unknown }).request,
      })
  }, 30_000)

  test('three times in a row gives up with the cause, and the pool works on', async () => {
    const troubled = pool.run('begin', plan({ trouble, at: 'reset' }))
    await expect(troubled).rejects.toMatchObject({ name: 'WorkerLost', exit: cause })
    await expect(troubled).rejects.toThrow(/^begin failed on 3 threads: /)
    await expect(troubled).rejects.toBeInstanceOf(WorkerLost)
    await expect(pool.run('begin', plan({}))).resolves.toMatchObject({ kind: 'request' })
  }, 60_000)
})

test('what an environment throws is its own fault and costs no thread', async () => {
  const before = exits.length
  const result = await pool.run('begin', plan({ trouble: 'throw', at: 'reset' }))
  expect(result).toMatchObject({
    kind: 'end',
    sealed: {
      header: { outcome: 'infra_env', reward: null, reason: 'lab.reset threw: the lab is on fire' },
    },
  })
  expect(exits.length).toBe(before)
})

test('a job that refuses its input rejects with the code and the path, and is not tried again', async () => {
  const before = exits.length
  const refused = pool.run('settings', { estimator: 'grpoo', settings: {} })
  await expect(refused).rejects.toMatchObject({
    code: 'invalid_request',
    path: 'advantage.estimator',
  })
  expect(exits.length).toBe(before)
})

test('a pool whose module cannot be loaded says which and why', async () => {
  const missing = pathToFileURL(lab.flag('missing.mjs')).href
  const broken = createPool({
    threads: 1,
    maxTurnSeconds: 5,
    heapMb: 96,
    environments: { ghost: missing },
    models: {},
  })
  await expect(broken.ready()).rejects.toMatchObject({ code: 'invalid_config' })
  await expect(broken.ready()).rejects.toThrow(/environment ghost: .*missing\.mjs cannot be loaded/)
  await broken.close()
}, 30_000)
