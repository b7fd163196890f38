// An episode under way as plain data: what it was asked to be (plan) and how far it has come (state).

import type { Environment, Task } from '../envs/environment.ts'
import type { Sampling } from '../protocol/batch.ts'
import type { RewardContract } from '../protocol/contract.ts'
import type { Message } from '../protocol/conversation.ts'
import type { LogprobsMode } from '../protocol/group.ts'
import type { JsonObject } from '../protocol/json.ts'
import type {
  Leniency,
  OnParseError,
  ParseErrorCode,
  ParseFlag,
  ThinkingMode,
  ToolFormat,
} from '../protocol/parse-codes.ts'
import type { AskedCosts, TurnHeader } from '../protocol/sealed.ts'
import type { TurnCounts } from '../protocol/turn-counts.ts'
import type { Asking, AskPlan } from './asking/asking.ts'
import type { ChatModel } from './chat/chat-model.ts'
import type { Tape, VersionRun } from './chat/tape.ts'
import type { DialectName } from './policy/dialects.ts'

/** The policy that plays, fixed for the whole episode. */
export interface PolicyPlan {
  dialect: DialectName
  backend: string
  /** Where a batch brought an engine of its own: asked instead of the backend's address. */
  url?: string
  model: string
  mode: 'chat' | 'tokens'
  /** Whether replies are asked for as streams; default: whole. */
  stream?: boolean
  /** Who renders the first prompt in mode `tokens`: the template of the model folder (default), or the backend. */
  firstPrompt?: 'template' | 'tokenize'
  toolFormat: ToolFormat
  thinking: ThinkingMode
  /** Of which distribution its log-probabilities are; left out where nobody says. */
  logprobsMode?: LogprobsMode
  /** Lenient readings of its calls; none where the grammar is kept to. */
  leniencies: readonly Leniency[]
  sampling: Omit<Sampling, 'seed'>
  /** The weights' version that the trainer believes to be asked; null where it says none. */
  version: number | null
  /** What every request's seed is made of, beside its place: `sampling.seed`, by default the batch's id. */
  seedBase: string
  chatTemplateKwargs: JsonObject
  /** Observations that spell out a control token: withheld, or (`plain`, only in mode tokens) shown as plain text. */
  controlTokens: 'refuse' | 'plain'
}

/** What one attempt is asked to play. */
export interface EpisodePlan {
  episode: string
  batch: string
  group: string
  /** Position of the group in its batch and of the episode in its group, from 0. */
  groupIndex: number
  index: number
  /** From 1. */
  attempt: number
  task: Task
  seed: number
  policy: PolicyPlan
  contract: RewardContract
  limits: { maxTurns: number; maxTokens: number }
  /** What a refused call does; the task's word. */
  onParseError: OnParseError
  /** Whom the episode may ask beside its policy; nobody by default. */
  asked?: AskPlan
  /** What the batch says of the task beside it, for a reward model that is asked. */
  metadata?: JsonObject
  /** Whether turns are paid for progress, where the environment knows it. */
  progress?: boolean
}

/** One turn as the trajectory keeps it. */
export interface TurnRecord {
  turn: number
  seed: number
  finish: 'stop' | 'length'
  /** The sampled text, end-of-turn token left out. */
  text: string
  /** Whether the backend's own text is another than that of the sampled ids, which are the truth. */
  text_differs: boolean
  reasoning: string | null
  content: string | null
  calls: { id: string; name: string; arguments_json: string }[]
  errors: { code: ParseErrorCode; start: number; end: number; message: string }[]
  flags: ParseFlag[]
  /** Lenient readings that made a difference. */
  leniencies: Leniency[]
  /**
   * `replaced`: what is no text (bytes that are no UTF-8, unpaired surrogates) became U+FFFD; `truncated`: too long to be
   * shown whole; `control_token`: one that was spelled out.
   */
  observations: {
    call_id: string
    name: string
    content: string
    is_error: boolean
    replaced?: true
    truncated?: true
    control_token?: string
  }[]
  audit: JsonObject[]
  /** Fingerprint of the environment's state after this turn. */
  state_hash: string | null
  /** What the model that plays the user said to it, its word for the end included. */
  user?: string
  prompt_tokens: number
  completion_tokens: number
  version: number | null
}

/** A completion that the backend broke off (`abort`): the same turn goes on from it. */
interface Partial {
  /** As the backend gave it. */
  content: string | null
  ids: Int32Array
  logprobs: Float32Array
  versions: readonly VersionRun[]
}

/** Everything of an episode between two turns. Plain data: structured clone and v8.serialize keep it. */
export interface EpisodeState {
  /** Once the environment is reset, its task's spec is left out. */
  plan: EpisodePlan
  env: unknown
  /** Fingerprint of the environment's state after its reset. */
  resetHash: string | null
  messages: Message[]
  tape: Tape
  turns: TurnRecord[]
  headers: TurnHeader[]
  /** The request that is out: its prompt (tokens mode), the anchor of the state it was asked in. */
  pending: { promptIds: Int32Array | null; anchor: string; partial: Partial | null; aborts: number }
  /** What the episode waits for beside its policy; null while the policy is asked. */
  asking: Asking | null
  /** What was spent on it. */
  asked: AskedCosts
  /** Best worth so far of what the environment calls progress, by key. */
  best: ReadonlyMap<string, number>
  /** Sampled tokens that were dropped since an aborted answer could not be continued. */
  droppedTokens: number
  drift: TurnCounts['drift']
}

/** What the pure engine is given: the environments by name and the chat models by backend. */
export interface Engine {
  environment(name: string): Environment
  /** Null where the backend names no model folder: content is taken, and there is no tape. */
  chatModel(backend: string): ChatModel | null
}
