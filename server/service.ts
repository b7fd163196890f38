// What the routes need from the running house: one interface, implemented by runtime/rollouts.ts and by stubs in tests.
import type { BatchAccepted, BatchProgress, BatchRequest } from '../protocol/batch.ts'
import type { GroupEnvelope } from '../protocol/delivery.ts'
import type { AckRequest, AckResult, LeaseRequest } from '../protocol/group.ts'
import type { JsonObject } from '../protocol/json.ts'
import type { EvaluationReport, EvaluationSettings } from '../reward/evaluation.ts'
import type { PolarForm } from './dialects/polar-results.ts'
import type { SlimeForm } from './dialects/slime-items.ts'
import type { ExplainedGroup } from './runtime/batches/explain-record.ts'
import type { GradedResponse, ResponseToGrade } from './runtime/batches/grade-response.ts'
import type { ListedGroup } from './runtime/batches/group-list.ts'

export interface TaskSummary {
  id: string
  pack: string
  environment: string
  title: string
  /** `name@version#hash`. */
  contract: string
}

/** `json` and `msgpack` (the sealed bytes, with `bin` arrays) are the native body; a dialect's form is its own. */
export type GroupForm = 'json' | 'msgpack' | SlimeForm | PolarForm

/** One thing that happened in a batch. `json` is the whole event as JSON text, with `n`, `at` and `type` in it. */
export interface BatchEvent {
  /** Counts from 1 within the batch, without gaps. */
  n: number
  type: string
  json: string
}

/** A batch's events, bounded: the oldest are dropped first. */
export interface EventLog {
  /** The oldest `n` still kept and the newest written (0 where none is). */
  oldest: number
  newest: number
  /** True once the batch is done and no event can follow. */
  ended: boolean
  /** Up to `limit` events with n > after. */
  read(after: number, limit: number): BatchEvent[]
  /** Calls back after each append and when the log ends; returns the unsubscriber. */
  subscribe(listener: () => void): () => void
}

export interface LeaseAnswer {
  /** The whole response body `{groups, done}`, or the dialect's part of one, made in a worker. */
  body: Uint8Array
  /** What was leased, without its episodes. */
  groups: readonly GroupEnvelope['head'][]
}

export interface GroupPage {
  total: number
  groups: ListedGroup[]
}

/** Every method throws PaddockError: `not_found` for an unknown id, and the codes of its own doc. */
export interface Service {
  /** Idempotent by `request.id`: same id and same request give the same batch, another request `conflict`. */
  submit(request: BatchRequest): Promise<BatchAccepted>
  progress(batch: string): BatchProgress
  batches(): BatchProgress[]
  cancel(batch: string): Promise<BatchProgress>
  /** What an evaluation came to, over the groups that are over; `k` defaults to 1 and the group size. */
  evaluation(
    batch: string,
    settings: Omit<EvaluationSettings, 'k'> & { k?: number[] },
  ): Promise<EvaluationReport>
  /** Ends the batch's own pause; nothing where there is none. */
  resume(batch: string): Promise<BatchProgress>
  /** Cancels a batch whose trainer is gone, and lets its finished groups go: they settle as `stale`. */
  discard(batch: string): Promise<void>
  /**
   * Resolves with an empty answer when `wait_s` is over, the batch is done, or `signal` aborts. `by`: a trainer that asks
   * is alive, a callback that is about to be made says nothing of that.
   */
  lease(
    batch: string,
    request: LeaseRequest,
    form: GroupForm,
    signal: AbortSignal,
    by?: 'trainer' | 'callback',
  ): Promise<LeaseAnswer>
  /** Whether a group waits to be leased, as soon as one does; false when `seconds` are over, the batch is done, or `signal` aborts. */
  waitReady(batch: string, seconds: number, signal: AbortSignal): Promise<boolean>
  /** A group of the batch as it waits or is leased, handed to nobody; null where there is none, or no body can be made of it. */
  peek(batch: string, form: GroupForm): Promise<Uint8Array | null>
  ack(batch: string, request: AckRequest): Promise<{ id: string; result: AckResult }[]>
  nack(batch: string, request: AckRequest): Promise<{ id: string; result: AckResult }[]>
  /** Leases whose answer reached nobody: ready again, and not counted as handed out. */
  takeBack(batch: string, leases: readonly { id: string; lease: string }[]): Promise<void>
  /**
   * Every finished group of the batch leaves the store without a lease of its trainer: acknowledged where it was taken on
   * another way, else handed back until it counts as undeliverable.
   */
  letGo(batch: string, taken: boolean): Promise<void>
  /** Hands back every lease of the batch but `kept`: for its one consumer, which does not know the others any more. */
  reclaim(batch: string, kept: readonly string[]): Promise<void>
  events(batch: string): EventLog
  tasks(pack?: string): TaskSummary[]
  /** What the model is shown of a task, its services and limits. */
  task(id: string): Promise<JsonObject>
  /** A finished episode's trajectory as JSON text; `not_found` while it runs. */
  episode(id: string): Promise<Uint8Array>
  /** A finished episode's tokens with their texts as JSON text; `not_found` while it runs. */
  tokens(episode: string): Promise<Uint8Array>
  /** Groups of a batch in their order, from place `offset` on, and how many there are. */
  groups(batch: string, page: { offset: number; limit: number }): Promise<GroupPage>
  /** Why each advantage of a finished group is what it is; `not_found` while it is not finished. */
  explain(group: string): Promise<ExplainedGroup>
  announcePolicy(request: {
    backend: string
    version?: number
    new_epoch?: boolean
    pause?: boolean
  }): Promise<JsonObject>
  heartbeat(request: { step: number; checkpoint_step?: number }): JsonObject
  /** Polar's trainer asked how a task stands, and was handed so many groups. */
  polarPolled(groups: number): void
  /**
   * Grades a response that was sampled elsewhere as an episode of one turn. Throws `invalid_request` for a label that
   * names nothing, `invalid_task` for one that is no answer to grade by.
   */
  grade(asked: ResponseToGrade): Promise<GradedResponse>
  /** The pure cores over HTTP, run in a worker. */
  parse(line: unknown): Promise<JsonObject>
  advantages(line: unknown): Promise<JsonObject>
  /** What a dialect must still know after a restart: one value by name; null where none was kept. */
  note(name: string): Promise<JsonObject | null>
  /** The names of all notes. */
  notes(): Promise<string[]>
  /** Null forgets it. A note by a batch's id holds that batch: however old, it is not forgotten before its note is. */
  keepNote(name: string, value: JsonObject | null): Promise<void>
  /** Why the server would not take work now; empty where it would. */
  notReady(): string[]
  /** Text of /metrics in Prometheus' older form or OpenMetrics', and its content type. */
  metrics(form: 'plain' | 'openmetrics'): Promise<{ contentType: string; text: string }>
}
