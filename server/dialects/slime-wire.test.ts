// slime's three paths request by request: retries, lost answers, restarts, written items, and what is refused.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { JsonObject } from '../../protocol/json.ts'
import { type House, openHouse } from '../testkit/house.testkit.ts'

const MINUTE = 60_000
const SIZE = 2

interface Item {
  uid: string
  instance_id: number | string
  reward: number
  extra_info: { raw_reward: number; paddock: { advantage: number; task: string } }
}
interface Answer {
  success: boolean
  message: string
  data: {
    data: Item[]
    meta_info: {
      finished_groups: (number | string)[]
      total_samples: number
      num_groups: number
      avg_reward: number
    }
  }
}

let folder: string
let house: House
let usual: House
function open(slime: JsonObject = {}): Promise<House> {
  return openHouse({
    office: true,
    tokens: false,
    simulator: { style: { format: 'hermes', thinking: false, mix: { correct: 1, wrong: 1 } } },
    settings: {
      dialects: {
        slime: {
          data_dir: folder,
          batch: { policy: { backend: 'main', sampling: { seed: 1 } } },
          ...slime,
        },
      },
    },
  })
}
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'paddock-slime-'))
  const rows = [0, 1, 2].map((index) => JSON.stringify({ prompt: '', task: `sum-${index}` }))
  writeFileSync(join(folder, 'three.jsonl'), rows.join('\n'))
  writeFileSync(join(folder, 'wrong.jsonl'), '{"task": "sum-0"}\n\n{"task": "sum-none"}\n')
  usual = await open()
}, MINUTE)
beforeEach(async () => {
  house = usual
  // What was polled and starts from nothing is a new run: no test sees the groups of another.
  await poll()
})
afterEach(async () => {
  if (house !== usual) await house.close()
})
afterAll(async () => {
  await usual.close()
  rmSync(folder, { recursive: true })
})

async function post(path: string, body: unknown): Promise<Response> {
  const headers = { 'content-type': 'application/json' }
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return fetch(`${house.url}${path}`, { method: 'POST', headers, body: text })
}

const start = (more: JsonObject = {}) =>
  post('/start_rollout', {
    num_process: '100',
    num_epoch: '1',
    remote_engine_url: house.policyUrl,
    remote_buffer_url: house.url,
    task_type: 'arithmetic',
    input_file: join(folder, 'three.jsonl'),
    num_repeat_per_sample: String(SIZE),
    max_tokens: '512',
    sampling_params: { max_tokens: 512, temperature: 1, top_p: 1 },
    tokenizer_path: '/models/x',
    skip_instance_ids: [],
    ...more,
  })
const poll = async () => (await (await post('/get_rollout_data', {})).json()) as Answer

/** Polls until an answer has items: groups are played meanwhile. */
async function pollItems(): Promise<Answer> {
  const began = performance.now()
  for (;;) {
    const answer = await poll()
    if (answer.success) return answer
    if (performance.now() - began > 20_000)
      throw new Error(`no items came within 20 s: ${answer.message}`)
  }
}

/** Polls until so many items came; the instances of all answers, in order. */
async function collect(items: number): Promise<Item[]> {
  const all: Item[] = []
  while (all.length < items) all.push(...(await pollItems()).data.data)
  return all
}

/** Starts, and gives the run's id. */
async function startRun(more: JsonObject = {}): Promise<string> {
  return ((await (await start(more)).json()) as { run: string }).run
}

/** When so many groups of the run's first batch are ready to be handed out. */
async function allReady(run: string, groups: number): Promise<void> {
  for (;;) {
    const { ready } = (await house.api.progress(`${run}.0`)).groups
    if (ready >= groups) return
  }
}

const ids = (items: Item[]) => [...new Set(items.map(({ instance_id }) => instance_id))].sort()

