// What the main thread asks of a worker, and what comes back: the one vocabulary of both sides of the thread border.
import type { MessagePort } from 'node:worker_threads'
import type { Task, TaskDescription, TaskProblem } from '../../../envs/environment.ts'
import type { Gate } from '../../../protocol/batch.ts'
import type { RewardContract } from '../../../protocol/contract.ts'
import type { GroupEnvelope } from '../../../protocol/delivery.ts'
import type { JsonObject } from '../../../protocol/json.ts'
import type { EpisodeOutcome } from '../../../protocol/outcomes.ts'
import type { KeptEpisode, SealedEpisode } from '../../../protocol/sealed.ts'
import type { GroupScores } from '../../../reward/estimator.ts'
import type {
  EvaluatedTask,
  EvaluationReport,
  EvaluationSettings,
} from '../../../reward/evaluation.ts'
import type { EstimatedGroup } from '../../../reward/explain.ts'
import type { EpisodePlan } from '../../../rollout/episode.ts'
import type { EpisodeRequest, HttpReply } from '../../../rollout/request.ts'
import type { TurnEvent } from '../../../rollout/turn-events.ts'
import type { Query, Row } from '../../dash/evaluate.ts'
import type { GroupForm } from '../../service.ts'
import type { GraderSource } from '../asking/grader-setup.ts'
import type { KeptState } from './state-cache.ts'
import type { Spent } from './timed-environment.ts'

/** What a thread loads. */
export interface WorkerSetup {
  /** User environments: name to module URL. */
  environments: Record<string, string>
  /** Backends that name a model folder: backend to folder. */
  models: Record<string, string>
  /** Custom graders of the packs, by name, for the gate; none by default. */
  graders?: Record<string, GraderSource>
}

/** What a thread is started with. */
export interface LaneSetup {
  setup: WorkerSetup
  /** Shared: `JOB`, `STARTED_AT`, `LOADING` and `SKIP_TO`. */
  progress: BigInt64Array
}

/** Each kind of job with its input and its answer. */
export interface Jobs {
  /** Nothing; answered once the thread has loaded what it needs. */
  warm: { in: null; out: null }
  begin: { in: EpisodePlan; out: TurnJobResult }
  advance: { in: { state: KeptState; reply: HttpReply }; out: TurnJobResult }
  /** Seals an episode that ended from outside. `state` null: nothing of it has been played. */
  conclude: {
    in: {
      state: KeptState | null
      plan: EpisodePlan
      outcome: EpisodeOutcome
      reason: string
    }
    out: TurnJobResult
  }
  /** Contracts of all environments, by name. */
  environments: { in: null; out: Record<string, RewardContract> }
  generate: { in: { environment: string; count: number; seed: number }; out: JsonObject[] }
  /** The spec of a task that asks `prompt` and has the reference answer; null where the environment has no such tasks. */
  question: { in: { environment: string; prompt: string; answer: string }; out: JsonObject | null }
  /** Problems and public description of each spec. */
  inspect: {
    in: { tasks: readonly Task[]; gate: Gate }
    out: { problems: TaskProblem[]; description: TaskDescription | null }[]
  }
  /** The same of one inline spec, as JSON text, with the id of its task. */
  check: {
    in: { environment: string; text: string; gate: Gate }
    out: { id: string; problems: TaskProblem[]; description: TaskDescription | null }
  }
  /** The digest of what a JSON text says, so many hexadecimal digits of it. */
  digest: { in: { text: string; length: number }; out: string }
  /** What the model is shown of a task. */
  show: { in: { environment: string; id: string; spec: JsonObject; seed: number }; out: JsonObject }
  estimate: {
    in: { estimator: string; settings: unknown; groups: GroupScores[] }
    out: EstimatedGroup[]
  }
  evaluate: {
    in: { tasks: EvaluatedTask[]; settings: EvaluationSettings }
    out: EvaluationReport
  }
  /** The body of a lease. */
  deliver: {
    in: { groups: GroupEnvelope[]; done: boolean; form: GroupForm }
    out: Uint8Array
  }
  /** A sealed episode's tokens as JSON text. */
  tokens: { in: KeptEpisode; out: Uint8Array }
  /** A query of the dashboard over samples that were kept. */
  query: { in: Query; out: Row[] }
  parse: { in: unknown; out: JsonObject }
  advantages: { in: unknown; out: JsonObject }
}

export type JobKind = keyof Jobs

/** One job as it crosses, in a batch of them. */
export interface Job<Kind extends JobKind = JobKind> {
  kind: Kind
  input: Jobs[Kind]['in']
}

/** Place in a thread's shared memory of the number, from 0, of the job that it began last since its start; -1 for none. */
export const JOB = 0
/** Place of the moment when it began it, `process.hrtime` in nanoseconds: one clock for all threads. */
export const STARTED_AT = 1
/** Place of what it loads: the number of a user environment in the setup, then the model folders; -1 before. */
export const LOADING = 2

/** Place of the number up to which jobs that have not begun are left out: what stood behind a slow one is run elsewhere. */
export const SKIP_TO = 3

/** `start`: load, and take jobs from this port; a JobAnswer. `work`: until it is empty; the batches taken since the start. */
export type LaneTask = { kind: 'start'; port: MessagePort } | { kind: 'work' }

/** A turn's result as it crosses: the state as bytes, which the main thread keeps and never reads. */
export type TurnJobResult =
  | { kind: 'request'; state: KeptState; request: EpisodeRequest; events: TurnEvent[] }
  | { kind: 'end'; sealed: SealedEpisode; events: TurnEvent[] }

/** Errors lose their class and fields between threads, so a worker answers with them instead of throwing. */
export type JobAnswer<Kind extends JobKind> =
  | { ok: true; out: Jobs[Kind]['out']; spent: Spent | null }
  | { ok: false; code: string; message: string; path: string }
