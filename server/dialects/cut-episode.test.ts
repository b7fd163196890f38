// One episode in several samples, as every wire form has it: each sample with the episode's own number on its own tokens.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { JsonObject } from '../../protocol/json.ts'
import { createChatModel } from '../../rollout/chat/qwen-chat-model.ts'
import { qwen3Files } from '../../rollout/chat/qwen3.testkit.ts'
import { type House, openHouse } from '../testkit/house.testkit.ts'

const TOKENS = [5, 40, 9]
const REWARDS = [1, 0, 0, 1]

/** Three exchanges without tools; the last answer is right or wrong by its first word. */
const CHAT = `
export default {
  contract: { name: 'chat', version: 1, fields: { score: { type: 'number', min: 0, max: 1, required: true } },
    scalar: 'score', components: ['score'] },
  problems: () => [],
  describe: (task) => ({ title: task.id, limits: {} }),
  reset: () => ({ said: [] }),
  open: () => [{ role: 'system', content: 'You talk.' }, { role: 'user', content: 'Talk.' }],
  tools: () => [],
  step: (state) => ({ state, observation: { content: '', is_error: true }, audit: {} }),
  hear: (state) => state,
  reply(state, message) {
    const said = [...state.said, message]
    return said.length < ${TOKENS.length} ? { state: { said }, say: 'Go on.' } : { state: { said }, end: 'final' }
  },
  grade: (state) => ({ status: 'scored', rewards: { score: state.said.at(-1).startsWith('yes') ? 1 : 0 }, evidence: {} }),
  anchor: (state) => 'after ' + state.said.length,
}
`

const model = createChatModel(qwen3Files())
const idsOf = (words: string, length: number) => {
  const ids = [...model.encodePlain(words.repeat(length))].slice(0, length - 1)
  return [...ids, model.stopTokenIds[0] as number]
}

/** Episodes by their first seed: the first and the last of four end well. */
const seeds = new Map<string, number>()

/** A vLLM whose template spells what was said before in other ids at every turn, so that no prompt extends the tape. */
function engine(): Server {
  return createServer(async (request, response) => {
    const { messages, seed } = JSON.parse(await text(request)) as {
      messages: { role: string; content: string }[]
      seed: number
    }
    const turn = messages.filter(({ role }) => role === 'assistant').length
    // One line of conversation a seed; later turns are known by what was said first.
    const name = turn === 0 ? String(seed) : (messages[2]?.content.split(' ')[1] ?? '')
    if (turn === 0 && !seeds.has(name)) seeds.set(name, seeds.size)
    const place = turn === 0 ? (seeds.get(name) ?? 0) % REWARDS.length : Number(name)
    const word = REWARDS[place] === 1 ? 'yes' : 'no'
    const ids = idsOf(turn === 0 ? `say ${place} ` : `${word} `, TOKENS[turn] as number)
    const prompt = [...model.encode(`turn ${turn} of `), ...model.encodePlain('a b c ')]
    const choice = {
      index: 0,
      message: { role: 'assistant', content: model.decode(ids) },
      token_ids: ids,
      logprobs: { content: ids.map(() => ({ token: 'x', logprob: -0.5 })) },
      finish_reason: 'stop',
    }
    response.setHeader('content-type', 'application/json')
    response.end(
      JSON.stringify({
        choices: [choice],
        prompt_token_ids: prompt,
        usage: { prompt_tokens: prompt.length, completion_tokens: ids.length },
      }),
    )
  })
}

let folder: string
let house: House
const server = engine()
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'paddock-cut-'))
  mkdirSync(join(folder, 'tasks'))
  writeFileSync(join(folder, 'chat.mjs'), CHAT)
  writeFileSync(join(folder, 'pack.yaml'), 'name: chat\nenvironment: chat\ntasks: tasks\n')
  writeFileSync(join(folder, 'tasks', 'talk.json'), '{"id": "talk"}')
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const batch = { policy: { backend: 'main', mode: 'chat' } }
  house = await openHouse({
    backendUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    settings: {
      environments: { chat: join(folder, 'chat.mjs') },
      packs: [folder],
      // One at a time, so that the seeds are known in the order of the episodes.
      runtime: { threads: 1, max_episodes: 1 },
      dialects: { slime: { reward: 'advantage', engine: 'backend', batch }, polar: { batch } },
    },
  })
}, 60_000)
afterAll(async () => {
  await house.close()
  server.close()
  rmSync(folder, { recursive: true })
})

