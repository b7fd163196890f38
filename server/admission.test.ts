// Admission over HTTP: a grader that cannot work stops its batch early, with its own words in the progress.
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import type { BatchProgress } from '../protocol/batch.ts'
import type { JsonObject } from '../protocol/json.ts'
import { arithmeticRequest, type House, openHouse } from './testkit/house.testkit.ts'

/** A user's environments: `grade` is JavaScript text over `state.spec`. */
function environment(name: string, grade: string): string {
  const file = join(mkdtempSync(join(tmpdir(), 'paddock-admission-')), 'user.mjs')
  writeFileSync(
    file,
    `export default {
  contract: { name: '${name}', version: 1, fields: { score: { type: 'number', min: 0, max: 1 } }, scalar: 'score' },
  problems: () => [],
  describe: (task) => ({ title: task.id }),
  reset: (task, seed) => ({ spec: task.spec, said: '', seed }),
  open: (state) => [{ role: 'user', content: state.spec.request }],
  tools: () => [],
  step: (state) => ({ state, observation: { content: 'none', is_error: true }, audit: {} }),
  hear: (state) => state,
  reply: (state, said) => ({ state: { ...state, said }, end: 'final' }),
  grade(state, answers) { ${grade} },
  anchor: () => 'here',
}
`,
  )
  return file
}

/** A user's environment whose reward is a custom grader's. */
const GRADED = `if (!answers.g) return { status: 'asks', asks: [{ kind: 'grade', id: 'g', grader: 'fickle', input: { spec: state.spec } }] }
       const { status, reason, rewards } = answers.g
       return status === 'scored' ? { status, rewards: { score: rewards.score } } : { status: 'unavailable', reason }`

/** From its sixth task on, its author's typo is reached. */
const FICKLE = `export const version = 1
export default ({ spec }) =>
  spec.index === 5 ? { status: 'scored', reward: spec.index / 20 } : { status: 'scored', score: spec.index / 20 }`

/** A pack of 12 tasks with its grader. */
function gradedPack(): string {
  const pack = mkdtempSync(join(tmpdir(), 'paddock-pack-'))
  mkdirSync(join(pack, 'tasks'))
  writeFileSync(
    join(pack, 'pack.yaml'),
    'name: graded\nenvironment: graded\ntasks: tasks\ngraders:\n  fickle: fickle.mjs\n',
  )
  writeFileSync(join(pack, 'fickle.mjs'), FICKLE)
  for (const index of many(12).keys()) {
    const spec = { id: `t${index}`, request: arithmeticRequest(0), index }
    writeFileSync(join(pack, 'tasks', `t${index}.json`), JSON.stringify(spec))
  }
  return pack
}

const SCORED = "return { status: 'scored', rewards: { score: state.spec.score ?? 1 } }"

let house: House
beforeAll(async () => {
  const environments = {
    chdir: environment('chdir', `process.chdir('/tmp'); ${SCORED}`),
    turning: environment(
      'turning',
      `if (state.spec.broken) return { status: 'scored', rewards: { reward: 1 } }
       ${SCORED}`,
    ),
    flat: environment('flat', SCORED),
    unheard: environment('unheard', SCORED),
    graded: environment('graded', GRADED),
  }
  // One episode at a time: what is admitted after a bad group shows at once.
  house = await openHouse({
    tokens: false,
    settings: { environments, packs: [gradedPack()], runtime: { max_episodes: 1 } },
  })
}, 60_000)
afterAll(() => house.close())

const batch = (id: string, environment: string, specs: JsonObject[], some: JsonObject = {}) => ({
  id,
  tasks: specs.map((spec) => ({ spec: { request: arithmeticRequest(0), ...spec }, environment })),
  group_size: 2,
  policy: { sampling: { max_tokens: 64 } },
  groups: { attempts: 1 },
  ...some,
})

const many = (count: number, spec: (index: number) => JsonObject = () => ({})) =>
  Array.from({ length: count }, (_, index) => spec(index))

