// The main job over HTTP: submit, play, lease, acknowledge; and what is refused before anything is played.
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { BatchProgress } from '../protocol/batch.ts'
import type { Problem } from '../protocol/errors.ts'
import type { DeliveredGroup } from '../protocol/group.ts'
import type { JsonObject } from '../protocol/json.ts'
import { unpack } from '../protocol/msgpack.ts'
import { arithmeticRequest, type House, officeTasks, openHouse } from './testkit/house.testkit.ts'
import { writeLab } from './testkit/lab-environment.testkit.ts'

const lab = writeLab()
const labPack = join(dirname(lab.module), 'pack')
mkdirSync(join(labPack, 'tasks'), { recursive: true })
writeFileSync(join(labPack, 'pack.yaml'), 'name: bench\nenvironment: lab\ntasks: tasks\n')
writeFileSync(
  join(labPack, 'tasks', 'one.json'),
  JSON.stringify({ id: 'one', request: arithmeticRequest(0) }),
)

let house: House
let count = 0
beforeAll(async () => {
  house = await openHouse({
    office: true,
    simulator: { style: { format: 'hermes', thinking: false, mix: MIX } },
    settings: { environments: { lab: lab.module }, packs: [labPack] },
    // Takes ids and gives ids: it has no chat to be asked in.
    backends: { ids: { dialect: 'vllm-generate' } },
  })
}, 60_000)
afterAll(() => house.close())
afterEach(() => house.setFaults())

const MIX = { correct: 0.5, wrong: 0.3, forbidden: 0.2 }

const sums = (...indexes: number[]) => indexes.map((index) => ({ task: `arithmetic/sum-${index}` }))

const batch = (some: JsonObject = {}): JsonObject => ({
  id: `batch-${count++}`,
  tasks: sums(0),
  group_size: 4,
  policy: { backend: 'main', sampling: { max_tokens: 512, seed: 3 } },
  ...some,
})