describe('start and poll', () => {
  test(
    'every pass plays every task under an id of its own; then nothing more comes, and the message says why',
    async () => {
      expect(await (await start({ num_epoch: 2 })).json()).toMatchObject({
        message: 'Rollout started',
        groups: 6,
        tasks: 3,
      })
      const items = await collect(6 * SIZE)
      expect(ids(items)).toEqual([0, 1, 2, 3, 4, 5])
      for (const { instance_id, extra_info } of items)
        expect(extra_info.paddock.task).toBe(`arithmetic/sum-${Number(instance_id) % 3}`)
      const after = await poll()
      expect(after).toMatchObject({ success: false, data: { data: [] } })
      expect(after.message).toContain('No data available to read: all 6 groups were played')
    },
    MINUTE,
  )

  test(
    'the figures are of the items that come with them, and finished_groups are their instances',
    async () => {
      await allReady(await startRun(), 3)
      const { data, message } = await poll()
      const rewards = data.data.map(({ reward }) => reward)
      expect(message).toBe('Successfully read 6 items')
      expect(data.meta_info).toEqual({
        total_samples: 6,
        num_groups: 3,
        avg_group_size: SIZE,
        avg_reward: rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length,
        finished_groups: data.meta_info.finished_groups,
      })
      expect([...data.meta_info.finished_groups].sort()).toEqual([0, 1, 2])
    },
    MINUTE,
  )

  test(
    'before any start a poll is answered and told why it brings nothing',
    async () => {
      house = await open({})
      expect((await poll()).message).toContain('no rollout was started')
    },
    MINUTE,
  )

  test(
    'a start that is tried again before the first poll is the same run',
    async () => {
      const run = await startRun()
      expect(await startRun()).toBe(run)
      expect(ids(await collect(3 * SIZE))).toEqual([0, 1, 2])
      expect((await house.api.progress(`${run}.0`)).groups.total).toBe(3)
    },
    MINUTE,
  )

  test(
    'two polls at once share nothing',
    async () => {
      await allReady(await startRun(), 3)
      const both = await Promise.all([poll(), poll(), poll()])
      expect(both.flatMap(({ data }) => data.data).length).toBe(3 * SIZE)
    },
    MINUTE,
  )

  test(
    'with slime’s batch size no answer has more groups than its batch still lacks',
    async () => {
      house = await open({ rollout_batch_size: 2 })
      await start()
      const sizes: number[] = []
      for (let items = 0; items < 3 * SIZE; items += sizes.at(-1)! * SIZE)
        sizes.push((await pollItems()).data.meta_info.num_groups)
      let groups = 0
      for (const size of sizes) {
        expect(Math.floor((groups % 2) + size)).toBeLessThanOrEqual(2)
        groups += size
      }
    },
    MINUTE,
  )

  test(
    'with the advantage as the reward the raw one stays beside it',
    async () => {
      house = await open({ reward: 'advantage' })
      await start()
      for (const { reward, extra_info } of await collect(3 * SIZE)) {
        expect(reward).toBe(extra_info.paddock.advantage)
        expect([0, 1]).toContain(extra_info.raw_reward)
      }
    },
    MINUTE,
  )
})

describe('a trainer that comes back', () => {
  test(
    'from a checkpoint: the run goes on with what it does not have, each once',
    async () => {
      // Two groups an answer, however slowly the first poll comes: else it might have all of them.
      house = await open({ rollout_batch_size: 2 })
      const run = await startRun({ num_epoch: 2 })
      const had = ids((await pollItems()).data.data) as number[]
      // The next answer reaches a trainer that dies with it.
      await pollItems()
      expect(await startRun({ num_epoch: 2, skip_instance_ids: had })).toBe(run)
      const rest = await collect((6 - had.length) * SIZE)
      expect(rest.length).toBe((6 - had.length) * SIZE)
      expect([...had, ...ids(rest)].sort()).toEqual([0, 1, 2, 3, 4, 5])
    },
    MINUTE,
  )

  test(
    'from nothing: a new run, and nothing of the old policy is handed out',
    async () => {
      const run = await startRun()
      await pollItems()
      const fresh = await startRun()
      expect(fresh).not.toBe(run)
      const items = await collect(3 * SIZE)
      expect(ids(items)).toEqual([0, 1, 2])
      expect(items.every(({ uid }) => uid.startsWith(`${fresh}.`))).toBe(true)
    },
    MINUTE,
  )
})

