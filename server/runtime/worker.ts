// The thread's entry: loads the engine once, then answers jobs. Whatever is thrown here is a fault of the thread.
import { deserialize, serialize } from 'node:v8'
import { workerData } from 'node:worker_threads'
import { Piscina, transferableSymbol, valueSymbol } from 'piscina'
import type { Environment } from '../../envs/environment.ts'
import { leaseJson, leaseMsgpack } from '../../protocol/delivery.ts'
import { PaddockError } from '../../protocol/errors.ts'
import type { JsonObject } from '../../protocol/json.ts'
import { answerAdvantages } from '../../reward/answer.ts'
import { chooseEstimator, estimators } from '../../reward/estimators.ts'
import type { EpisodeState } from '../../rollout/episode.ts'
import { answerParse } from '../../rollout/toolcall/answer.ts'
import { advance, begin, conclude, emptyState, type TurnResult } from '../../rollout/turn.ts'
import { type LoadedEngine, loadEngine } from './engine.ts'
import {
  type Job,
  type JobAnswer,
  type JobKind,
  type Jobs,
  PROGRESS,
  type TurnJobResult,
  type WorkerSetup,
} from './jobs.ts'

const { setup, progress } = workerData as { setup: WorkerSetup; progress: BigInt64Array }
/** Where the two stand in a batch request. */
const SETTINGS_PATH = { estimator: 'advantage.estimator', settings: 'advantage.settings' }
let engine: Promise<LoadedEngine> | null = null

type Handlers = {
  [Kind in JobKind]: (
    input: Jobs[Kind]['in'],
    engine: LoadedEngine,
  ) => Jobs[Kind]['out'] | Promise<Jobs[Kind]['out']>
}

const handlers: Handlers = {
  warm: () => null,
  begin: (plan, engine) => cross(begin(plan, engine)),
  advance: ({ state, reply }, engine) =>
    cross(advance(deserialize(state) as EpisodeState, reply, engine)),
  conclude: ({ state, plan, outcome, reason }, engine) =>
    cross(
      conclude(
        state ? (deserialize(state) as EpisodeState) : emptyState(plan),
        outcome,
        reason,
        engine,
      ),
    ),
  environments: (_, { environments }) =>
    Object.fromEntries([...environments].map(([name, { contract }]) => [name, contract])),
  generate({ environment, count, seed }, engine) {
    const { generate } = engine.environment(environment)
    if (!generate)
      throw new PaddockError('invalid_config', `environment ${environment} generates no tasks`)
    return Array.from({ length: count }, (_, index) => generate(index, seed))
  },
  inspect: (specs, engine) =>
    specs.map(({ environment, id, spec }) =>
      inspect(engine.environment(environment), id, environment, spec),
    ),
  show({ environment, id, spec, seed }, engine) {
    const world = engine.environment(environment)
    const task = { id, environment, spec }
    const state = world.reset(task, seed)
    const shown = { messages: world.open(state), tools: world.tools(state) }
    return { id, environment, ...world.describe(task), ...shown } as unknown as JsonObject
  },
  settings: ({ estimator, settings }) =>
    chooseEstimator(estimator, settings, SETTINGS_PATH).settings,
  estimate({ estimator, settings, groups }) {
    const known = estimators[estimator]
    if (!known) throw new Error(`no estimator ${estimator}`)
    return known.advantages(groups, settings)
  },
  deliver: ({ groups, done, encoding }) =>
    encoding === 'json' ? leaseJson(groups, done) : leaseMsgpack(groups, done),
  parse: (line) => answerParse(line) as unknown as JsonObject,
  advantages: (line) => answerAdvantages(line) as unknown as JsonObject,
}

/** Piscina calls this with one batch at a time; the main thread sees which of its jobs runs. */
export default async function run(jobs: readonly Job[]): Promise<unknown> {
  engine ??= loadEngine(setup)
  const answers: JobAnswer<JobKind>[] = []
  for (const [index, job] of jobs.entries()) {
    Atomics.store(progress, PROGRESS.index, BigInt(index))
    Atomics.store(progress, PROGRESS.startedAt, process.hrtime.bigint())
    answers.push(await answer(job))
  }
  return moved(answers)
}

/** A PaddockError is an answer; anything else a fault of this thread. */
async function answer<Kind extends JobKind>({ kind, input }: Job<Kind>): Promise<JobAnswer<Kind>> {
  try {
    return { ok: true, out: await handlers[kind](input, await (engine as Promise<LoadedEngine>)) }
  } catch (error) {
    if (!(error instanceof PaddockError)) throw error
    const { code, message, path } = error
    return { ok: false, code, message, path }
  }
}

function inspect(
  environment: Environment,
  id: string,
  name: string,
  spec: JsonObject,
): Jobs['inspect']['out'][number] {
  const problems = environment.problems(spec)
  const description =
    problems.length === 0 ? environment.describe({ id, environment: name, spec }) : null
  return { problems, description }
}

function cross(result: TurnResult): TurnJobResult {
  return result.kind === 'request' ? { ...result, state: serialize(result.state) } : result
}

/** Hands the answers' large buffers over instead of copying them. */
function moved(answers: readonly JobAnswer<JobKind>[]): unknown {
  const buffers = answers.flatMap((answer) => (answer.ok ? buffersOf(answer.out) : []))
  if (buffers.length === 0) return answers
  return Piscina.move({ [transferableSymbol]: buffers, [valueSymbol]: answers } as never)
}

function buffersOf(out: unknown): ArrayBufferLike[] {
  if (out instanceof Uint8Array) return owned(out)
  const result = out as Partial<Extract<TurnJobResult, { kind: 'request' }>> &
    Partial<Extract<TurnJobResult, { kind: 'end' }>>
  if (result?.kind === 'end' && result.sealed) return owned(result.sealed.blob)
  if (result?.kind === 'request' && result.state && result.request)
    return [...owned(result.state), ...owned(result.request.body)]
  return []
}

/** A small view may share Node's buffer pool with others, which must not be handed over. */
function owned(bytes: Uint8Array): ArrayBufferLike[] {
  return bytes.byteLength === bytes.buffer.byteLength ? [bytes.buffer] : []
}
