// What the main thread asks of a worker, and what comes back: the one vocabulary of both sides of the thread border.

import type { TaskDescription, TaskProblem } from '../../envs/environment.ts'
import type { RewardContract } from '../../protocol/contract.ts'
import type { GroupEnvelope } from '../../protocol/delivery.ts'
import type { JsonObject } from '../../protocol/json.ts'
import type { EpisodeOutcome } from '../../protocol/outcomes.ts'
import type { SealedEpisode } from '../../protocol/sealed.ts'
import type { GroupAdvantages, GroupScores } from '../../reward/estimator.ts'
import type { EpisodePlan } from '../../rollout/episode.ts'
import type { HttpReply, PolicyRequest } from '../../rollout/turn.ts'
import type { TurnEvent } from '../../rollout/turn-events.ts'

/** What a thread is started with. */
export interface WorkerSetup {
  /** User environments: name to module URL. */
  environments: Record<string, string>
  /** Backends that name a model folder: backend to folder. */
  models: Record<string, string>
}

/** Each kind of job with its input and its answer. */
export interface Jobs {
  /** Nothing; answered once the thread has loaded what it needs. */
  warm: { in: null; out: null }
  begin: { in: EpisodePlan; out: TurnJobResult }
  advance: { in: { state: Uint8Array; reply: HttpReply }; out: TurnJobResult }
  /** Seals an episode that ended from outside. `state` null: nothing of it has been played. */
  conclude: {
    in: {
      state: Uint8Array | null
      plan: EpisodePlan
      outcome: EpisodeOutcome
      reason: string
    }
    out: TurnJobResult
  }
  /** Contracts of all environments, by name. */
  environments: { in: null; out: Record<string, RewardContract> }
  generate: { in: { environment: string; count: number; seed: number }; out: JsonObject[] }
  /** Problems and public description of each spec. */
  inspect: {
    in: { environment: string; id: string; spec: JsonObject }[]
    out: { problems: TaskProblem[]; description: TaskDescription | null }[]
  }
  /** What the model is shown of a task. */
  show: { in: { environment: string; id: string; spec: JsonObject; seed: number }; out: JsonObject }
  /** Completes settings of an estimator, or says what is wrong with them. */
  settings: { in: { estimator: string; settings: JsonObject }; out: unknown }
  estimate: {
    in: { estimator: string; settings: unknown; groups: GroupScores[] }
    out: GroupAdvantages[]
  }
  /** The body of a lease. */
  deliver: {
    in: { groups: GroupEnvelope[]; done: boolean; encoding: 'json' | 'msgpack' }
    out: Uint8Array
  }
  parse: { in: unknown; out: JsonObject }
  advantages: { in: unknown; out: JsonObject }
}

export type JobKind = keyof Jobs

/** One job as it crosses, in a batch of them. */
export interface Job<Kind extends JobKind = JobKind> {
  kind: Kind
  input: Jobs[Kind]['in']
}

/** Places of what a thread tells in shared memory: which job of its batch runs, and since when (`process.hrtime`). */
export const PROGRESS = { index: 0, startedAt: 1 } as const

/** A turn's result as it crosses: the state as bytes, which the main thread keeps and never reads. */
export type TurnJobResult =
  | { kind: 'request'; state: Uint8Array; request: PolicyRequest; events: TurnEvent[] }
  | { kind: 'end'; sealed: SealedEpisode; events: TurnEvent[] }

/** Errors lose their class and fields between threads, so a worker answers with them instead of throwing. */
export type JobAnswer<Kind extends JobKind> =
  | { ok: true; out: Jobs[Kind]['out'] }
  | { ok: false; code: string; message: string; path: string }