/** Follows the events of a batch until one of a kind has come. */
async function until(id: string, kind: string, at = house): Promise<BatchProgress> {
  const stop = new AbortController()
  const { body } = await fetch(`${at.url}/v1/batches/${id}/events?after=0`, {
    signal: stop.signal,
  })
  let text = ''
  for await (const chunk of body as ReadableStream<Uint8Array>) {
    text += Buffer.from(chunk).toString()
    if (text.includes(`event: ${kind}`)) break
  }
  stop.abort()
  return at.api.progress(id)
}

it('A01: a grader that cannot run scores nothing, and its batch stops after the first group with its words', async () => {
  const { id } = await house.api.submit(batch('a01', 'chdir', many(20), { group_size: 8 }))
  const progress = await until(id, 'paused')
  expect(progress).toMatchObject({
    state: 'running',
    admission: 'paused',
    pause: { reason: 'waste', group: 'a01.g0' },
    groups: { started: 1 },
    episodes: { started: 8, outcomes: { verifier_error: 8 }, mean_reward: null },
  })
  expect(progress.pause?.message).toMatch(/chdir\.grade threw: process\.chdir\(\) is not supported/)
  const text = await (await fetch(`${house.url}/metrics`)).text()
  expect(text).toMatch(/paddock_admission_paused\{reason="waste"\} 1/)
  expect(text).toMatch(/paddock_canary_checks_total\{result="refused"\} 1/)
  expect(text).toMatch(/paddock_reward_count\{env="chdir",mode="train"\} 0/)
})

describe('a grader that starts to write the wrong key in the middle of a batch', () => {
  test('pauses it within one group; what was good is delivered, and the rest after it is resumed', async () => {
    const specs = many(12, (index) => ({ score: index / 20, broken: index === 5 }))
    const { id } = await house.api.submit(batch('turning', 'turning', specs, flatToo))
    const paused = await until(id, 'paused')
    expect(paused).toMatchObject({
      admission: 'paused',
      pause: { reason: 'contract', group: 'turning.g5' },
      groups: { started: 6, ready: 5 },
    })
    expect(paused.pause?.message).toContain('"score" came as "reward"')
    const { groups } = await house.api.lease(id, { max: 16, wait_s: 0 })
    expect(groups.map((group) => group.id)).toEqual(many(5).map((_, index) => `turning.g${index}`))
    await house.api.ack(id, groups)

    expect(await house.api.resume(id)).toMatchObject({ pause: null })
    const rest = await house.run(batch('turning', 'turning', specs, flatToo))
    expect(rest.groups).toHaveLength(6)
    expect(rest.progress).toMatchObject({
      done: true,
      pause: null,
      groups: { finished: 12, settled: { acked: 11, dropped: 1 } },
    })
  })

  test('does so where it is a custom grader of a pack', async () => {
    const tasks = many(12).map((_, index) => ({ task: `graded/t${index}` }))
    const request = { ...batch('graded', 'graded', [], flatToo), tasks }
    const { id } = await house.api.submit(request)
    const paused = await until(id, 'paused')
    expect(paused).toMatchObject({
      pause: { reason: 'contract', group: 'graded.g5' },
      groups: { started: 6, ready: 5 },
    })
    expect(paused.pause?.message).toContain('"score" came as "reward"')
    const { groups } = await house.api.lease(id, { max: 16, wait_s: 0 })
    expect(groups.flatMap(({ episodes }) => episodes.map(({ reward }) => reward))).toEqual(
      [0, 1, 2, 3, 4].flatMap((index) => [index / 20, index / 20]),
    )
    await house.api.ack(id, groups)
    expect(await house.api.resume(id)).toMatchObject({ pause: null })
    const rest = await house.run(request)
    expect(rest.groups).toHaveLength(6)
    expect(rest.progress).toMatchObject({
      done: true,
      groups: { settled: { acked: 11, dropped: 1 } },
    })
  })

  test('ends a batch of one group, and does not stop an evaluation', async () => {
    const one = await house.run(batch('one', 'turning', [{ broken: true }]))
    expect(one.progress).toMatchObject({ done: true, groups: { settled: { dropped: 1 } } })
    const specs = many(4, () => ({ broken: true }))
    const evaluated = await house.run(batch('eval', 'turning', specs, { mode: 'eval' }))
    expect(evaluated.progress).toMatchObject({
      done: true,
      episodes: { outcomes: { contract_violation: 8 } },
    })
  })
})