async function post(path: string, body: JsonObject, accept = 'application/json') {
  const headers = { 'content-type': 'application/json', accept }
  return fetch(house.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
}

async function refusal(some: JsonObject): Promise<Problem> {
  const response = await post('/v1/batches', batch(some))
  expect(response.status).toBeGreaterThanOrEqual(400)
  return response.json() as Promise<Problem>
}

describe('a batch is refused before anything is played', () => {
  test('that reads a reward field which the contract lacks, with a sentence that names it and the nearest', async () => {
    const problem = await refusal({ reward: { reads: ['scor'] } })
    expect(problem).toMatchObject({
      status: 422,
      code: 'contract_mismatch',
      path: 'reward.reads[0]',
    })
    expect(problem.detail).toContain('"scor"')
    expect(problem.detail).toContain('"score"')
  })

  test.each<[string, JsonObject, string, RegExp]>([
    [
      'reads what only another trainer calls it',
      { reward: { reads: ['reward'] } },
      'reward.reads[0]',
      /reward/,
    ],
    [
      'names another contract',
      { reward: { contract: 'office@1' } },
      'reward.contract',
      /arithmetic@1/,
    ],
    ['mixes contracts', { tasks: [...sums(0), { task: 'bench/one' }] }, 'tasks', /lab@2.*/],
    [
      'names an unknown task',
      { tasks: [{ task: 'arithmetic/sum-9999' }] },
      'tasks[0].task',
      /sum-9999/,
    ],
    ['names an unknown pack', { tasks: [{ task: 'nowhere/x' }] }, 'tasks[0].task', /office/],
    [
      'names an unknown backend',
      { policy: { backend: 'other' } },
      'policy.backend',
      /main, sglang/,
    ],
    [
      'asks for a mode that the backend lacks',
      { policy: { backend: 'ids', mode: 'chat' } },
      'policy.mode',
      /tokens/,
    ],
    [
      'decodes greedily in mode train',
      { policy: { sampling: { temperature: 0 } } },
      'policy.sampling.temperature',
      /greedy/,
    ],
    [
      'names an unknown estimator',
      { advantage: { estimator: 'grpoo' } },
      'advantage.estimator',
      /grpo/,
    ],
    [
      'has an unknown estimator setting',
      { advantage: { estimator: 'grpo', settings: { epsilom: 1 } } },
      'advantage.settings.epsilom',
      /epsilom/,
    ],
    ['wants more votes than members', { groups: { min_scored: 5 } }, 'groups.min_scored', /4/],
    ['gives neither task nor spec', { tasks: [{ seed: 1 }] }, 'tasks[0]', /task.*spec/],
    ['has a typo in a key', { group_sise: 4 }, 'group_sise', /group_size/],
    [
      'has an inline spec that is none',
      { tasks: [{ spec: { title: 'x' } }] },
      'tasks[0].spec',
      /V01/,
    ],
    [
      'asks gdpo of one component',
      { advantage: { estimator: 'gdpo' } },
      'advantage.estimator',
      /component/,
    ],
  ])('that %s', async (_, some, path, words) => {
    const problem = await refusal(some)
    expect(problem.path.startsWith(path)).toBe(true)
    expect(`${problem.path} ${problem.detail}`).toMatch(words)
  })
})

describe('an id makes a batch idempotent', () => {
  test('the same request again, even at once, is the same batch; another is a conflict', async () => {
    const request = batch()
    const answers = await Promise.all([1, 2, 3].map(() => post('/v1/batches', request)))
    expect(answers.map(({ status }) => status)).toEqual([202, 202, 202])
    const accepted = await Promise.all(answers.map((answer) => answer.json()))
    expect(accepted).toEqual(Array(3).fill({ id: request.id, groups: 1, episodes: 4 }))
    const other = await post('/v1/batches', { ...request, group_size: 5 })
    expect(other.status).toBe(409)
    expect(await other.json()).toMatchObject({ code: 'conflict', path: 'id' })
    const { progress } = await house.run(request)
    expect(progress.episodes.total).toBe(4)
  })
})

interface PlayedTurn {
  calls: { name: string; arguments_json: string }[]
}

describe('a delivered group', () => {
  test('of an office task has for each episode the score that its transcript declares', async () => {
    const tasks = officeTasks()
    const { groups } = await house.run(
      batch({ tasks: tasks.map(({ id }) => ({ task: `office/${id}` })), group_size: 2 }),
    )
    expect(groups).toHaveLength(tasks.length)
    for (const group of groups) {
      const spec = tasks.find(({ id }) => group.task === `office/${id}`)
      for (const episode of group.episodes) {
        expect(episode.outcome).toBe('ok')
        const answer = await fetch(`${house.url}/v1/episodes/${episode.id}`)
        const trajectory = (await answer.json()) as { turns: PlayedTurn[] }
        const called = trajectory.turns.flatMap((turn) =>
          turn.calls.map(({ name, arguments_json }) => [name, JSON.parse(arguments_json)]),
        )
        const played = Object.values(spec?.transcripts ?? {}).filter(({ steps }) => {
          const calls = steps.flatMap(({ call, args }) => (call ? [[call, args]] : []))
          return JSON.stringify(calls) === JSON.stringify(called)
        })
        expect(played).toHaveLength(1)
        expect(episode.reward).toBeCloseTo(played[0]?.expect.score ?? Number.NaN, 3)
      }
    }
  }, 90_000)

  test.each([
    ['main', 'chat'],
    ['main', 'tokens'],
    ['sglang', 'tokens'],
  ])('over %s in mode %s is aligned: arrays, turns, advantages', async (backend, mode) => {
    const { groups } = await house.run(
      batch({
        tasks: sums(1, 2),
        group_size: 8,
        policy: { backend, mode, sampling: { seed: 5, max_tokens: 512 } },
      }),
    )
    for (const group of groups) {
      expect(group.contract).toMatch(/^arithmetic@1#[0-9a-f]{12}$/)
      const advantages = group.episodes.map(({ advantage }) => advantage ?? Number.NaN)
      expect(Math.abs(advantages.reduce((a, b) => a + b, 0))).toBeLessThan(1e-9)
      for (const { samples, turns, advantage, reward } of group.episodes) {
        expect(reward === 0 || reward === 1).toBe(true)
        for (const { ids, mask, logprobs, prompt_length, versions } of samples) {
          expect([mask.length, logprobs.length]).toEqual([ids.length, ids.length])
          expect(mask.indexOf(1)).toBe(prompt_length)
          for (const [k, logprob] of logprobs.entries())
            expect(mask[k] === 1 ? Number.isFinite(logprob) && logprob <= 0 : logprob === 0).toBe(
              true,
            )
          const spanned = versions.reduce((sum, { start, end }) => sum + end - start, 0)
          expect(spanned).toBe(mask.filter((bit) => bit === 1).length)
        }
        for (const turn of turns) {
          expect(turn.advantage).toBe(advantage)
          expect(
            samples[turn.sample ?? -1]?.mask.slice(turn.start, turn.end).every((bit) => bit === 1),
          ).toBe(true)
        }
        const inTurns = turns.reduce((sum, { start, end }) => sum + end - start, 0)
        const sampled = samples.flatMap(({ mask }) => mask).filter((bit) => bit === 1).length
        expect(inTurns).toBe(sampled)
      }
    }
  })

  test('is the same in msgpack as in JSON, token arrays as little-endian bin', async () => {
    const { id } = await house.api.submit(batch({ tasks: sums(3) }))
    const lease = async (accept: string) => {
      const answer = await post(`/v1/batches/${id}/lease`, { lease_s: 0.05, wait_s: 10 }, accept)
      expect(answer.headers.get('content-type')).toContain(accept)
      return new Uint8Array(await answer.arrayBuffer())
    }
    const json = JSON.parse(Buffer.from(await lease('application/json')).toString())
    const packed = unpack(await lease('application/msgpack')) as typeof json
    expect(packed.groups[0].dtypes).toEqual({ ids: '<i4', mask: '|u1', logprobs: '<f4' })
    for (const [index, episode] of packed.groups[0].episodes.entries()) {
      const { samples, ...rest } = json.groups[0].episodes[index]
      expect({ ...episode, samples: undefined }).toEqual({ ...rest, samples: undefined })
      for (const [k, sample] of episode.samples.entries()) {
        const words = new DataView(sample.ids.buffer, sample.ids.byteOffset, sample.ids.length)
        const ids = Array.from({ length: sample.ids.length / 4 }, (_, at) =>
          words.getInt32(4 * at, true),
        )
        expect(ids).toEqual(samples[k].ids)
        expect([...sample.mask]).toEqual(samples[k].mask)
      }
    }
    expect(packed.groups[0].lease.delivery).toBe(2)
  })

  test('carries the names that the batch renames', async () => {
    const { groups } = await house.run(
      batch({ reward: { reads: ['reward'], rename: { score: 'reward' } } }),
    )
    for (const { reward, rewards } of groups[0]?.episodes ?? []) expect(rewards).toEqual({ reward })
  })
})

describe('leases', () => {
  test('an unacknowledged group comes again when its lease is over; the old lease is late', async () => {
    const { id } = await house.api.submit(batch())
    const [first] = (await house.api.lease(id, { lease_s: 0.1, wait_s: 10 })).groups
    const [again] = (await house.api.lease(id, { lease_s: 30, wait_s: 10 })).groups
    expect(again).toMatchObject({ id: first?.id, lease: { delivery: 2 } })
    const answer = async (...groups: (DeliveredGroup | undefined)[]) =>
      (await house.api.ack(id, groups as DeliveredGroup[])).groups.map(({ result }) => result)
    expect(await answer(first)).toEqual(['late'])
    expect(await answer(again)).toEqual(['acked'])
    expect(await answer(again)).toEqual(['duplicate'])
    expect((await house.api.progress(id)).done).toBe(true)
  })

  test('a group that is handed back is ready at once', async () => {
    const { id } = await house.api.submit(batch())
    const [group] = (await house.api.lease(id, { lease_s: 30, wait_s: 10 })).groups
    const nack = { groups: [{ id: group?.id ?? '', lease: group?.lease.id ?? '' }], reason: 'full' }
    expect(await (await post(`/v1/batches/${id}/nack`, nack)).json()).toMatchObject({
      groups: [{ result: 'nacked' }],
    })
    const again = await house.api.lease(id, { wait_s: 0 })
    expect(again.groups[0]?.lease.delivery).toBe(2)
  })

  test('a group whose tokens are too old for its batch settles as stale and is never leased', async () => {
    const request = batch({
      policy: { version: 1, max_staleness: 2, sampling: { max_tokens: 512 } },
    })
    const { id } = await house.api.submit(request)
    await finished(id)
    await post('/v1/policy', { backend: 'main', version: 4 })
    const leased = await house.api.lease(id, { wait_s: 0 })
    expect(leased).toEqual({ groups: [], done: true })
    expect((await house.api.progress(id)).groups.settled).toEqual({ stale: 1 })
    const back = await post('/v1/policy', { backend: 'main', version: 1 })
    expect(back.status).toBe(409)
  })
})

/** Waits for the first verdict in the batch's event stream. */
async function finished(id: string): Promise<void> {
  const stop = new AbortController()
  const { body } = await fetch(`${house.url}/v1/batches/${id}/events?after=0`, {
    signal: stop.signal,
  })
  let text = ''
  for await (const chunk of body as ReadableStream<Uint8Array>) {
    text += Buffer.from(chunk).toString()
    if (text.includes('event: verdict')) break
  }
  stop.abort()
}

describe('flat groups', () => {
  const flat = (zero_variance: string) =>
    batch({
      tasks: sums(4),
      policy: { sampling: { seed: 11, max_tokens: 512 } },
      groups: { zero_variance },
      // Nobody calls the tool and nobody answers: every episode is a real zero.
      limits: { max_turns: 1 },
    })

  test('are delivered with advantages of exactly 0', async () => {
    const { groups } = await house.run(flat('deliver'))
    expect(groups).toMatchObject([
      { verdict: 'zero_variance', level: 'floor', stats: { mean: 0, std: 0 } },
    ])
    expect(groups[0]?.episodes.map(({ advantage }) => advantage)).toEqual([0, 0, 0, 0])
  })

  test('are dropped where the batch says so', async () => {
    const { groups, progress } = await house.run(flat('drop'))
    expect(groups).toEqual([])
    expect(progress.groups).toMatchObject({
      total: 1,
      verdicts: { zero_variance: 1 },
      settled: { dropped: 1 },
    })
  })

  test('are replaced by fresh groups of the same task, a bounded number of times', async () => {
    const { groups, progress } = await house.run(flat('replace'))
    expect(groups).toEqual([])
    expect(progress.groups).toMatchObject({ total: 4, finished: 4, settled: { dropped: 4 } })
  })
})

test('a short group is partial where the batch closes with what there is', async () => {
  await house.setFaults({ kind: 'nofinish', rate: 0.5, match: arithmeticRequest(0), turns: [1] })
  const { groups, progress } = await house.run(
    batch({ group_size: 8, groups: { on_short: 'close' } }),
  )
  expect(progress.episodes.retried).toEqual({})
  const [group] = groups
  expect(group?.verdict).toBe('partial')
  for (const { outcome, reward, advantage } of group?.episodes ?? []) {
    expect(reward === null).toBe(outcome !== 'ok')
    expect(advantage === null).toBe(outcome !== 'ok')
  }
})

test('a cancelled batch ends what runs as aborted and is done', async () => {
  await house.setFaults({ kind: 'hang', match: arithmeticRequest(5) })
  const { id } = await house.api.submit(batch({ tasks: sums(5) }))
  const cancelled = await fetch(`${house.url}/v1/batches/${id}`, { method: 'DELETE' })
  expect(cancelled.status).toBe(200)
  const { groups, progress } = await house.run({ ...batch({ tasks: sums(5) }), id })
  expect(groups).toEqual([])
  expect(progress).toMatchObject({
    state: 'cancelled',
    done: true,
    episodes: { outcomes: { aborted: 4 }, in_flight: 0 },
    groups: { verdicts: { aborted: 1 }, settled: { dropped: 1 } },
  })
})

test('what has started is finished or in flight, at every observation, under random faults', async () => {
  await house.setFaults(
    { kind: '500', rate: 0.3 },
    { kind: 'nologprobs', rate: 0.1 },
    { kind: 'abort', rate: 0.2, times: 1 },
    { kind: 'empty', rate: 0.1 },
  )
  const request = batch({
    tasks: sums(...Array(8).keys()),
    group_size: 4,
    limits: { turn_timeout_s: 5 },
  })
  const { id } = await house.api.submit(request)
  const watched: BatchProgress[] = []
  const gaps: number[] = []
  const run = house.run(request)
  let over = false
  run.finally(() => {
    over = true
  })
  while (!over) {
    watched.push(await house.api.progress(id))
    gaps.push(await conservationGap())
  }
  await run
  watched.push(await house.api.progress(id))
  for (const { episodes, groups } of watched) {
    expect(episodes.started).toBe(episodes.finished + episodes.in_flight)
    expect(groups.started).toBe(groups.finished + groups.in_flight)
    const settled = Object.values(groups.settled).reduce((a, b) => a + b, 0)
    expect(groups.finished).toBe(settled + groups.ready + groups.leased)
    expect(Object.values(episodes.outcomes).reduce((a, b) => a + b, 0)).toBe(episodes.finished)
  }
  expect(gaps.every((gap) => gap === 0)).toBe(true)
  expect(watched.length).toBeGreaterThan(5)
  expect(watched.at(-1)?.episodes).toMatchObject({ total: 32, finished: 32 })
})

/** Groups started minus finished minus in flight, over all batches, as one scrape of /metrics has them. */
async function conservationGap(): Promise<number> {
  const text = await (await fetch(`${house.url}/metrics`)).text()
  const sum = (name: string) =>
    [...text.matchAll(new RegExp(`^paddock_${name}\\{.*\\} (\\S+)$`, 'gm'))].reduce(
      (total, [, value]) => total + Number(value),
      0,
    )
  return sum('groups_started_total') - sum('groups_finished_total') - sum('groups_in_flight')
}

describe('an environment of a user, loaded from outside the repository', () => {
  test('plays its pack under its own contract', async () => {
    const { groups } = await house.run(
      batch({ tasks: [{ task: 'bench/one' }], reward: { reads: ['quality'] } }),
    )
    expect(groups[0]?.contract).toMatch(/^lab@2#/)
    for (const { outcome, rewards } of groups[0]?.episodes ?? []) {
      expect(outcome).toBe('ok')
      expect(Object.keys(rewards ?? {})).toEqual(['quality'])
    }
  })

  test('plays inline specs, whose problems are told at submit', async () => {
    const spec = { request: arithmeticRequest(1) }
    const { groups } = await house.run(batch({ tasks: [{ spec, environment: 'lab' }] }))
    expect(groups[0]?.task).toMatch(/^inline\//)
    const problem = await refusal({ tasks: [{ spec: { request: 4 }, environment: 'lab' }] })
    expect(problem).toMatchObject({ code: 'invalid_task', path: 'tasks[0].spec.request' })
  })

  test('that writes a field its contract lacks is a contract violation which names it', async () => {
    const spec = { request: arithmeticRequest(1), rewards: { quality: 1, score: 1 } }
    const { groups } = await house.run(
      batch({ tasks: [{ spec, environment: 'lab' }], mode: 'eval', groups: { attempts: 1 } }),
    )
    for (const { outcome, reason, reward } of groups[0]?.episodes ?? []) {
      expect([outcome, reward]).toEqual(['contract_violation', null])
      expect(reason).toContain('score')
    }
  })
})

test('the tasks are listed, and one shows what the model is shown and nothing of its grading', async () => {
  const { tasks } = await house.api.tasks()
  expect(tasks.filter(({ pack }) => pack === 'office')).toHaveLength(officeTasks().length)
  expect(tasks.filter(({ pack }) => pack === 'arithmetic')).toHaveLength(300)
  const shown = await (
    await fetch(`${house.url}/v1/tasks/office/dev-02-integrations-without-leaking`)
  ).text()
  expect(JSON.parse(shown).messages).toHaveLength(2)
  for (const hidden of ['reference_path', 'transcripts', 'grading', 'paybridge', 'IG-3'])
    expect(shown).not.toContain(hidden)
})

test('the events tell of each turn, call, observation, outcome and verdict, and end with done', async () => {
  const { id } = await house.api.submit(batch())
  await house.run({ ...batch(), id, tasks: sums(0) })
  const text = await (await fetch(`${house.url}/v1/batches/${id}/events?after=0`)).text()
  const events = text
    .split('\n\n')
    .flatMap((block) => block.match(/^data: (.*)$/m)?.[1] ?? [])
    .map((json) => JSON.parse(json))
  expect(events.map(({ n }) => n)).toEqual(events.map((_, index) => index + 1))
  const kinds = new Set(events.map(({ type }) => type))
  for (const kind of ['turn', 'call', 'observation', 'outcome', 'verdict'])
    expect(kinds).toContain(kind)
  expect(events.filter(({ type }) => type === 'outcome')).toHaveLength(4)
  expect(events.at(-1)).toMatchObject({ type: 'done', batch: id })
})

test('a server that is told to stop finishes or returns what runs, and takes no new batch', async () => {
  const other = await openHouse({ settings: { server: { drain_timeout_s: 0.2, port: 0 } } })
  await other.setFaults({ kind: 'hang', match: arithmeticRequest(0) })
  await other.api.submit(batch({ tasks: sums(0, 1) }))
  await other.close()
  await expect(other.api.submit(batch())).rejects.toThrow()
}, 60_000)
