// A Polar task as it is submitted, and the batch of one group that is played for it.
import { z } from 'zod'
import type { BatchRequest } from '../../protocol/batch.ts'
import { PaddockError } from '../../protocol/errors.ts'
import type { JsonObject } from '../../protocol/json.ts'
import type { Config } from '../config.ts'
import { invalidRequest } from '../problems.ts'
import { checkSchema } from '../schema-issues.ts'
import { foreignBatch } from './foreign-batch.ts'

type PolarSettings = Config['dialects']['polar']

/** Our own limits, which Polar's server does not have: what is longer is cut, as a refusal ends the training. */
const LONGEST_S = 86_400
const MOST_TURNS = 1000
/** Bytes that the metadata of a task takes up in one answer, where each session has it twice. */
const MOST_METADATA = 32 * 2 ** 20

const seconds = z.number().gt(0)
/** Polar's server reads text as a number where it is one. */
const secondsOrText = z.union([
  seconds,
  z
    .string()
    .trim()
    .regex(/^\+?\d*\.?\d+(e[+-]?\d+)?$/i, 'expected a number of seconds')
    .transform(Number)
    .pipe(seconds),
])

/** Unknown keys are ignored, as Polar's own server does; `runtime`, `builder` and `evaluator` are for its sandboxes. */
const taskSchema = z.looseObject({
  task_id: z.string().min(1).max(512),
  instruction: z.string(),
  num_samples: z.int().min(1).max(1024).default(1),
  early_stop_min_usable_sessions: z.int().min(1).nullish(),
  timeout_seconds: secondsOrText.default(600),
  agent: z.looseObject({
    harness: z.string().nullish(),
    settings: z
      .looseObject({
        task: z.string().nullish(),
        seed: z.int().min(0).nullish(),
        step_limit: z.int().min(1).nullish(),
        model_kwargs: z
          .looseObject({
            temperature: z.number().nullish(),
            top_p: z.number().nullish(),
            max_tokens: z.int().min(1).nullish(),
          })
          .nullish(),
      })
      .nullish(),
  }),
  callback_url: z
    .url({ protocol: /^https?$/, error: 'expected an http or https URL, as http://trainer:9000/' })
    .nullish(),
  metadata: z
    .looseObject({
      policy_version: z.int().min(0).nullish(),
      agent_timeout: seconds.nullish(),
      eval_sampling_seed_base: z.int().min(0).nullish(),
    })
    .default({}),
})
export type PolarTask = z.output<typeof taskSchema>

/** Throws PaddockError `invalid_task`: Polar's server answers 422 to what does not fit. */
export function readPolarTask(body: unknown): PolarTask {
  const checked = checkSchema(taskSchema, body)
  if (!checked.ok) {
    const { message, path } = invalidRequest(checked.issues)
    throw new PaddockError('invalid_task', message, { path })
  }
  const { agent, early_stop_min_usable_sessions: enough, num_samples } = checked.value
  refuseEndlessEcho(checked.value)
  if (agent.harness !== 'paddock')
    refuse(
      `expected harness "paddock", which plays tasks of this server's packs, found ${JSON.stringify(agent.harness ?? null)}: agents that need a sandbox are run by Polar itself`,
      'agent.harness',
    )
  if (enough && enough > num_samples)
    refuse(`expected at most num_samples (${num_samples})`, 'early_stop_min_usable_sessions')
  return checked.value
}

/**
 * One batch of one group. The client's `timeout_seconds` is the budget of an episode and of each turn in it; a failed
 * member leaves the others their rewards. Throws PaddockError `invalid_task` or `invalid_request`.
 */
export function polarBatch(id: string, task: PolarTask, config: Config): BatchRequest {
  const { batch, ...settings } = config.dialects.polar
  const { seed, step_limit, model_kwargs } = task.agent.settings ?? {}
  const { temperature, top_p, max_tokens } = model_kwargs ?? {}
  const { policy_version, agent_timeout, eval_sampling_seed_base: evalSeed } = task.metadata
  const budget = Math.min(task.timeout_seconds, agent_timeout ?? LONGEST_S, LONGEST_S)
  const named = { task: taskIdOf(task, settings), metadata: {}, ...(seed != null && { seed }) }
  const sampling = {
    ...(temperature != null && { temperature }),
    ...(top_p != null && { top_p }),
    ...(max_tokens != null && { max_tokens }),
    ...(evalSeed != null && { seed: evalSeed }),
  }
  const ask = { id, tasks: [named], group_size: task.num_samples, url: null, sampling }
  const request = foreignBatch(ask, batch, config.backends)
  refuseWithoutTokens(request.policy.backend, config)
  return {
    ...request,
    mode: evalSeed != null ? 'eval' : 'train',
    policy: { ...request.policy, ...(policy_version != null && { version: policy_version }) },
    limits: {
      ...request.limits,
      ...(step_limit != null && { max_turns: Math.min(step_limit, MOST_TURNS) }),
      turn_timeout_s: budget,
      episode_timeout_s: budget,
      // The client has no limit of the group: what waits in our queue must not run into one.
      group_timeout_s: LONGEST_S,
    },
    groups: {
      ...request.groups,
      on_short: 'retry',
      min_scored: 1,
      zero_variance: 'deliver',
      retry_timeouts: false,
      ...(task.early_stop_min_usable_sessions && { enough: task.early_stop_min_usable_sessions }),
    },
  }
}

/** `agent.settings.task`, or what the settings make of the metadata. */
function taskIdOf({ agent, metadata }: PolarTask, settings: Omit<PolarSettings, 'batch'>): string {
  const named = agent.settings?.task
  if (named) return named
  const { task_key, tasks } = settings
  const value = (metadata as JsonObject)[task_key]
  if (typeof value === 'string' || typeof value === 'number') {
    const name = String(value)
    return Object.hasOwn(tasks, name) ? (tasks[name] as string) : name
  }
  return refuse(
    `expected the id of a task, as "office/dev-04-interview-slot", here or in metadata.${task_key}`,
    'agent.settings.task',
  )
}

function refuseEndlessEcho({ metadata, num_samples }: PolarTask): void {
  const own = Buffer.byteLength(JSON.stringify(metadata))
  const all = 2 * own * num_samples
  if (all > MOST_METADATA)
    refuse(
      `expected at most ${MOST_METADATA} bytes of metadata in the answer, found ${all}: ${own} bytes, twice in each of ${num_samples} sessions; send less metadata, or fewer samples a task`,
      'metadata',
    )
}

/** Polar's traces are token ids: a backend without the model's files has none to give. */
function refuseWithoutTokens(backend: string, { backends }: Config): void {
  if (Object.hasOwn(backends, backend) && backends[backend]?.model_dir === undefined)
    refuse(
      `traces need token ids, and backend ${backend} has none: set backends.${backend}.model_dir to the model's folder`,
      'agent',
    )
}

function refuse(message: string, path: string): never {
  throw new PaddockError('invalid_task', message, { path })
}
