// slime_bridge's three generations against a whole server: the calls and checks of the real client, in Python.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { JsonObject } from '../../protocol/json.ts'
import { scrape } from '../metrics/scrape.testkit.ts'
import { arithmeticRequest, type House, openHouse } from '../testkit/house.testkit.ts'

const CLIENT = fileURLToPath(new URL('./testdata/polar_bridge.py', import.meta.url))
const GENERATIONS = ['g1', 'g1-fork', 'g2'] as const

interface Report {
  calls: string[]
  callbacks: number
  invalid_callbacks: string[]
  polls: number
  dropped: string[]
  fatal: string | null
  groups: {
    task_id: string
    statuses: string[]
    errors: (string | null)[]
    metadata: JsonObject & { paddock: JsonObject }
    each_metadata: JsonObject[]
    session_ids: string[]
    rewards: number[]
    removed: boolean[]
    sample_statuses: string[]
    rollout_ids: number[]
    trained: number[]
    tokens: number[][]
    logprobs: number[][]
    texts: string[]
  }[]
}

/** What is read of the server's own description. */
interface OpenApi {
  paths: Record<
    '/rollout/task/submit',
    { post: { requestBody: { content: Record<'application/json', { example: JsonObject }> } } }
  >
}

async function bridge(url: string, flags: string, env: Record<string, string> = {}) {
  const child = spawn('python3', ['-W', 'error', CLIENT, url, ...flags.split(' ')], {
    env: { ...process.env, ...env, PYTHONDONTWRITEBYTECODE: '1' },
  })
  const [out, err, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number]>,
  ])
  const report = out === '' ? null : (JSON.parse(out.trim().split('\n').at(-1) ?? '') as Report)
  if (!report) throw new Error(err)
  return { report, code, err }
}

const metadataOf = (group: Report['groups'][number] | undefined) => group?.each_metadata ?? []

const sums = (...numbers: number[]) => numbers.map((n) => `arithmetic/sum-${n}`).join(',')

/** A number that no other test of this file has used: the client makes its task ids of it. */
let groups = 0
const fresh = (count = 1) => {
  groups += count
  return `--first ${groups - count}`
}

let house: House
beforeAll(async () => {
  const mix = { correct: 0.6, wrong: 0.4 }
  const style = { format: 'hermes' as const, thinking: false, mix }
  house = await openHouse({
    office: true,
    simulator: { style, weightVersion: '4' },
    settings: { dialects: { polar: { batch: { groups: { attempts: 1 } } } } },
  })
}, 60_000)
afterEach(() => house.setFaults())
afterAll(() => house.close())

