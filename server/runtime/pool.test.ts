// The pool: a thread that is lost costs one turn, which is played again elsewhere; neighbours notice nothing.
import { writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { deserialize } from 'node:v8'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JsonObject } from '../../protocol/json.ts'
import { labPlan, writeLab } from '../testkit/lab-environment.testkit.ts'
import type { TurnJobResult } from './jobs.ts'
import { openPatience } from './patience.ts'
import { createPool, GivenUp, type Pool, type WorkerExit, WorkerLost } from './pool.ts'

const lab = writeLab()
let pool: Pool
const exits: WorkerExit[] = []

beforeAll(async () => {
  pool = createPool({
    threads: 2,
    maxTurnSeconds: 2,
    heapMb: 96,
    environments: { lab: pathToFileURL(lab.module).href },
    models: {},
  })
  pool.onExit((exit) => exits.push(exit))
  await pool.ready()
}, 60_000)

afterAll(() => pool.close())

/** What happens, what it is called, and how often it is tried: a hang costs a thread for its whole limit. */
const troubles = [
  ['exit', 'crash', 3],
  ['memory', 'oom', 3],
  ['hang', 'hang_killed', 2],
] as const

test('a turn that hangs holds up no other that was given to its thread, and none runs twice', async () => {
  const settled: string[] = []
  const lost = exits.length
  const told = (name: string) => () => void settled.push(name)
  const hanging = pool.run('begin', labPlan({ trouble: 'hang', at: 'reset' })).catch(told('hang'))
  const quick = Array.from({ length: 40 }, (_, index) =>
    pool.run('begin', labPlan({ request: `Measure ${index}.` })).then(told(`quick ${index}`)),
  )
  await Promise.all(quick)
  // Its thread works on for its whole limit of 2 s, and is lost then.
  expect(exits.length).toBe(lost)
  await hanging
  expect(settled).toHaveLength(41)
  expect(new Set(settled).size).toBe(41)
}, 30_000)

describe.each(troubles)('a thread that is lost by %s', (trouble, cause, tries) => {
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
  }, 30_000)

  test(`${tries} times in a row gives up with the cause, and the pool works on`, async () => {
    const troubled = pool.run('begin', labPlan({ trouble, at: 'reset' }))
    await expect(troubled).rejects.toMatchObject({ name: 'WorkerLost', exit: cause })
    await expect(troubled).rejects.toThrow(`begin failed on ${tries} threads: `)
    await expect(troubled).rejects.toBeInstanceOf(WorkerLost)
    await expect(pool.run('begin', labPlan({}))).resolves.toMatchObject({ kind: 'request' })
  }, 60_000)
})

describe('of the turns that a thread was given together', () => {
  const begins = async (specs: readonly JsonObject[], environment = lab.module) => {
    const exits: WorkerExit[] = []
    const one = createPool({
      threads: 1,
      maxTurnSeconds: 1,
      heapMb: 96,
      environments: { lab: pathToFileURL(environment).href },
      models: {},
    })
    one.onExit((exit) => exits.push(exit))
    // Queued before the thread is ready, so that they go to it in as few messages as may be.
    const played = await Promise.allSettled(specs.map((spec) => one.run('begin', labPlan(spec))))
    await one.close()
    return { played, exits }
  }

  test.each(troubles)(
    'only the one that ends in %s fails, as %s',
    async (trouble, cause, tries) => {
      const specs = Array.from(
        { length: 12 },
        (_, n): JsonObject => (n === 5 ? { trouble, at: 'reset' } : {}),
      )
      const { played, exits } = await begins(specs)
      expect(exits).toEqual(Array(tries).fill(cause))
      for (const [n, result] of played.entries())
        if (n === 5) expect(result).toMatchObject({ status: 'rejected', reason: { exit: cause } })
        else expect(result).toMatchObject({ status: 'fulfilled', value: { kind: 'request' } })
    },
    60_000,
  )

  test('each has the whole limit for itself', async () => {
    const slow = lab.flag('slow.mjs')
    const wait = 'const end = Date.now() + 300; while (Date.now() < end);'
    writeFileSync(
      slow,
      `import lab from ${JSON.stringify(pathToFileURL(lab.module).href)}
      export default { ...lab, reset(task) { ${wait} return lab.reset(task) } }`,
    )
    const { played, exits } = await begins(
      Array.from({ length: 7 }, () => ({})),
      slow,
    )
    expect(exits).toEqual([])
    expect(played.map(({ status }) => status)).toEqual(Array(7).fill('fulfilled'))
  }, 60_000)
})

