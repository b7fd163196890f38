// A stored group as Polar's TaskResult: one session an episode, in their places, one trace a sample. Runs in a worker.
import { type GroupEnvelope, groupObject } from '../../protocol/delivery.ts'
import type { DeliveredEpisode, EpisodeSeconds, Sample } from '../../protocol/group.ts'
import type { JsonObject } from '../../protocol/json.ts'
import { type EpisodeOutcome, isScored } from '../../protocol/outcomes.ts'
import type { LogprobForm } from './polar-logprobs.ts'

/** What the answer says beside the group. */
export interface PolarForm {
  kind: 'polar'
  task_id: string
  /** The task's own metadata, which every session echoes. */
  metadata: JsonObject
  logprobs: LogprobForm
  /** Scored episodes that are enough; null where all were wanted. */
  enough: number | null
}

/** The parts of a trajectory that a trace shows. */
interface Trajectory {
  messages: (JsonObject & { role: string })[]
  turns: {
    sample: number | null
    finish: 'stop' | 'length'
    content: string | null
    reasoning: string | null
    calls: { id: string; name: string; arguments_json: string }[]
  }[]
}

/** A body that both a callback (TaskResult) and a poll (TaskStatus) can carry. */
export function polarBody(
  taskId: string,
  status: 'running' | 'completed' | 'cancelled',
  total: number,
  completed: number,
  results: readonly JsonObject[] = [],
): JsonObject {
  return {
    task_id: taskId,
    status,
    total_sessions: total,
    completed_sessions: completed,
    results: [...results],
    result_paths: [],
  }
}

/**
 * The body of a finished task as JSON text. A failed episode is a session with its status and no traces: only a
 * `completed` task is no fault to the client. Field by field: polar/rollout/models.py, polar/trajectory/models.py.
 */
export function polarResults(
  group: GroupEnvelope,
  { task_id, metadata, logprobs, enough }: PolarForm,
): Uint8Array {
  const { episodes, ...head } = groupObject(group)
  const stopped = enough !== null && head.stats.scored >= enough
  const results = episodes.map((episode, place) => {
    const { id, outcome, reason, seconds } = episode
    const straggler = stopped && outcome === 'aborted'
    const own = {
      ...metadata,
      ...(straggler && earlyStop(seconds)),
      paddock: about(head, episode),
    }
    if (!isScored(outcome)) return failedSession(task_id, id, outcome, reason, own, seconds)
    const text = group.episodes[place]?.trajectory
    const record = text ? (JSON.parse(new TextDecoder().decode(text)) as Trajectory) : null
    const played = traces(episode, record, logprobs)
    return session(task_id, id, 'COMPLETED', null, own, played, seconds)
  })
  const body = polarBody(task_id, 'completed', results.length, results.length, results)
  return new TextEncoder().encode(JSON.stringify(body))
}

/** A session that has no reward. Its `error` alone makes the client mask it. */
export function failedSession(
  taskId: string,
  episode: string,
  outcome: EpisodeOutcome,
  reason: string | null,
  metadata: JsonObject,
  seconds: EpisodeSeconds | null = null,
): JsonObject {
  const status = outcome === 'timeout' ? 'TIMEOUT' : 'ERROR'
  const error = `${outcome}: ${reason ?? 'no reason'}`
  return session(taskId, episode, status, error, metadata, [], seconds)
}

/** By this the client's figures tell a straggler from a failure. */
function earlyStop(seconds: EpisodeSeconds | null): JsonObject {
  const elapsed = seconds ? sum(Object.values(seconds)) : 0
  return { early_stop_cancelled: true, early_stop_elapsed_ms: 1000 * elapsed }
}

function session(
  taskId: string,
  episode: string,
  status: 'COMPLETED' | 'TIMEOUT' | 'ERROR',
  error: string | null,
  metadata: JsonObject,
  traces: JsonObject[],
  seconds: EpisodeSeconds | null,
): JsonObject {
  return {
    session_id: `sk-polar-${episode}`,
    task_id: taskId,
    status,
    trajectory: { status, metadata, traces, error },
    timing: timing(seconds),
    node_id: 'paddock',
    error,
    metadata,
  }
}

