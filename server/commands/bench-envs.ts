// `paddock bench envs`: what an office instance costs to reset, to step and to keep, beside the least that anybody would do.
import { serialize } from 'node:v8'
import type { Environment, Task } from '../../envs/environment.ts'
import { office as officeEnvironment } from '../../envs/office/office.ts'
import type { SpecStep, TaskSpec } from '../../envs/office/spec.ts'
import type { JsonObject } from '../../protocol/json.ts'
import type { EpisodePlan } from '../../rollout/episode.ts'
import { readPack, shippedPack } from '../runtime/packs/packs.ts'
import { createPool, type Pool } from '../runtime/threads/pool.ts'
import { aligned, type MeasureOptions, measurements, medians } from './measure.ts'
import type { Streams } from './streams.ts'

interface EnvsBench {
  /** Of an instance with `records` records: resets a second, and their 50th and 99th percentile in milliseconds. */
  reset: { records: number; per_s: number; clone_per_s: number; p50_ms: number; p99_ms: number }
  /** Calls and messages a second on one thread; `bare` only reads the arguments and writes the stored answer. */
  steps: { per_s: number; bare_per_s: number }
  /** Turns a second through one thread of the pool: parsed, played, and the next request built. */
  pool: { turns_per_s: number }
  /** Bytes of a fresh instance, and of the same when its reference path was played, audit and messages included. */
  bytes: { idle: number; played: number }
}

const office = officeEnvironment as Environment
/** Records of the instance that is reset (envs/SPEC e). */
const RECORDS = 100
/** Resets of which the percentiles are told. */
const RESETS = 4000
/** Episodes that the pool plays at once, so that its thread never waits. */
const AT_ONCE = 32
/** Resets and their bare form, steps and theirs, and turns through the pool. */
const WAYS = 5

/** Writes a table, or with `json` one object. */
export async function benchEnvs(
  options: MeasureOptions,
  { stdout, stderr }: Pick<Streams, 'stdout' | 'stderr'> = process,
): Promise<void> {
  const tasks = await officeTasks()
  const progress = measurements(WAYS, options, stderr)
  const bench: EnvsBench = {
    reset: measureReset(options, progress.measured),
    steps: measureSteps(tasks, options, progress.measured),
    pool: { turns_per_s: await measurePool(tasks, options, progress.measured) },
    bytes: measureBytes(tasks),
  }
  progress.stop()
  stdout.write(options.json ? `${JSON.stringify(bench)}\n` : table(bench))
}

async function officeTasks(): Promise<Task[]> {
  const pack = await readPack(shippedPack('office'))
  return pack.files.flatMap((file) =>
    'spec' in file
      ? { id: `office/${String(file.spec.id)}`, environment: 'office', spec: file.spec }
      : [],
  )
}

const referencePath = ({ spec }: Task): SpecStep[] => (spec as unknown as TaskSpec).reference_path

function measureReset(options: MeasureOptions, measured: () => void): EnvsBench['reset'] {
  const task = taskWithRecords(RECORDS)
  const { reset = 0, clone = 0 } = medians(
    {
      reset: () => {
        office.reset(task, 1)
        return 1
      },
      clone: () => {
        structuredClone(task.spec)
        return 1
      },
    },
    options,
    measured,
  )
  const times = Array.from({ length: RESETS }, () => {
    const started = performance.now()
    office.reset(task, 1)
    return performance.now() - started
  }).sort((a, b) => a - b)
  const percentile = (share: number) => rounded(times[Math.floor(share * (RESETS - 1))] as number)
  return {
    records: RECORDS,
    per_s: reset,
    clone_per_s: clone,
    p50_ms: percentile(0.5),
    p99_ms: percentile(0.99),
  }
}

function taskWithRecords(count: number): Task {
  const item = Array.from({ length: count }, (_, index) => ({
    todo_id: `TD-${index + 1}`,
    title: `Call supplier ${index + 1} about the late delivery`,
    status: index % 3 === 0 ? 'done' : 'pending',
    priority: 'medium',
    tags: ['suppliers', `week-${index % 5}`],
    created_at: '2027-03-01T08:00:00+01:00',
  }))
  const spec = {
    spec_version: 1,
    id: 'records',
    title: 'Records',
    clock: { now: '2027-03-10T11:00:00+01:00' },
    actor: { name: 'Ada Berg', email: 'ada.berg@acme.example' },
    request: 'Please tidy up.',
    services: ['todo'],
    initial_state: { todo: { item } },
    user: { mode: 'none' },
    faults: [],
    limits: {},
    hidden: [],
    reference_path: [],
    grading: { completion: [], safety: [] },
    forbidden_probes: [],
    transcripts: {},
  } as unknown as JsonObject
  return { id: 'bench/records', environment: 'office', spec }
}

function measureSteps(
  tasks: readonly Task[],
  options: MeasureOptions,
  measured: () => void,
): EnvsBench['steps'] {
  const stored = tasks.flatMap((task) => play(task).answers)
  const { steps = 0, bare = 0 } = medians(
    {
      steps: () => tasks.reduce((sum, task) => sum + play(task).answers.length, 0),
      bare: () => {
        for (const { asked, answer } of stored) JSON.stringify([JSON.parse(asked), answer])
        return stored.length
      },
    },
    options,
    measured,
  )
  return { per_s: steps, bare_per_s: bare }
}