describe('of jobs that wait for a thread', () => {
  const open = (threads: number, maxTurnSeconds = 1) =>
    createPool({
      threads,
      maxTurnSeconds,
      heapMb: 96,
      environments: { lab: pathToFileURL(lab.module).href },
      models: {},
    })

  test('those that somebody waits for go before turns', async () => {
    const one = open(1)
    const order: string[] = []
    const turns = Array.from({ length: 20 }, () =>
      one.run('begin', labPlan({})).then(() => order.push('turn')),
    )
    const settings = one.run('parse', { id: 'a', format: 'hermes', tools: [], text: 'hello' })
    await Promise.all([...turns, settings.then(() => order.push('settings'))])
    expect(order[0]).toBe('settings')
    await one.close()
  }, 30_000)

  test('one that failed goes behind the others', async () => {
    const one = open(1)
    const order: string[] = []
    const troubled = one.run('begin', labPlan({ trouble: 'exit', at: 'reset' }))
    const failed = troubled.catch(() => order.push('failed'))
    const others = Array.from({ length: 12 }, () =>
      one.run('begin', labPlan({})).then(() => order.push('played')),
    )
    await Promise.all([failed, ...others])
    expect(order).toEqual([...Array(12).fill('played'), 'failed'])
    await one.close()
  }, 30_000)

  test('those that hung before never hold the last thread', async () => {
    // Long enough for the other thread to start anew and still find time to play.
    const two = open(2, 3)
    let lost = 0
    const bothHungOnce = new Promise<void>((resolve) => {
      two.onExit(() => {
        if (++lost === 2) resolve()
      })
    })
    const hang = () => two.run('begin', labPlan({ trouble: 'hang', at: 'reset' }))
    let settled = false
    const hanging = Promise.allSettled([hang(), hang()]).then(() => {
      settled = true
    })
    await bothHungOnce
    const played: Record<number, number> = {}
    while (!settled) {
      await two.run('begin', labPlan({}))
      played[lost] = (played[lost] ?? 0) + 1
    }
    await hanging
    // Each retry holds a thread for three seconds, in which the other plays hundreds of turns; a few on a busy machine.
    expect(lost).toBe(4)
    expect(played[2]).toBeGreaterThan(2)
    expect(played[3]).toBeGreaterThan(2)
    await two.close()
  }, 60_000)

  test('one whose patience ends is given up at once, running or waiting', async () => {
    const one = open(1)
    await one.ready()
    const patience = () => openPatience(performance.now() + 200, null)
    const spec = { trouble: 'hang', at: 'reset', once: lab.flag('once-patience') }
    const running = one.run('begin', labPlan(spec), patience())
    const waiting = one.run('begin', labPlan({}), patience())
    const started = performance.now()
    await expect(running).rejects.toBeInstanceOf(GivenUp)
    await expect(waiting).rejects.toBeInstanceOf(GivenUp)
    expect(performance.now() - started).toBeLessThan(900)
    expect(one.stats().queued).toBe(0)
    await expect(one.run('begin', labPlan({}))).resolves.toMatchObject({ kind: 'request' })
    await one.close()
  }, 30_000)
})

test('an answer that cannot be copied is refused alone, naming its job', async () => {
  const odd = lab.flag('odd.mjs')
  writeFileSync(
    odd,
    `import lab from ${JSON.stringify(pathToFileURL(lab.module).href)}
    export default { ...lab, describe: (task) => ({ title: 'x', limits: {}, f: task.spec.odd && (() => 1) }) }`,
  )
  const exits: WorkerExit[] = []
  const one = createPool({
    threads: 1,
    maxTurnSeconds: 5,
    heapMb: 96,
    environments: { lab: pathToFileURL(odd).href },
    models: {},
  })
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
}, 30_000)

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
  const one = createPool({
    threads: 1,
    maxTurnSeconds: 5,
    heapMb: 96,
    environments: { lab: pathToFileURL(late).href },
    models: {},
  })
  const died = new Promise<WorkerExit>((resolve) => one.onExit(resolve))
  await expect(one.run('begin', labPlan({}))).resolves.toMatchObject({ kind: 'request' })
  expect(await died).toBe('crash')
  await expect(one.run('begin', labPlan({}))).resolves.toMatchObject({ kind: 'request' })
  await one.close()
}, 30_000)

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

test('a pool whose module ends the thread while it loads gives up', async () => {
  const fatal = lab.flag('fatal.mjs')
  writeFileSync(fatal, 'process.exit(3)')
  const broken = createPool({
    threads: 1,
    maxTurnSeconds: 5,
    heapMb: 96,
    environments: { fatal: pathToFileURL(fatal).href },
    models: {},
  })
  await expect(broken.ready()).rejects.toThrow(
    /environment fatal: .*fatal.mjs.*exited with code: 3/,
  )
  await expect(broken.run('begin', labPlan({}))).rejects.toBeInstanceOf(WorkerLost)
  await broken.close()
}, 30_000)

test.each([
  ['never loads', 'await new Promise((resolve) => setTimeout(resolve, 1e6))', /within 5 s/],
  [
    'needs too much memory',
    'const a = []; for (;;) a.push(new Array(1e6).fill(a.length))',
    /96 MB of heap: raise runtime\.heap_mb/,
  ],
])(
  'a pool whose module %s names it and the limit',
  async (_, text, words) => {
    const slow = lab.flag(`slow-${exits.length}-${Math.abs(text.length)}.mjs`)
    writeFileSync(slow, text)
    const broken = createPool({
      threads: 1,
      maxTurnSeconds: 5,
      heapMb: 96,
      startSeconds: 5,
      // The one before it has loaded, and is not blamed.
      environments: { lab: pathToFileURL(lab.module).href, slow: pathToFileURL(slow).href },
      models: {},
    })
    await expect(broken.ready()).rejects.toMatchObject({ code: 'invalid_config' })
    await expect(broken.ready()).rejects.toThrow(/^environment slow: .*slow-/)
    await expect(broken.ready()).rejects.toThrow(words)
    await broken.close()
  },
  30_000,
)
