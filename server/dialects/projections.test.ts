// What a native lease says of a group, slime's items and Polar's sessions say too: its verdict, advantages, and last turn.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { JsonObject } from '../../protocol/json.ts'
import { type House, openHouse } from '../testkit/house.testkit.ts'

/** Every episode earns 1 in total: well measured it is all for one component, badly all for the other. */
const DESK = `
export default {
  contract: {
    name: 'desk', version: 1,
    fields: { total: { type: 'number' }, solved: { type: 'number' }, brief: { type: 'number' } },
    scalar: 'total', components: ['solved', 'brief'],
  },
  problems: () => [],
  describe: (task) => ({ title: task.id }),
  reset: (task) => ({ request: task.spec.request, well: false }),
  open: (state) => [{ role: 'system', content: 'You measure.' }, { role: 'user', content: state.request }],
  tools: () => [{ type: 'function', function: { name: 'measure', description: 'Measures.', parameters: { type: 'object', properties: { well: { type: 'boolean' } } } } }],
  step: (state, call) => ({
    state: { ...state, well: JSON.stringify(call).includes('true') },
    observation: { content: '42 boxes', is_error: false }, audit: {},
  }),
  hear: (state) => state,
  reply: (state, said) => ({ state: { ...state, well: said.startsWith('Well') }, end: 'final' }),
  grade: ({ well }) => ({ status: 'scored', rewards: { total: 1, solved: well ? 0.5 : 0, brief: well ? 0 : 1 }, evidence: {} }),
  anchor: () => 'here',
}
`
const measure = (well: boolean) =>
  `<tool_call>\n{"name": "measure", "arguments": {"well": ${well}}}\n</tool_call>`
/** What the policy says to each request, in equal shares. */
const LINES = {
  'Measure twice at once.': [
    `${measure(true)}\n${measure(true)}`,
    `${measure(false)}\n${measure(false)}`,
  ],
  'Say how it went.': ['Well, it is done.', 'Badly, it is not done.'],
}
const SIZE = 8

let folder: string
let house: House
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'paddock-desk-'))
  mkdirSync(join(folder, 'tasks'))
  writeFileSync(join(folder, 'desk.mjs'), DESK)
  writeFileSync(join(folder, 'pack.yaml'), 'name: desk\nenvironment: desk\ntasks: tasks\n')
  for (const [place, request] of Object.keys(LINES).entries()) {
    const task = JSON.stringify({ id: `desk-${place}`, request })
    writeFileSync(join(folder, 'tasks', `${place}.json`), task)
  }
  const batch = {
    policy: { backend: 'sglang', sampling: { seed: 4 } },
    limits: { max_turns: 1 },
    advantage: { estimator: 'gdpo', settings: { weights: { solved: 2, brief: 1 } } },
    groups: { zero_variance: 'drop' },
  }
  const scripts = Object.entries(LINES).map(([match, [correct, wrong]]) => ({
    match,
    transcripts: { correct: { steps: [{ raw: correct }] }, wrong: { steps: [{ raw: wrong }] } },
  }))
  house = await openHouse({
    simulator: {
      scripts: scripts as never,
      style: { format: 'hermes', thinking: false, mix: { correct: 1, wrong: 1 } },
    },
    settings: {
      environments: { desk: join(folder, 'desk.mjs') },
      packs: [folder],
      dialects: { slime: { reward: 'advantage', engine: 'backend', batch }, polar: { batch } },
    },
  })
}, 60_000)
afterAll(async () => {
  await house.close()
  rmSync(folder, { recursive: true })
})

const post = async (path: string, body: JsonObject): Promise<JsonObject> => {
  const headers = { 'content-type': 'application/json' }
  const request = { method: 'POST', headers, body: JSON.stringify(body) }
  return (await (await fetch(`${house.url}${path}`, request)).json()) as JsonObject
}

