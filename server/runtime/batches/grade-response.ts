// A response that was sampled elsewhere, graded as an episode of one turn: the policy's answer is given, all else is real.
import { PaddockError } from '../../../protocol/errors.ts'
import { nearestName } from '../../../reward/nearest.ts'
import type { EpisodePlan, PolicyPlan } from '../../../rollout/episode.ts'
import type { KnownTask, TaskCatalogue } from '../packs/tasks.ts'
import type { Pool } from '../threads/pool.ts'
import { type PlayedAttempt, type PlayerWorld, playAttempt } from './player.ts'

/** What is to be graded. `label` is a task of the pack by its id, or the reference answer to `prompt`. */
export interface ResponseToGrade {
  pack: string
  label: string
  prompt: string
  response: string
  /** How the response is read. */
  reading: Pick<PolicyPlan, 'toolFormat' | 'thinking' | 'leniencies' | 'controlTokens'>
}

/** `reward` is a number exactly when the outcome is `ok` or `ok_truncated`. */
export type GradedResponse = Pick<PlayedAttempt, 'outcome' | 'reason'> & { reward: number | null }

interface GradingWorld extends Pick<PlayerWorld, 'pool' | 'client' | 'beside'> {
  tasks: TaskCatalogue
}

/** Whoever waits for a reward gives up after two minutes. */
const TIMEOUT_MS = 100_000

/** Throws PaddockError `invalid_request` where the label names nothing, `invalid_task` where it is no answer to grade by. */
export async function gradeResponse(
  asked: ResponseToGrade,
  world: GradingWorld,
): Promise<GradedResponse> {
  const known = await taskOf(asked, world.tasks, world.pool).catch((cause) => {
    if (cause instanceof PaddockError) throw cause
    throw new PaddockError('not_graded', `the task could not be found out: ${cause.message}`, {
      cause,
    })
  })
  const end = performance.now() + TIMEOUT_MS
  const deadlines = { turnMs: TIMEOUT_MS, episodeAt: end, groupAt: end }
  const played = await playAttempt(
    planOf(known, asked),
    deadlines,
    answering(asked.response, world),
    new AbortController().signal,
  )
  const { outcome, reason, sealed } = played
  return { outcome, reason, reward: sealed?.header.reward ?? null }
}

async function taskOf(
  { pack, label, prompt }: ResponseToGrade,
  tasks: TaskCatalogue,
  pool: Pool,
): Promise<KnownTask> {
  const of = tasks.summaries(pack)
  const [first] = of
  if (!first) {
    const names = [...new Set(tasks.summaries().map((task) => task.pack))].join(', ')
    throw new PaddockError('invalid_request', `no pack ${pack}; there are ${names}`, {
      path: 'pack',
    })
  }
  const namesTask = label.startsWith(`${pack}/`)
  const id = namesTask ? label : `${pack}/${label}`
  const ids = of.map((task) => task.id)
  if (ids.includes(id)) return tasks.get(id)
  const nearest = () => `${likeness(id, ids)} (GET /v1/tasks?pack=${pack} lists them)`
  const shown = JSON.stringify(label.slice(0, 80))
  if (namesTask) throw noTask(`no task ${shown}; ${nearest()}`)
  const { environment } = first
  const spec = await pool.run('question', { environment, prompt, answer: label })
  if (!spec)
    throw noTask(
      `expected the id of a task of the pack ${pack}, found ${shown}; ${nearest()}; its environment ${environment} grades by no reference answer`,
    )
  try {
    return await tasks.inline(environment, spec, 'label', 'load')
  } catch (error) {
    if (!(error instanceof PaddockError)) throw error
    const { code, message, path } = error
    throw new PaddockError(code, `${message}; if ${shown} is to be a task, ${nearest()}`, {
      path,
      cause: error,
    })
  }
}

/** Some 5 ms on the main thread. */
const MOST_COMPARED = 200

function likeness(id: string, ids: readonly string[]): string {
  return ids.length > MOST_COMPARED
    ? `ids look like ${ids[0]}`
    : `the nearest is ${nearestName(id, ids)}`
}

function noTask(message: string): PaddockError {
  return new PaddockError('invalid_request', message, { path: 'label' })
}

/** No backend has this name, so that no tokenizer is asked: the response is text. */
const NO_BACKEND = ''

function planOf(
  { task, contract, description }: KnownTask,
  { reading }: ResponseToGrade,
): EpisodePlan {
  const seed = Number.isSafeInteger(task.spec.seed) ? (task.spec.seed as number) : 0
  return {
    ...{ episode: 'response', batch: 'response', group: 'response', groupIndex: 0, index: 0 },
    attempt: 1,
    task,
    seed,
    onParseError: description.on_parse_error ?? 'feedback',
    policy: {
      dialect: 'vllm',
      backend: NO_BACKEND,
      model: '',
      mode: 'chat',
      ...reading,
      sampling: { temperature: 1, top_p: 1, max_tokens: 1 },
      version: null,
      seedBase: '',
      chatTemplateKwargs: {},
    },
    contract,
    limits: { maxTurns: 1, maxTokens: Number.MAX_SAFE_INTEGER },
  }
}

/** The player's world with the response in the place of the policy's reply, in vLLM's form. */
function answering(response: string, { pool, client, beside }: GradingWorld): PlayerWorld {
  const choice = { message: { content: response }, finish_reason: 'stop' }
  // One token: how many there were is not told, and an empty response is its end of turn.
  const reply = { choices: [choice], usage: { prompt_tokens: 0, completion_tokens: 1 } }
  const body = new TextEncoder().encode(JSON.stringify(reply))
  return {
    pool,
    beside,
    client: {
      ...client,
      ask: async () => ({ kind: 'reply', status: 200, headers: {}, body }),
      resumed: () => Promise.resolve(),
      blame() {},
    },
    keepTurn: () => Promise.resolve(),
    onEvents() {},
  }
}
