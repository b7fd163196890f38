// What an environment is to the rest of the house: a value that is reset, stepped, answered and graded. No I/O, no clock.
import type { Gate } from '../protocol/batch.ts'
import type { RewardContract } from '../protocol/contract.ts'
import type { Message, ToolCall, ToolDefinition } from '../protocol/conversation.ts'
import type { JsonObject, JsonValue } from '../protocol/json.ts'
import type { OnParseError } from '../protocol/parse-codes.ts'

/** A task as the engine plays it: `spec` is in the environment's own form. */
export interface Task {
  /** `<pack>/<spec id>`; `inline/<hash>` where the spec came with the batch. */
  id: string
  environment: string
  spec: JsonObject
  /** Who answers in the user's place: its script where it has one, or a model that the environment asks for. */
  user?: 'script' | 'model'
}

/**
 * What the policy is told of a call. `is_error` marks a refused or failed call; the content says why. A module may also
 * give bytes as content, which are read as UTF-8.
 */
interface Observation {
  content: string
  is_error: boolean
}

/** What a call did. `end` (a word such as `max_calls`) closes the episode after the running turn. */
interface Step<State> {
  state: State
  observation: Observation
  audit: JsonObject
  end?: string
}

/**
 * What answers a message without calls: the user's next message, the end of the episode and why (`final`, …), or the
 * conversation to show to the model that plays the user.
 */
type UserTurn<State> =
  | { state: State; say: string }
  | { state: State; end: string }
  | { state: State; ask: UserAsk }

/** The conversation as the model that plays the user sees it: its own messages are the assistant's. */
export interface UserAsk {
  kind: 'user'
  messages: Message[]
}

/** One question to the judge, which answers with a score from 0 to 1. `id` is its own among those of one grade. */
export interface JudgeAsk {
  kind: 'judge'
  id: string
  /** What deserves 1 and what 0, in words. */
  rubric: string
  /** What the judge reads: who said or did what, in order. */
  transcript: { role: string; text: string }[]
}

/** A custom grader of a pack, asked about plain data. */
export interface GraderAsk {
  kind: 'grade'
  id: string
  /** The name under which a pack registers it. */
  grader: string
  input: JsonObject
  params: JsonValue
  /** The fields that it must fill; by default `score`, from 0 to 1. */
  contract?: RewardContract
}

export type Ask = JudgeAsk | GraderAsk

/** What came of an ask. `by` says who answered: model, sampling and attempts, or grader, version and content hash. */
export type Answer =
  | {
      status: 'scored'
      rewards: Record<string, number | null>
      /** Numbers of calls and ids of records. */
      evidence: (number | string)[]
      by: JsonObject
    }
  /** Nobody could tell (`unknown`), or whoever was asked failed (`error`). Never a 0. */
  | { status: 'unknown' | 'error'; reason: string; by: JsonObject }

export type Answers = Readonly<Record<string, Answer>>

/**
 * What the grader says. `rewards` holds the fields of the environment's reward contract and nothing else; a real zero
 * is `scored` with 0, a score that cannot be had is `unavailable` with the reason. `asks` names what must be answered
 * first: `grade` is called again with all answers so far.
 */
export type Graded =
  | { status: 'scored'; rewards: Record<string, number | null>; evidence: JsonObject }
  | { status: 'unavailable'; reason: string; evidence: JsonObject }

export type Grade = Graded | { status: 'asks'; asks: Ask[] }

/** One thing that is wrong with a task's spec; `rule` is the gate's (V01, …). */
export interface TaskProblem {
  rule: string
  path: string
  expected: string
  found: string
  message: string
}

/** What may be shown of a task to anyone: never grading, hidden strings or transcripts. */
export interface TaskDescription {
  title: string
  /** A larger batch limit gives way to these. */
  limits: { max_turns?: number; max_calls?: number }
  /** What a refused call does to the episode; default feedback. A task file's own word goes before this. */
  on_parse_error?: OnParseError
  [fact: string]: unknown
}

/**
 * An executable world. Every function is pure: the same arguments give the same result on any thread, and `State` is
 * plain data (structured clone keeps it). A function that throws is a fault of the environment and never of the policy:
 * `reset`, `open`, `tools`, `step`, `hear`, `reply` and `anchor` end the episode as `infra_env`, `grade` as
 * `verifier_error`.
 */
export interface Environment<State = unknown> {
  /** What `grade` fills. */
  contract: RewardContract
  /**
   * What is wrong with a spec; an empty list where nothing is. `full` may take its time (plays wrong variants, for
   * example); `load` is for every start of the server and every batch.
   */
  problems(spec: JsonObject, gate?: Gate): TaskProblem[]
  describe(task: Task): TaskDescription
  reset(task: Task, seed: number): State
  /** The system message (who acts, date, rules) and the first user message. */
  open(state: State): Message[]
  /** The tools as the model sees them. */
  tools(state: State): ToolDefinition[]
  /** Runs one call of turn `turn` (from 0). Wrong calls are answered with an error observation, never thrown. */
  step(state: State, call: ToolCall, turn: number): Step<State>
  /** Takes note of what the policy said beside its calls; graders may read it. */
  hear(state: State, message: string, turn: number): State
  /**
   * Answers a message without calls: a simulated user, or the end of the episode. Where it asked a model, it is called
   * again with the same message and what the model `said`.
   */
  reply(state: State, message: string, turn: number, said?: string): UserTurn<State>
  /** `answers` are those to the asks of a call before this one, by their id; none at first. */
  grade(state: State, answers?: Answers): Grade
  /** What each check of its grade's `evidence.checks` counts for, by name: shown beside the check, and read by nothing else. */
  weights?(state: State): Record<string, number>
  /**
   * What has been achieved so far: worth by key. A turn is paid what each key's worth rose above its best so far, where the
   * batch asks for progress reward; a fall is not taken back, and a rise up to the old best pays nothing.
   */
  progress?(state: State): Record<string, number>
  /** Digest of records and evidence read so far, without clock, stamps, call counts and audit. */
  anchor(state: State): string
  /** The spec of the `index`-th generated task, for packs that say `generated`. */
  generate?(index: number, seed: number): JsonObject
  /** The spec of a task that asks `request` and is graded by a reference answer, for environments that have such. */
  question?(request: string, answer: string): JsonObject
}