async function post(path: string, body: unknown, method = 'POST') {
  const response = await fetch(`${house.url}${path}`, {
    method,
    ...(body !== null && {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
  })
  return { status: response.status, body: (await response.json()) as JsonObject }
}

const task = (task_id: string, more: JsonObject = {}): JsonObject => ({
  task_id,
  instruction: 'the words of the trainer',
  num_samples: 2,
  agent: { harness: 'paddock', settings: { task: 'arithmetic/sum-0' } },
  metadata: { policy_version: 1 },
  ...more,
})

async function finished(task_id: string): Promise<JsonObject & { results: JsonObject[] }> {
  for (;;) {
    const { body } = await post(`/rollout/task/${task_id}`, null, 'GET')
    if (body.status === 'completed') return body as JsonObject & { results: JsonObject[] }
  }
}

describe.each(GENERATIONS)('%s', (generation) => {
  const run = (flags: string, env = {}) =>
    bridge(house.url, `--generation ${generation} ${flags}`, env)

  test('trains a batch whose results come by callback, each in its place, tokens and all', async () => {
    const { report, code, err } = await run(
      `--tasks ${sums(0, 1, 2, 3)} --samples 4 ${fresh(4)} --update-weights`,
    )
    expect(report.fatal, err).toBe(null)
    expect(code).toBe(0)
    // A client of another generation than the one before refuses the form that that one reads.
    expect(report.callbacks - report.invalid_callbacks.length).toBe(4)
    expect(report.polls).toBe(0)
    const ids = report.groups.map(({ task_id }) => task_id)
    expect(new Set(ids).size).toBe(4)
    for (const group of report.groups) {
      expect(group.statuses).toEqual(Array(4).fill('COMPLETED'))
      expect(group.rollout_ids).toEqual([0, 1, 2, 3])
      expect(new Set(group.session_ids).size).toBe(4)
      const number = Number(group.task_id.split('-')[2])
      expect(group.metadata).toMatchObject({
        group_id: number,
        policy_version: 0,
        rollout_step: 0,
      })
      expect(group.trained.every((count) => count > 0)).toBe(true)
      for (const reward of group.rewards) expect([0, 1]).toContain(reward)
      expect(group.metadata.paddock.reward).toBe(group.rewards[0])
      // Under a mask of 1 a log-probability of the simulated policy is negative, under 0 it is 0.
      expect(group.texts.every((said) => said.length > 0)).toBe(true)
    }
  })

  test('failed episodes are masked sessions of a completed task, and the others keep their rewards', async () => {
    await house.setFaults({ kind: 'nologprobs', rate: 0.5, turns: [2] })
    const { report, err } = await run(`--tasks ${sums(5)} --samples 16 ${fresh()}`)
    expect(report.fatal, err).toBe(null)
    const [group] = report.groups
    expect(new Set(group?.statuses)).toEqual(new Set(['COMPLETED', 'ERROR']))
    expect(group?.statuses).toHaveLength(16)
    for (const [place, status] of (group?.statuses ?? []).entries()) {
      expect(group?.removed[place]).toBe(status === 'ERROR')
      expect(group?.errors[place] === null).toBe(status === 'COMPLETED')
      if (status === 'ERROR') expect(group?.errors[place]).toMatch(/^contract_violation: /)
    }
  })

  test('a group of which nothing can be trained is dropped, and the training lives', async () => {
    await house.setFaults({ kind: 'nologprobs', match: arithmeticRequest(6) })
    const { report, err } = await run(`--tasks ${sums(6, 7)} --samples 2 ${fresh(2)}`)
    expect(report.fatal, err).toBe(null)
    expect(report.dropped).toEqual(['zero trainable tokens'])
    expect(report.groups).toHaveLength(1)
  })

  test('once enough sessions are usable the stragglers are withdrawn, and still have their places', async () => {
    // Of each request: an episode of two turns comes through with 0.64, so that there are both kinds among sixteen.
    await house.setFaults({ kind: 'hang', rate: 0.2 })
    const { report, err } = await run(
      `--tasks ${sums(9)} --samples 16 --early-stop 2 --timeout 600 ${fresh()}`,
    )
    expect(report.fatal, err).toBe(null)
    const [group] = report.groups
    expect(group?.statuses).toHaveLength(16)
    const completed = group?.statuses.filter((status) => status === 'COMPLETED') ?? []
    expect(completed.length).toBeGreaterThanOrEqual(2)
    expect(group?.errors.filter(Boolean).join()).toContain('aborted')
    // Its figures leave out whom it did not wait for.
    for (const [place, { early_stop_cancelled, early_stop_elapsed_ms }] of metadataOf(
      group,
    ).entries()) {
      const straggler = group?.errors[place]?.startsWith('aborted') ?? false
      expect(early_stop_cancelled).toBe(straggler || undefined)
      expect(typeof early_stop_elapsed_ms).toBe(straggler ? 'number' : 'undefined')
    }
  })

  test('a callback that was not understood is made again', async () => {
    const { report, err } = await run(`--tasks ${sums(10)} --deaf 1 ${fresh()}`)
    expect(report.fatal, err).toBe(null)
    expect(report.callbacks).toBe(2)
    expect(report.groups).toHaveLength(1)
  })

  test.each(['http://127.0.0.1:9/nobody/listens', 'http://192.0.2.7/not/allowed'])(
    'where no callback arrives (%s) the poll finds the result',
    async (url) => {
      const { report, err } = await run(
        `--tasks ${sums(11)} --callback ${url} --fallback 0.3 ${fresh()}`,
      )
      expect(report.fatal, err).toBe(null)
      expect(report.callbacks).toBe(0)
      expect(report.groups).toHaveLength(1)
    },
  )

  test('an evaluation is polled to its end', async () => {
    const { report, err } = await run(
      `--tasks ${sums(12, 13)} --samples 2 --evaluate --poll 0.1 ${fresh(2)}`,
    )
    expect(report.dropped, err).toEqual([])
    expect(report.groups.map(({ statuses }) => statuses.length)).toEqual([2, 2])
  })
})

test('a client of the first generation refuses numbers as log-probabilities once; then the server knows what it reads', async () => {
  const fixed = '--generation g1 --samples 2'
  await bridge(house.url, `${fixed} --tasks ${sums(17)} ${fresh()}`)
  const { report, err } = await bridge(house.url, `${fixed} --tasks ${sums(18, 19)} ${fresh(2)}`)
  expect(report.fatal, err).toBe(null)
  expect(report.invalid_callbacks).toEqual([])
  expect(report.groups).toHaveLength(2)
  for (const { logprobs, trained } of report.groups)
    for (const [place, numbers] of logprobs.entries())
      expect(numbers.filter((number) => number < 0).length).toBe(trained[place])
})

test('an evaluation of the first generation has no callback: the settings say what it reads', async () => {
  const dialects = { polar: { logprobs: 'entries' } }
  const first = await openHouse({ settings: { dialects } })
  const flags = `--generation g1 --tasks ${sums(0)} --samples 2 --evaluate --poll 0.1`
  const { report, err } = await bridge(first.url, flags)
  await first.close()
  expect(report.fatal, err).toBe(null)
  expect(report.groups).toHaveLength(1)
}, 60_000)

test('a worker that stops cancels what it has submitted', async () => {
  await house.setFaults({ kind: 'hang' })
  const { report, code } = await bridge(house.url, `--tasks ${sums(14)} --cancel ${fresh()}`)
  expect(code).toBe(0)
  expect(report.calls.at(-1)).toMatch(/^DELETE .* 200$/)
  const { body } = await post(`/rollout/task/polar-slime-${groups - 1}-${groups - 1}`, null, 'GET')
  // `cancelled` and `failed` would be waited for for ever, or end the training.
  expect(body.status).toBe('completed')
  expect(body.results).toHaveLength(4)
})

test('an id that was cancelled before it came is refused when it comes', async () => {
  const unknown = await post('/rollout/task/early', null, 'DELETE')
  expect(unknown.status).toBe(404)
  const early = await post('/rollout/task/early?register_if_missing=true', null, 'DELETE')
  expect(early.body).toMatchObject({ status: 'cancelled', total_sessions: 0 })
  expect((await post('/rollout/task/submit', task('early'))).status).toBe(409)
})

describe('an id', () => {
  test('that comes twice with one body while it runs is one task', async () => {
    await house.setFaults({ kind: 'hang' })
    const twice = await Promise.all([1, 2].map(() => post('/rollout/task/submit', task('twice'))))
    const third = await post('/rollout/task/submit', task('twice'))
    expect([...twice, third].map(({ status }) => status)).toEqual([200, 200, 200])
    const { body } = await post('/tasks', null, 'GET')
    const own = (body.tasks as JsonObject[]).filter(({ task_id }) => task_id === 'twice')
    expect(own).toHaveLength(1)
    await post('/rollout/task/twice', null, 'DELETE')
  })

  test('that is used again is another task, and never has the old result', async () => {
    await post('/rollout/task/submit', task('again'))
    const old = await finished('again')
    await house.setFaults({ kind: 'hang' })
    await post('/rollout/task/submit', task('again', { metadata: { policy_version: 2 } }))
    const { body } = await post('/rollout/task/again', null, 'GET')
    expect(body).toMatchObject({ status: 'running', results: [] })
    await house.setFaults()
    await post('/rollout/task/again', null, 'DELETE')
    await post('/rollout/task/submit', task('again'))
    const fresh = await finished('again')
    expect(fresh.results[0]?.session_id).not.toBe(old.results[0]?.session_id)
  })

  test('of two trainers at once: each has its own results', async () => {
    const both = await Promise.all(
      [1, 2].map((version) =>
        bridge(
          house.url,
          `--tasks ${sums(15, 16)} --first 9000 --policy-version ${version} --fallback 0.05`,
        ),
      ),
    )
    for (const [index, { report, err }] of both.entries()) {
      expect(report.fatal, err).toBe(null)
      const versions = report.groups.map(({ metadata }) => metadata.policy_version)
      expect(versions).toEqual([index + 1, index + 1])
    }
  })
})

describe('a task that cannot be played is refused with a sentence', () => {
  test.each<[string, JsonObject, string]>([
    ['another harness', { agent: { harness: 'codex' } }, 'agent.harness'],
    ['an import path', { agent: { import_path: 'mine:Agent' } }, 'agent.harness'],
    ['no agent', { agent: null }, 'agent'],
    ['no task', { agent: { harness: 'paddock' } }, 'agent.settings.task'],
    ['no samples', { num_samples: 0 }, 'num_samples'],
    ['words for a budget', { timeout_seconds: 'long' }, 'timeout_seconds'],
    [
      'text for the budget of the agent',
      { metadata: { agent_timeout: '9' } },
      'metadata.agent_timeout',
    ],
    [
      'more usable sessions than there are',
      { early_stop_min_usable_sessions: 3 },
      'early_stop_min_usable_sessions',
    ],
    ['an endless agent', { metadata: { agent_timeout: -1 } }, 'metadata.agent_timeout'],
    ['a callback to nowhere', { callback_url: 'nowhere' }, 'callback_url'],
    ['a callback over FTP', { callback_url: 'ftp://127.0.0.1/a' }, 'callback_url'],
    ['a callback to a file', { callback_url: 'file:///etc/passwd' }, 'callback_url'],
    [
      'metadata that no answer could repeat in each session',
      { num_samples: 48, metadata: { text: 'x'.repeat(6_000_000) } },
      'metadata',
    ],
  ])('%s', async (_, more, path) => {
    const { status, body } = await post('/rollout/task/submit', task('refused', more))
    expect(body).toMatchObject({ status: 422, code: 'invalid_task', path })
    expect(status).toBe(422)
  })

  test('an unknown task is named with what there is', async () => {
    const agent = { harness: 'paddock', settings: { task: 'arithmetic/nothing' } }
    const { status, body } = await post('/rollout/task/submit', task('refused', { agent }))
    expect(status).toBeGreaterThanOrEqual(400)
    expect(body.detail).toContain('arithmetic/nothing')
    expect((await post('/rollout/task/refused', null, 'GET')).status).toBe(404)
  })

  test('and ends the training of the second generation, which is told why', async () => {
    const { report, code } = await bridge(
      house.url,
      `--tasks ${sums(0)} --harness codex ${fresh()}`,
    )
    expect(code).toBe(3)
    expect(report.fatal).toContain('expected harness')
  })
})

test.each<JsonObject>([
  { timeout_seconds: '600' },
  { timeout_seconds: 1e6 },
  { metadata: { agent_timeout: 1e6 } },
  { agent: { harness: 'paddock', settings: { task: 'arithmetic/sum-0', step_limit: 1e6 } } },
  {
    agent: {
      harness: 'paddock',
      settings: { task: 'arithmetic/sum-0', model_kwargs: { max_tokens: 2_000_000 } },
    },
  },
])('a budget that Polar’s own server takes is taken: %o', async (more) => {
  const task_id = `budget-${JSON.stringify(more)}`
  expect((await post('/rollout/task/submit', task(task_id, more))).status).toBe(200)
})

test('each session says how long it waited, was reset, played and graded, in the four keys that all clients know', async () => {
  await post('/rollout/task/submit', task('timed', { num_samples: 4 }))
  const { results } = await finished('timed')
  expect(results).toHaveLength(4)
  for (const { timing } of results as { timing: Record<string, number> }[]) {
    const { register_to_init_queue_ms: queued, init_ms, run_ms, postrun_ms } = timing
    expect(Object.keys(timing)).toHaveLength(4)
    expect(queued).toBeGreaterThanOrEqual(0)
    for (const ms of [init_ms, run_ms, postrun_ms]) expect(ms).toBeGreaterThan(0)
    expect(Number(init_ms) + Number(run_ms) + Number(postrun_ms)).toBeLessThan(20_000)
  }
})

test('what happens to tasks is told as it happens', async () => {
  const closed = new AbortController()
  const stream = await fetch(`${house.url}/events`, { signal: closed.signal })
  await post('/rollout/task/submit', task('told'))
  let heard = ''
  for await (const chunk of stream.body as ReadableStream<Uint8Array>) {
    heard += Buffer.from(chunk).toString()
    if (heard.includes('task.completed')) break
  }
  expect(heard).toMatch(/event: task\.created\n/)
  expect(heard).toContain('"task_id":"told"')
})

test('the example of the documentation is played', async () => {
  const { body: document } = await post('/openapi.json', null, 'GET')
  const { paths } = document as unknown as OpenApi
  const { example } = paths['/rollout/task/submit'].post.requestBody.content['application/json']
  const task_id = 'polar-of-the-docs'
  expect((await post('/rollout/task/submit', { ...example, task_id })).status).toBe(200)
  expect((await finished(task_id)).results).toHaveLength(8)
})

test('metadata names the task where the settings of the agent do not', async () => {
  const metadata = { task: 'arithmetic/sum-3' }
  await post(
    '/rollout/task/submit',
    task('by-metadata', { agent: { harness: 'paddock' }, metadata }),
  )
  const { results } = await finished('by-metadata')
  expect(results[0]?.metadata).toMatchObject(metadata)
})

test("polls are counted as Polar's, by whether they were answered with a group", async () => {
  await post('/rollout/task/submit', task('polled', {}))
  const polls = async (result: string) =>
    (await scrape(house.url)).sum('trainer_polls_total', { dialect: 'polar', result })
  const before = await polls('groups')
  await finished('polled')
  expect(await polls('groups')).toBe(before + 1)
})

test('what dashboards read is there', async () => {
  const { body: overview } = await post('/rollout/status', null, 'GET')
  expect(overview).toMatchObject({ status: 'ok', nodes: [] })
  const { body } = await post('/tasks?limit=1', null, 'GET')
  expect(body.tasks).toHaveLength(1)
  const [{ task_id }] = body.tasks as [JsonObject]
  const { body: told } = await post(`/tasks/${task_id}/sessions`, null, 'GET')
  expect((told.sessions as JsonObject[])[0]?.session_id).toMatch(/^sk-polar-/)
  expect((await post('/health', null, 'GET')).body.status).toBe('ok')
})

// Last: a policy that hangs so often is not asked again for a while.
test('a policy that hangs costs its sessions alone, within the budget of the task', async () => {
  await house.setFaults({ kind: 'hang', rate: 0.5 })
  const all = await Promise.all(
    GENERATIONS.map((generation) =>
      bridge(
        house.url,
        `--generation ${generation} --tasks ${sums(8)} --samples 16 --timeout 2 ${fresh()}`,
      ),
    ),
  )
  for (const { report, err } of all) {
    expect(report.fatal, err).toBe(null)
    expect(new Set(report.groups[0]?.statuses)).toEqual(new Set(['COMPLETED', 'TIMEOUT']))
  }
})

describe('where tokens are asked for', () => {
  const token = 'the-token-of-this-trainer-0123'
  const settings = (open: boolean | string) => ({
    server: { port: 0, drain_timeout_s: 1, tokens: [{ token, roles: ['submit', 'lease'] }] },
    dialects: { polar: { open } },
  })

  test('the client sends it as the password of the address, with every call', async () => {
    const guarded = await openHouse({ settings: settings(false) })
    const address = guarded.url.replace('://', `://:${token}@`)
    for (const generation of GENERATIONS) {
      const { report, err } = await bridge(
        address,
        `--generation ${generation} --tasks ${sums(0)} --fallback 0.2 --update-weights ${fresh()}`,
      )
      expect(report.fatal, err).toBe(null)
      expect(report.groups).toHaveLength(1)
    }
    const { report, code } = await bridge(guarded.url, `--tasks ${sums(0)} ${fresh()}`)
    expect(code).toBe(3)
    expect(report.fatal).toContain('401')
    await guarded.close()
  }, 120_000)

  test('with open polls the submit alone is guarded, by the header of the newest generation', async () => {
    const guarded = await openHouse({ settings: settings('polls') })
    const run = (flags: string, control: string) =>
      bridge(guarded.url, flags, { POLAR_CONTROL_PLANE_TOKEN: control })
    const right = await run(`--tasks ${sums(0)} --fallback 0.2 ${fresh()}`, token)
    expect(right.report.fatal, right.err).toBe(null)
    expect(right.report.groups).toHaveLength(1)
    const wrong = await run(`--tasks ${sums(0)} ${fresh()}`, 'wrong')
    expect(wrong.report.fatal).toContain('401')
    expect((await fetch(`${guarded.url}/v1/batches`)).status).toBe(401)
    await guarded.close()
  }, 120_000)
})