/** Each generation of the client forbids keys that it does not know: these four all know. */
function timing(seconds: EpisodeSeconds | null): JsonObject {
  const { queued, reset, turns, grading } = seconds ?? NEVER_PLAYED
  return {
    register_to_init_queue_ms: 1000 * queued,
    init_ms: 1000 * reset,
    run_ms: 1000 * turns,
    postrun_ms: 1000 * grading,
  }
}
const NEVER_PLAYED: EpisodeSeconds = { queued: 0, reset: 0, turns: 0, grading: 0 }

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0)

function about(
  { verdict, contract, estimator, policy }: Omit<ReturnType<typeof groupObject>, 'episodes'>,
  { id, attempt, outcome, reason, reward, rewards, advantage }: DeliveredEpisode,
): JsonObject {
  const episode = { episode: id, attempt, outcome, reason, reward, rewards, advantage }
  return { ...episode, verdict, contract, estimator, policy }
}

/** The response begins where the policy first spoke; every trace has the episode's one reward. */
function traces(
  episode: DeliveredEpisode,
  record: Trajectory | null,
  logprobs: LogprobForm,
): JsonObject[] {
  const { samples, reward, rewards } = episode
  const components = Object.entries(rewards ?? {}).filter(([, value]) => value !== null)
  return samples.map((sample, place) => ({
    ...tokens(sample, logprobs),
    ...said(record, place, place === samples.length - 1),
    tools: null,
    reward,
    reward_components: Object.fromEntries(components),
    metadata: { versions: sample.versions as unknown as JsonObject[] },
    ...(episode.outcome === 'ok_truncated' &&
      place === samples.length - 1 && { finish_reason: 'length' }),
  }))
}

function tokens(sample: Sample, form: LogprobForm): JsonObject {
  const { ids, mask, logprobs, prompt_length } = sample
  const response_ids = ids.slice(prompt_length)
  const numbers = logprobs.slice(prompt_length)
  return {
    prompt_ids: ids.slice(0, prompt_length),
    response_ids,
    loss_mask: mask.slice(prompt_length),
    response_logprobs:
      form === 'numbers'
        ? numbers
        : response_ids.map((token_id, at) => ({ token_id, logprob: numbers[at] ?? 0 })),
  }
}

/** The messages of one sample's turns, and those before them. */
function said(record: Trajectory | null, sample: number, last: boolean): JsonObject {
  if (!record) return { prompt_messages: [], response_messages: [], finish_reason: 'stop' }
  const { turns } = record
  const { messages, spoken } = structured(record)
  const start = (of: number) => spoken[turns.findIndex((turn) => turn.sample === of)]
  const from = start(sample) ?? messages.length
  const to = last ? messages.length : (start(sample + 1) ?? messages.length)
  const finish = turns.findLast((turn) => turn.sample === sample)?.finish ?? 'stop'
  return {
    prompt_messages: messages.slice(0, from),
    response_messages: messages.slice(from, to),
    finish_reason: finish,
  }
}

/**
 * The conversation with each call in `tool_calls`, and where each turn stands in it. The record has calls as sampled text,
 * and the client takes the reward from a message whose text holds a call that stands nowhere else.
 */
function structured({ messages, turns }: Trajectory): { messages: JsonObject[]; spoken: number[] } {
  const spoken = messages
    .flatMap(({ role }, at) => (role === 'assistant' ? [at] : []))
    .slice(-turns.length)
  return {
    spoken,
    messages: messages.map((message, at) => {
      const turn = turns[spoken.indexOf(at)]
      if (!turn) return message
      const { content, reasoning, calls } = turn
      return {
        role: 'assistant',
        content: content ?? '',
        ...(reasoning !== null && { reasoning_content: reasoning }),
        ...(calls.length > 0 && { tool_calls: calls.map(toolCall) }),
      }
    }),
  }
}

function toolCall({ id, name, arguments_json }: Trajectory['turns'][number]['calls'][number]) {
  return { id, type: 'function', function: { name, arguments: arguments_json } }
}