describe('what is refused', () => {
  test.each([
    ['a task type that is no pack', { task_type: 'algebra' }, 'task_type', 'office, arithmetic'],
    [
      'a group size that is no number',
      { num_repeat_per_sample: 'eight' },
      'num_repeat_per_sample',
      'a number',
    ],
    [
      'a line of the selection that names no task',
      { input_file: 'wrong.jsonl' },
      'input_file',
      'line 3',
    ],
    [
      'an engine on a host that is not allowed',
      { remote_engine_url: 'http://10.0.0.1:30000' },
      'policy.url',
      '10.0.0.1',
    ],
    [
      'an engine without an address',
      { remote_engine_url: 'http://None:None' },
      'policy.url',
      'URL',
    ],
  ])(
    '%s',
    async (_, more, path, detail) => {
      const response = await start(more)
      expect(response.status).toBe(400)
      const problem = (await response.json()) as { path: string; detail: string }
      expect(problem.path).toBe(path)
      expect(problem.detail).toContain(detail)
    },
    MINUTE,
  )

  test(
    'a file of the trainer’s own machine is ignored, and the answer says so',
    async () => {
      for (const input_file of ['/data/x.jsonl', '../three.jsonl', '/etc/passwd', folder, null]) {
        const answer = (await (await start({ input_file })).json()) as JsonObject
        expect(answer.tasks).toBe(300)
        expect(answer.input_file).toBe(
          input_file ? 'ignored: no file of dialects.slime.data_dir' : undefined,
        )
      }
    },
    MINUTE,
  )
})

describe('written items', () => {
  const item = (more: JsonObject = {}) => ({
    uid: 'w0',
    instance_id: 'mine',
    messages: [
      { role: 'user', content: '?' },
      { role: 'assistant', content: '4' },
    ],
    reward: 0.5,
    extra_info: {},
    ...more,
  })

  test(
    'a group goes out when it is whole, each item once, and no later item joins it',
    async () => {
      await start({ skip_instance_ids: [0, 1, 2] })
      const answer = await post('/buffer/write', item())
      expect(await answer.json()).toEqual({
        success: true,
        message: 'Data has been successfully written to buffer',
        data: { data: [item()], meta_info: 'write to buffer' },
      })
      // A worker whose answer was lost writes again.
      expect((await post('/buffer/write', item())).status).toBe(200)
      expect((await poll()).success).toBe(false)
      await post('/buffer/write', item({ uid: 'w1', reward: 1.5 }))
      const { data } = await poll()
      expect(data.data).toEqual([item(), item({ uid: 'w1', reward: 1.5 })])
      expect(data.meta_info).toMatchObject({ finished_groups: ['mine'], avg_reward: 1 })
      expect((await post('/buffer/write', item({ uid: 'w2' }))).status).toBe(500)
      expect((await poll()).success).toBe(false)
      expect((await post('/buffer/write', item({ uid: 'w2' }))).status).toBe(500)
    },
    MINUTE,
  )

  test.each([
    ['a reward that is NaN', JSON.stringify(item()).replace('0.5', 'NaN'), 400],
    ['a reward that no double holds', JSON.stringify(item()).replace('0.5', '1e999'), 400],
    ['a reward that is null', item({ reward: null }), 500],
    ['a message without text', item({ messages: [{ role: 'assistant', content: null }] }), 500],
    ['no messages', item({ messages: [] }), 500],
    ['no uid', item({ uid: null }), 500],
    ['no extra_info', item({ extra_info: null }), 500],
    ['an instance that the server plays', item({ instance_id: 1 }), 500],
    ['no object', [], 500],
  ])(
    '%s is refused, and the polls go on',
    async (_, body, status) => {
      await start()
      expect((await post('/buffer/write', body)).status).toBe(status)
      expect(ids(await collect(3 * SIZE))).toEqual([0, 1, 2])
    },
    MINUTE,
  )
})