/** The reference path in the environment itself: what was asked and answered, and the state that is left. */
function play(task: Task) {
  let state = office.reset(task, 1)
  const answers: { asked: string; answer: unknown }[] = []
  for (const [turn, step] of referencePath(task).entries()) {
    if ('say' in step) {
      const reply = office.reply(state, step.say, turn)
      state = reply.state
      answers.push({ asked: JSON.stringify(step.say), answer: 'say' in reply ? reply.say : null })
      continue
    }
    const arguments_json = JSON.stringify(step.args)
    const call = { id: `call_${turn}`, name: step.call, arguments: step.args, arguments_json }
    const done = office.step(state, call, turn)
    state = done.state
    answers.push({ asked: arguments_json, answer: done.observation })
  }
  return { state, answers }
}

function measureBytes(tasks: readonly Task[]): EnvsBench['bytes'] {
  const mean = (states: readonly unknown[]) =>
    Math.round(
      states.reduce<number>((sum, state) => sum + serialize(state).length, 0) / states.length,
    )
  return {
    idle: mean(tasks.map((task) => office.reset(task, 1))),
    played: mean(tasks.map((task) => play(task).state)),
  }
}

/** Turns a second of episodes that play their reference paths on one thread of the pool, median over rounds. */
async function measurePool(
  tasks: readonly Task[],
  { rounds, milliseconds }: MeasureOptions,
  measured: () => void,
): Promise<number> {
  const pool = createPool({
    threads: 1,
    maxTurnSeconds: 30,
    heapMb: 512,
    environments: {},
    models: {},
  })
  try {
    await pool.ready()
    const rates: number[] = []
    for (let round = 0; round <= rounds; round++) {
      const rate = await poolRate(pool, tasks, milliseconds)
      // The first round compiles the paths and is not counted.
      if (round > 0) rates.push(rate)
      measured()
    }
    return Math.round(rates.sort((a, b) => a - b)[Math.floor(rates.length / 2)] as number)
  } finally {
    await pool.close()
  }
}

async function poolRate(pool: Pool, tasks: readonly Task[], milliseconds: number): Promise<number> {
  const started = performance.now()
  let turns = 0
  let index = 0
  const playOn = async () => {
    while (performance.now() - started < milliseconds) {
      const task = tasks[index++ % tasks.length] as Task
      const played = await playInPool(pool, task)
      turns += played
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, playOn))
  return (1000 * turns) / (performance.now() - started)
}

async function playInPool(pool: Pool, task: Task): Promise<number> {
  let result = await pool.run('begin', planOf(task))
  let turns = 0
  for (const step of referencePath(task)) {
    if (result.kind === 'end') break
    result = await pool.run('advance', { state: result.state, reply: replyOf(step) })
    turns++
  }
  return turns
}

function planOf(task: Task): EpisodePlan {
  return {
    episode: 'bench.g0.e0',
    batch: 'bench',
    group: 'bench.g0',
    groupIndex: 0,
    index: 0,
    attempt: 1,
    task,
    seed: 1,
    policy: {
      dialect: 'vllm',
      backend: 'bench',
      model: 'bench',
      version: null,
      mode: 'chat',
      toolFormat: 'hermes',
      thinking: 'none',
      leniencies: [],
      sampling: { temperature: 1, top_p: 1, max_tokens: 1024 },
      seedBase: 'bench',
      chatTemplateKwargs: {},
      controlTokens: 'refuse',
    },
    contract: office.contract,
    limits: { maxTurns: 100, maxTokens: 1_000_000 },
    onParseError: 'feedback',
  }
}

/** What a policy behind vLLM answers to say this step. */
function replyOf(step: SpecStep) {
  const content =
    'say' in step
      ? step.say
      : `<tool_call>\n${JSON.stringify({ name: step.call, arguments: step.args })}\n</tool_call>`
  const body = {
    model: 'bench',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 100, completion_tokens: 50, total_tokens: 150 },
  }
  return {
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: new TextEncoder().encode(JSON.stringify(body)),
  }
}

const rounded = (value: number): number => Number(value.toPrecision(3))

function table({ reset, steps, pool, bytes }: EnvsBench): string {
  const times = (a: number, b: number) => (a / b).toFixed(3)
  const rate = (value: number) => Math.round(value).toString()
  const rows = [
    ['a second, one thread', 'office', 'bare', 'office/bare'],
    [
      `resets of ${reset.records} records (bare: structured clone of the spec)`,
      rate(reset.per_s),
      rate(reset.clone_per_s),
      times(reset.per_s, reset.clone_per_s),
    ],
    [
      'steps in process (bare: JSON in, stored answer out)',
      rate(steps.per_s),
      rate(steps.bare_per_s),
      times(steps.per_s, steps.bare_per_s),
    ],
    ['turns through the pool', rate(pool.turns_per_s), '', ''],
  ]
  return `${aligned(rows, 1)}\n\nreset: p50 ${reset.p50_ms} ms, p99 ${reset.p99_ms} ms\nbytes of an instance: ${bytes.idle} idle, ${bytes.played} when its reference path was played\n`
}