test('a canary that says nothing of the graders has not passed', async () => {
  const before = await canaries()
  await house.setFaults({ kind: '500', rate: 1 })
  const silent = await house.run(batch('silent', 'unheard', many(1)))
  await house.setFaults()
  expect(silent.progress.episodes.outcomes).toEqual({ infra_backend: 2 })
  expect(await canaries()).toEqual({ ...before, silent: before.silent + 1 })
  await house.run(batch('heard', 'unheard', many(2), flatToo))
  const after = await canaries()
  expect(after).toEqual({ ...before, silent: before.silent + 1, passed: before.passed + 1 })
}, 60_000)

async function canaries() {
  const text = await (await fetch(`${house.url}/metrics`)).text()
  const of = (result: string) =>
    Number(
      text.match(new RegExp(`paddock_canary_checks_total\\{result="${result}"\\} (\\d+)`))?.[1],
    )
  return { passed: of('passed'), refused: of('refused'), silent: of('silent') }
}

/** One reward a group: what is tested here is not its variance. */
const flatToo = { groups: { attempts: 1, zero_variance: 'deliver' } }

test('fifty groups without a valid one pause their batch; a cancelled one leaves nothing behind', async () => {
  const { id } = await house.api.submit(batch('wasted', 'flat', many(60), flatToo))
  const paused = await until(id, 'paused')
  expect(paused).toMatchObject({
    pause: { reason: 'waste', message: expect.stringContaining('0 of the last 50 groups') },
    groups: { started: 50 },
  })
  // The fiftieth was over when it paused, and is still being settled.
  await expect
    .poll(async () => (await house.api.progress(id)).groups, { timeout: 20_000 })
    .toMatchObject({ started: 50, finished: 50, in_flight: 0 })
  const cancelled = await (
    await fetch(`${house.url}/v1/batches/${id}`, { method: 'DELETE' })
  ).json()
  expect(cancelled).toMatchObject({ state: 'cancelled', pause: null, groups: { ready: 50 } })
}, 120_000)

test('a batch that was paused is paused after a restart, and goes on when it is resumed', async () => {
  const environments = {
    breaking: environment(
      'breaking',
      `if (state.spec.broken) return { status: 'scored', rewards: { reward: 1 } }
       ${SCORED}`,
    ),
  }
  const ledger = { path: mkdtempSync(join(tmpdir(), 'paddock-paused-')), min_free_bytes: 0 }
  const settings = { environments, runtime: { max_episodes: 1 }, ledger }
  const before = await openHouse({ tokens: false, settings })
  const specs = many(3, (index) => ({ broken: index === 0 }))
  const request = batch('paused-before', 'breaking', specs)
  await before.api.submit(request)
  const { pause } = await until('paused-before', 'paused', before)
  expect(pause).toMatchObject({ reason: 'contract', group: 'paused-before.g0' })
  await before.close()

  const after = await openHouse({ tokens: false, settings })
  try {
    expect(await after.api.progress('paused-before')).toMatchObject({
      admission: 'paused',
      pause,
      groups: { started: 1, finished: 1 },
    })
    await after.api.resume('paused-before')
    const { progress } = await after.run(request)
    expect(progress).toMatchObject({ pause: null, groups: { finished: 3 } })
  } finally {
    await after.close()
  }
}, 120_000)