interface Said {
  verdict: string
  task: string
  advantage: number
  rewards: { solved: number }
}
interface Item {
  reward: number
  messages: { role: string; content: string }[]
  extra_info: { finish_reason: string; raw_reward: number; paddock: Said }
}
interface Session {
  status: string
  trajectory: {
    traces: {
      prompt_ids: number[]
      response_ids: number[]
      loss_mask: number[]
      response_logprobs: number[]
      response_messages: { role: string; tool_calls?: unknown[] }[]
      finish_reason: string
      reward: number
    }[]
  }
  metadata: { paddock: Said }
}

async function slimeItems(): Promise<Item[]> {
  const sampling_params = { max_tokens: 128, temperature: 1 }
  const start = { task_type: 'desk', num_repeat_per_sample: SIZE, num_epoch: 1, sampling_params }
  await post('/start_rollout', start)
  const items: Item[] = []
  while (items.length < 2 * SIZE)
    items.push(...((await post('/get_rollout_data', {})).data as unknown as { data: Item[] }).data)
  return items
}

async function polarSessions(task: string): Promise<Session[]> {
  const agent = { harness: 'paddock', settings: { task } }
  await post('/rollout/task/submit', { task_id: task, instruction: '', num_samples: SIZE, agent })
  for (;;) {
    const answer = await fetch(`${house.url}/rollout/task/${encodeURIComponent(task)}`)
    const { status, results } = (await answer.json()) as { status: string; results: Session[] }
    if (status === 'completed') return results
  }
}

let items: Promise<Item[]> | null = null
const itemsOf = async (task: string) => {
  items ??= slimeItems()
  return (await items).filter(({ extra_info }) => extra_info.paddock.task === task)
}

it('A07: a group whose members differ in their components alone is valid, and each has its advantage', async () => {
  const heard = await itemsOf('desk/desk-1')
  expect(heard).toHaveLength(SIZE)
  for (const { reward, extra_info } of heard) {
    const { verdict, advantage, rewards } = extra_info.paddock
    expect([verdict, extra_info.raw_reward]).toEqual(['valid', 1])
    expect(reward).toBe(advantage)
    // The heavier component decides: the better in it has the advantage.
    expect(Math.sign(reward)).toBe(rewards.solved === 0.5 ? 1 : -1)
  }
  const sessions = await polarSessions('desk/desk-1')
  expect(sessions).toHaveLength(SIZE)
  for (const { status, trajectory, metadata } of sessions) {
    const { verdict, advantage, rewards } = metadata.paddock
    expect([status, verdict]).toEqual(['COMPLETED', 'valid'])
    expect(Math.sign(advantage)).toBe(rewards.solved === 0.5 ? 1 : -1)
    expect(trajectory.traces.map(({ reward }) => reward)).toEqual([1])
  }
})

it('T07: two calls in the last turn: what the policy never saw of them is trained in no wire form', async () => {
  const heard = await itemsOf('desk/desk-0')
  expect(heard).toHaveLength(SIZE)
  for (const { messages, extra_info } of heard) {
    expect(messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant'])
    expect(messages[2]?.content.split('<tool_call>')).toHaveLength(3)
    expect(extra_info.finish_reason).toBe('length')
  }
  for (const { trajectory } of await polarSessions('desk/desk-0')) {
    const [trace, ...more] = trajectory.traces
    expect(more).toEqual([])
    expect(trace?.finish_reason).toBe('length')
    const { response_ids = [], loss_mask = [], response_logprobs = [] } = trace ?? {}
    expect([loss_mask.length, response_logprobs.length]).toEqual(Array(2).fill(response_ids.length))
    // Sampled ids first, and all of them; what stands behind is not trained.
    const sampled = loss_mask.lastIndexOf(1) + 1
    expect(loss_mask).toEqual(loss_mask.map((_, at) => (at < sampled ? 1 : 0)))
    for (const [at, logprob] of response_logprobs.entries())
      expect(logprob === 0).toBe(at >= sampled)
    expect(trace?.response_messages[0]?.tool_calls).toHaveLength(2)
  }
})