const post = async (path: string, body: JsonObject): Promise<JsonObject> => {
  const headers = { 'content-type': 'application/json' }
  const request = { method: 'POST', headers, body: JSON.stringify(body) }
  return (await (await fetch(`${house.url}${path}`, request)).json()) as JsonObject
}

/** (reward − mean) / (sample std + 1e-6): 0.5 / (√(1/3) + 1e-6), and its negative. */
const ADVANTAGE = 0.5 / (Math.sqrt(1 / 3) + 1e-6)
const advantageOf = (reward: number | null) => (reward === 1 ? ADVANTAGE : -ADVANTAGE)
const ones = (mask: readonly number[]) => mask.filter((bit) => bit === 1).length

it('A09: three samples, each with the episode’s advantage on its own sampled tokens, in every wire form', async () => {
  const { groups } = await house.run({
    tasks: [{ task: 'chat/talk' }],
    group_size: REWARDS.length,
    policy: { backend: 'main', mode: 'chat' },
  })
  const episodes = groups[0]?.episodes ?? []
  expect(episodes.map(({ reward }) => reward)).toEqual(REWARDS)
  for (const { samples, turns, reward, advantage } of episodes) {
    expect(advantage).toBeCloseTo(advantageOf(reward), 12)
    expect(samples.map(({ mask }) => ones(mask))).toEqual(TOKENS)
    for (const { ids, mask, logprobs } of samples)
      expect([mask.length, logprobs.length]).toEqual([ids.length, ids.length])
    expect(turns.map((turn) => turn.sample)).toEqual([0, 1, 2])
    for (const [place, { sample, start, end, ...turn }] of turns.entries()) {
      expect(end - start).toBe(TOKENS[place])
      expect(ones(samples[sample ?? -1]?.mask.slice(start, end) ?? [])).toBe(TOKENS[place])
      expect(turn.advantage).toBe(advantage)
    }
  }

  await post('/start_rollout', {
    task_type: 'chat',
    num_repeat_per_sample: '4',
    num_epoch: '1',
    sampling_params: { max_tokens: 64 },
  })
  let items: { reward: number; extra_info: { raw_reward: number }; messages: JsonObject[] }[] = []
  while (items.length === 0)
    items = ((await post('/get_rollout_data', {})).data as { data: typeof items }).data
  expect(items.map(({ extra_info }) => extra_info.raw_reward)).toEqual(REWARDS)
  for (const { reward, extra_info, messages } of items) {
    // slime makes one sample of the whole conversation: the advantage is its reward, and every answer is in it once.
    expect(reward).toBeCloseTo(advantageOf(extra_info.raw_reward), 12)
    expect(messages.filter(({ role }) => role === 'assistant')).toHaveLength(TOKENS.length)
  }

  await post('/rollout/task/submit', {
    task_id: 'cut',
    instruction: 'Talk.',
    num_samples: 4,
    agent: { harness: 'paddock', settings: { task: 'chat/talk' } },
  })
  let task: JsonObject = {}
  while (task.status !== 'completed')
    task = (await (await fetch(`${house.url}/rollout/task/cut`)).json()) as JsonObject
  type Trace = {
    response_ids: number[]
    loss_mask: number[]
    response_logprobs: number[]
    reward: number
  }
  const sessions = task.results as unknown as {
    trajectory: { traces: Trace[] }
    metadata: { paddock: { reward: number; advantage: number } }
  }[]
  expect(sessions.map(({ metadata }) => metadata.paddock.reward)).toEqual(REWARDS)
  for (const { trajectory, metadata } of sessions) {
    const { reward, advantage } = metadata.paddock
    expect(advantage).toBeCloseTo(advantageOf(reward), 12)
    expect(trajectory.traces.map(({ loss_mask }) => ones(loss_mask))).toEqual(TOKENS)
    for (const trace of trajectory.traces) {
      expect(trace.reward).toBe(reward)
      expect(trace.loss_mask).toHaveLength(trace.response_ids.length)
      expect(trace.response_logprobs).toHaveLength(trace.response_ids.length)
    }
  }
}, 60_000)
