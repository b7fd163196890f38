// The thread's entry: loads the engine once, then answers jobs. Whatever is thrown here is a fault of the thread.
import { type MessagePort, receiveMessageOnPort, threadId, workerData } from 'node:worker_threads'
import type { Environment, Task } from '../../../envs/environment.ts'
import type { Gate } from '../../../protocol/batch.ts'
import { leaseJson, leaseMsgpack } from '../../../protocol/delivery.ts'
import { PaddockError } from '../../../protocol/errors.ts'
import { digest, type JsonObject } from '../../../protocol/json.ts'
import { answerAdvantages } from '../../../reward/answer.ts'
import type { GroupScores } from '../../../reward/estimator.ts'
import { estimators } from '../../../reward/estimators.ts'
import { evaluationReport } from '../../../reward/evaluation.ts'
import { explainGroup } from '../../../reward/explain.ts'
import { guardedEnvironment, stateFault } from '../../../rollout/guarded-environment.ts'
import { answerParse } from '../../../rollout/toolcall/answer.ts'
import { advance, begin, conclude, emptyState, type TurnResult } from '../../../rollout/turn.ts'
import { evaluateQuery } from '../../dash/evaluate.ts'
import { polarResults } from '../../dialects/polar-results.ts'
import { slimeItems } from '../../dialects/slime-items.ts'
import { specId } from '../packs/spec-id.ts'
import { type LoadedEngine, loadEngine } from './engine.ts'
import { episodeTokens } from './episode-tokens.ts'
import {
  JOB,
  type Job,
  type JobAnswer,
  type JobKind,
  type Jobs,
  type LaneSetup,
  type LaneTask,
  LOADING,
  SKIP_TO,
  STARTED_AT,
  type TurnJobResult,
} from './jobs.ts'
import { createStateCache } from './state-cache.ts'
import { createEnvironmentClock } from './timed-environment.ts'

const { setup, progress } = workerData as LaneSetup
/** What is thrown beside a job is heard only between two tasks, so that one takes no more batches than this. */
const BATCHES_A_TASK = 32
const states = createStateCache(threadId)
const clock = createEnvironmentClock()
let engine: Promise<LoadedEngine> | null = null
let port: MessagePort | null = null
let jobsBegun = 0
let batchesTaken = 0

type Handlers = {
  [Kind in JobKind]: (
    input: Jobs[Kind]['in'],
    engine: LoadedEngine,
  ) => Jobs[Kind]['out'] | Promise<Jobs[Kind]['out']>
}

const handlers: Handlers = {
  warm: () => null,
  begin: (plan, engine) => cross(begin(plan, engine), engine),
  advance: ({ state, reply }, engine) => cross(advance(states.open(state), reply, engine), engine),
  conclude: ({ state, plan, outcome, reason }, engine) =>
    cross(conclude(state ? states.open(state) : emptyState(plan), outcome, reason, engine), engine),
  environments: (_, { environments }) =>
    Object.fromEntries([...environments].map(([name, { contract }]) => [name, contract])),
  generate({ environment, count, seed }, engine) {
    const { generate } = guardedEnvironment(environment, engine.environment(environment))
    if (!generate)
      throw new PaddockError('invalid_config', `environment ${environment} generates no tasks`)
    return Array.from({ length: count }, (_, index) => generate(index, seed))
  },
  question({ environment, prompt, answer }, engine) {
    const { question } = guardedEnvironment(environment, engine.environment(environment))
    return question?.(prompt, answer) ?? null
  },
  inspect: ({ tasks, gate }, engine) =>
    tasks.map((task) => inspect(engine.environment(task.environment), task, gate)),
  check({ environment, text, gate }, engine) {
    const spec = JSON.parse(text) as JsonObject
    const id = `inline/${specId(spec)}`
    return { id, ...inspect(engine.environment(environment), { id, environment, spec }, gate) }
  },
  digest: ({ text, length }) => digest(JSON.parse(text), length),
  show({ environment, id, spec, seed }, engine) {
    const world = guardedEnvironment(environment, engine.environment(environment))
    const task = { id, environment, spec }
    const state = world.reset(task, seed)
    const shown = { messages: world.open(state), tools: world.tools(state) }
    return { id, environment, ...world.describe(task), ...shown } as unknown as JsonObject
  },
  estimate({ estimator, settings, groups }) {
    const known = estimators[estimator]
    if (!known) throw new Error(`no estimator ${estimator}`)
    return known.advantages(groups, settings).map((result, index) => ({
      ...result,
      explanation: explainGroup(groups[index] as GroupScores, result),
    }))
  },
  evaluate: ({ tasks, settings }) => evaluationReport(tasks, settings),
  deliver({ groups, done, form }, engine) {
    if (form === 'json') return leaseJson(groups, done)
    if (form === 'msgpack') return leaseMsgpack(groups, done)
    if (form.kind === 'slime') return slimeItems(groups, form, engine)
    const [group] = groups
    if (!group) throw new Error('a task of Polar is one group, and there is none')
    return polarResults(group, form)
  },
  tokens: (episode, engine) =>
    new TextEncoder().encode(JSON.stringify(episodeTokens(episode, engine))),
  query: evaluateQuery,
  parse: (line) => answerParse(line) as unknown as JsonObject,
  advantages: (line) => answerAdvantages(line) as unknown as JsonObject,
}

