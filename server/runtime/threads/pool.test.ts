// The pool: a thread that is lost costs one turn, which is played again elsewhere; neighbours notice nothing.
import { writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { deserialize } from 'node:v8'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../protocol/json.ts'
import { labPlan, writeLab } from '../../testkit/lab-environment.testkit.ts'
import { labPool } from '../../testkit/pool.testkit.ts'
import type { TurnJobResult } from './jobs.ts'
import { type Pool, type WorkerExit, WorkerLost } from './pool.ts'

const lab = writeLab()
let pool: Pool
const exits: WorkerExit[] = []

beforeAll(async () => {
  pool = labPool(lab.module, { threads: 2 })
  pool.onExit((exit) => exits.push(exit))
  await pool.ready()
}, 120_000)

afterAll(() => pool.close())

/** What happens, what it is called, and how often it is tried: a hang costs a thread for its whole limit. */
const troubles = [
  ['exit', 'crash', 3, {}],
  ['memory', 'oom', 3, {}],
  ['hang', 'hang_killed', 2, { maxTurnSeconds: 2 }],
] as const

test('a turn that hangs holds up no other that was given to its thread, and none runs twice', async () => {
  const two = labPool(lab.module, { threads: 2 })
  const settled: string[] = []
  let lost = 0
  two.onExit(() => lost++)
  const told = (name: string) => () => void settled.push(name)
  const hanging = two.run('begin', labPlan({ trouble: 'hang', at: 'reset' })).catch(told('hang'))
  const quick = Array.from({ length: 40 }, (_, index) =>
    two.run('begin', labPlan({ request: `Measure ${index}.` })).then(told(`quick ${index}`)),
  )
  await Promise.all(quick)
  // Its thread works on, for as long as its limit lets it.
  expect(lost).toBe(0)
  expect(new Set(settled).size).toBe(40)
  await two.close()
  await hanging
  expect(settled).toHaveLength(41)
}, 120_000)

test('where every thread hangs, a spare one plays what waits, also what comes later', async () => {
  const one = labPool(lab.module, { threads: 1, maxTurnSeconds: 100 })
  let lost = 0
  one.onExit(() => lost++)
  const hanging = one.run('begin', labPlan({ trouble: 'hang', at: 'reset' })).catch(() => 'closed')
  const behind = Array.from({ length: 5 }, () => one.run('begin', labPlan({})))
  await Promise.all(behind)
  await one.run('begin', labPlan({ request: 'Measure again.' }))
  expect(lost).toBe(0)
  expect(one.stats()).toMatchObject({ threads: 2, queued: 0 })
  await one.close()
  expect(await hanging).toBe('closed')
}, 90_000)

describe.each(troubles)('a thread that is lost by %s', (trouble, cause, tries, limit) => {
  let pool: Pool
  const exits: WorkerExit[] = []
  beforeAll(async () => {
    pool = labPool(lab.module, { threads: 2, ...limit })
    pool.onExit((exit) => exits.push(exit))
    await pool.ready()
  }, 120_000)
  afterAll(() => pool.close())

  test('is replaced, and the same turn is played again with the same result', async () => {
    const before = exits.length
    const quiet = await pool.run('begin', labPlan({}))
    const once = lab.flag(`once-${trouble}`)
    const troubled = pool.run('begin', labPlan({ trouble, at: 'reset', once }))
    const neighbours = [1, 2, 3].map(() => pool.run('begin', labPlan({})))
    const [played, ...others] = await Promise.all([troubled, ...neighbours])
    expect(exits.slice(before)).toEqual([cause])
    for (const one of [played, ...others])
      expect(one).toMatchObject({
        kind: 'request',
        request: (quiet as { request: unknown }).request,
      })
  }, 120_000)

  test(`${tries} times in a row gives up with the cause, and the pool works on`, async () => {
    const troubled = pool.run('begin', labPlan({ trouble, at: 'reset' }))
    await expect(troubled).rejects.toMatchObject({ name: 'WorkerLost', exit: cause })
    await expect(troubled).rejects.toThrow(`begin failed on ${tries} threads: `)
    await expect(troubled).rejects.toBeInstanceOf(WorkerLost)
    await expect(pool.run('begin', labPlan({}))).resolves.toMatchObject({ kind: 'request' })
  }, 120_000)
})

describe('of the turns that a thread was given together', () => {
  const begins = async (
    specs: readonly JsonObject[],
    limit: { maxTurnSeconds?: number },
    module = lab.module,
  ) => {
    const exits: WorkerExit[] = []
    const one = labPool(module, limit)
    one.onExit((exit) => exits.push(exit))
    // Queued before the thread is ready, so that they go to it in as few messages as may be.
    const played = await Promise.allSettled(specs.map((spec) => one.run('begin', labPlan(spec))))
    await one.close()
    return { played, exits }
  }

  test.each(troubles)(
    'only the one that ends in %s fails, as %s',
    async (trouble, cause, tries, limit) => {
      const specs = Array.from(
        { length: 12 },
        (_, n): JsonObject => (n === 5 ? { trouble, at: 'reset' } : {}),
      )
      const { played, exits } = await begins(specs, limit)
      expect(exits).toEqual(Array(tries).fill(cause))
      for (const [n, result] of played.entries())
        if (n === 5) expect(result).toMatchObject({ status: 'rejected', reason: { exit: cause } })
        else expect(result).toMatchObject({ status: 'fulfilled', value: { kind: 'request' } })
    },
    60_000,
  )

  test('each has the whole limit for itself', async () => {
    const slow = lab.flag('slow.mjs')
    const wait = 'const end = Date.now() + 700; while (Date.now() < end);'
    writeFileSync(
      slow,
      `import lab from ${JSON.stringify(pathToFileURL(lab.module).href)}
      export default { ...lab, reset(task) { ${wait} return lab.reset(task) } }`,
    )
    const { played, exits } = await begins(
      Array.from({ length: 7 }, () => ({})),
      { maxTurnSeconds: 4 },
      slow,
    )
    expect(exits).toEqual([])
    expect(played.map(({ status }) => status)).toEqual(Array(7).fill('fulfilled'))
  }, 120_000)
})

test('an answer that cannot be copied is refused alone, naming its job', async () => {
  const odd = lab.flag('odd.mjs')
  writeFileSync(
    odd,
    `import lab from ${JSON.stringify(pathToFileURL(lab.module).href)}
    export default { ...lab, describe: (task) => ({ title: 'x', limits: {}, f: task.spec.odd && (() => 1) }) }`,
  )
  const exits: WorkerExit[] = []
  const one = labPool(odd)
  one.onExit((exit) => exits.push(exit))
  const spec = { request: 'Measure.', odd: true }
  const task = { environment: 'lab', id: 'x', spec }
  const inspected = one.run('inspect', { tasks: [task], gate: 'load' })
  const shown = one.run('show', { ...task, seed: 1 })
  const good = one.run('show', { ...task, spec: { request: 'Measure.' }, seed: 1 })
  await expect(inspected).rejects.toMatchObject({
    code: 'invalid_task',
    message: expect.stringContaining('lab.describe must return plain data'),
  })
  await expect(shown).rejects.toMatchObject({
    code: 'environment_fault',
    message: expect.stringContaining('the answer of show must be plain data'),
  })
  await expect(good).resolves.toMatchObject({ title: 'x' })
  expect(exits).toEqual([])
  await one.close()
}, 120_000)

test('what an environment throws while a task is shown is its own fault and costs no thread', async () => {
  const before = exits.length
  const spec = { request: 'Measure.', trouble: 'throw', at: 'reset' }
  const shown = pool.run('show', { environment: 'lab', id: 'x', spec, seed: 1 })
  await expect(shown).rejects.toMatchObject({
    code: 'environment_fault',
    message: 'lab.reset threw: the lab is on fire',
  })
  expect(exits.length).toBe(before)
})

test.each([
  ['a global that is gone', 'globalThis.JSON = undefined'],
  ['a method that is another', 'Array.prototype.map = () => { throw new Error("spoilt") }'],
])(
  'a thread in which a job leaves %s is replaced, and the others are played',
  async (_, spoil) => {
    const module = lab.flag(`spoilt-${spoil.length}.mjs`)
    writeFileSync(
      module,
      `import lab from ${JSON.stringify(pathToFileURL(lab.module).href)}
    export default { ...lab, reset(task) { if (task.spec.spoil) ${spoil}; return lab.reset(task) } }`,
    )
    const one = labPool(module)
    const spoiling = one.run('begin', labPlan({ spoil: true }))
    await expect(spoiling).rejects.toMatchObject({ name: 'WorkerLost', exit: 'crash' })
    await expect(one.run('begin', labPlan({}))).resolves.toMatchObject({ kind: 'request' })
    await one.close()
  },
  120_000,
)

test('a thread that dies between two jobs is replaced', async () => {
  const late = lab.flag('late.mjs')
  writeFileSync(
    late,
    `import { existsSync, writeFileSync } from 'node:fs'
    import lab from ${JSON.stringify(pathToFileURL(lab.module).href)}
    const once = ${JSON.stringify(lab.flag('late'))}
    export default { ...lab, reset(task) {
      if (!existsSync(once)) setTimeout(() => { writeFileSync(once, ''); process.exit(3) }, 20)
      return lab.reset(task)
    } }`,
  )
  const one = labPool(late)
  const died = new Promise<WorkerExit>((resolve) => one.onExit(resolve))
  await expect(one.run('begin', labPlan({}))).resolves.toMatchObject({ kind: 'request' })
  expect(await died).toBe('crash')
  await expect(one.run('begin', labPlan({}))).resolves.toMatchObject({ kind: 'request' })
  await one.close()
}, 120_000)

test('a thread that has never seen a state plays its turn to the same result', async () => {
  const said = '<tool_call>\n{"name": "measure", "arguments": {}}\n</tool_call>'
  const reply = {
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: new TextEncoder().encode(
      JSON.stringify({
        choices: [{ message: { role: 'assistant', content: said }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 9, completion_tokens: 9 },
      }),
    ),
  }
  const asked = async (result: TurnJobResult) => {
    if (result.kind !== 'request') throw new Error('the episode has ended')
    return result
  }
  const { state } = await asked(await pool.run('begin', labPlan({})))
  const known = await asked(await pool.run('advance', { state, reply }))
  const unknown = { ...state, key: 'of another process' }
  const fresh = await asked(await pool.run('advance', { state: unknown, reply }))
  expect(fresh.request).toEqual(known.request)
  expect(fresh.events).toEqual(known.events)
  expect(deserialize(fresh.state.bytes)).toEqual(deserialize(known.state.bytes))
})

test('what an environment throws is its own fault and costs no thread', async () => {
  const before = exits.length
  const result = await pool.run('begin', labPlan({ trouble: 'throw', at: 'reset' }))
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
  const refused = pool.run('parse', { id: 'a', format: 'hermess', tools: [], text: '' })
  await expect(refused).rejects.toMatchObject({
    code: 'invalid_request',
    path: 'format',
  })
  expect(exits.length).toBe(before)
})