/** Piscina calls this with one task at a time; the jobs come and their answers go through the port. */
export default async function run(task: LaneTask): Promise<JobAnswer<'warm'> | number> {
  if (task.kind === 'work') return work()
  port = task.port
  jobsBegun = 0
  batchesTaken = 0
  engine ??= load()
  return answer({ kind: 'warm', input: null })
}

/** Modules first, one by one: one that ends the thread, or never loads, is then known by its place. */
async function load(): Promise<LoadedEngine> {
  const modules = Object.values(setup.environments)
  for (const [place, url] of modules.entries()) {
    loading(place)
    // Imported again by the engine, which tells why where it fails.
    await import(url).catch(() => {})
  }
  loading(modules.length)
  return loadEngine(setup, clock.timed)
}

function loading(place: number): void {
  Atomics.store(progress, LOADING, BigInt(place))
  Atomics.store(progress, STARTED_AT, process.hrtime.bigint())
}

async function work(): Promise<number> {
  if (!port) throw new Error('the thread died between two jobs, and the new one knows no port')
  for (let batches = 0; batches < BATCHES_A_TASK; batches++) {
    const received = receiveMessageOnPort(port) as { message: Job[] } | undefined
    if (!received) break
    const answers: (JobAnswer<JobKind> | null)[] = []
    for (const job of received.message) {
      // First said, then asked: the main thread does the two in the other order, so that one of them sees the other.
      Atomics.store(progress, JOB, BigInt(jobsBegun))
      Atomics.store(progress, STARTED_AT, process.hrtime.bigint())
      const skipped = Atomics.load(progress, SKIP_TO) > BigInt(jobsBegun++)
      answers.push(skipped ? null : await answer(job))
    }
    post(port, received.message, answers)
    batchesTaken++
  }
  return batchesTaken
}

/** A PaddockError is an answer; anything else a fault of this thread. */
async function answer<Kind extends JobKind>({ kind, input }: Job<Kind>): Promise<JobAnswer<Kind>> {
  try {
    engine ??= load()
    return { ok: true, out: await handlers[kind](input, await engine), spent: clock.take() }
  } catch (error) {
    if (!(error instanceof PaddockError)) throw error
    const { code, message, path } = error
    return { ok: false, code, message, path }
  }
}

function inspect(environment: Environment, task: Task, gate: Gate): Jobs['inspect']['out'][number] {
  const problems = environment.problems(task.spec, gate)
  const description = problems.length === 0 ? environment.describe(task) : null
  try {
    return structuredClone({ problems, description })
  } catch (cause) {
    const method = description ? 'describe' : 'problems'
    const message = `${task.environment}.${method} must return plain data: ${(cause as Error)?.message}`
    throw new PaddockError('invalid_task', message, { cause })
  }
}

/** A state that cannot be copied ends its episode here: on every thread it would fail in the same way. */
function cross(result: TurnResult, engine: LoadedEngine): TurnJobResult {
  if (result.kind === 'end') return result
  const { state, events } = result
  try {
    return { ...result, state: states.keep(state) }
  } catch (cause) {
    const { message } = stateFault(state.plan.task.environment, state.env, cause)
    const end = cross(conclude({ ...state, env: null }, 'infra_env', message, engine), engine)
    return { ...end, events: [...events, ...end.events] }
  }
}

/** Hands the answers over. Where one of them cannot be copied, it alone becomes a refusal. */
function post(
  port: MessagePort,
  jobs: readonly Job[],
  answers: readonly (JobAnswer<JobKind> | null)[],
): void {
  try {
    port.postMessage(answers, buffersOfAll(answers))
  } catch {
    port.postMessage(answers.map((answer, index) => answer && copyable(answer, jobs[index]?.kind)))
  }
}

function copyable(answer: JobAnswer<JobKind>, kind = ''): JobAnswer<JobKind> {
  try {
    return structuredClone(answer)
  } catch (cause) {
    const message = `the answer of ${kind} must be plain data: ${(cause as Error)?.message}`
    return { ok: false, code: 'environment_fault', message, path: '' }
  }
}

/** The answers' large buffers, which are handed over instead of copied. */
function buffersOfAll(answers: readonly (JobAnswer<JobKind> | null)[]): ArrayBuffer[] {
  return answers.flatMap((answer) => (answer?.ok ? buffersOf(answer.out) : []))
}

function buffersOf(out: unknown): ArrayBuffer[] {
  if (out instanceof Uint8Array) return owned(out)
  const result = out as Partial<Extract<TurnJobResult, { kind: 'request' }>> &
    Partial<Extract<TurnJobResult, { kind: 'end' }>>
  if (result?.kind === 'end' && result.sealed) return owned(result.sealed.blob)
  if (result?.kind === 'request' && result.state && result.request)
    return [...owned(result.state.bytes), ...owned(result.request.body)]
  return []
}

/** A small view may share Node's buffer pool with others, which must not be handed over. */
function owned(bytes: Uint8Array): ArrayBuffer[] {
  return bytes.byteLength === bytes.buffer.byteLength ? [bytes.buffer as ArrayBuffer] : []
}
