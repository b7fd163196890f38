// What an episode asks of the world and what comes back: the one vocabulary of the turn and of whoever carries requests.
import type { HttpRequest } from './policy/dialect.ts'

/** Bytes for the policy. `aborts` counts how often the backend broke this turn off before. */
export interface PolicyRequest extends HttpRequest {
  kind: 'policy'
  backend: string
  /** The batch's own engine, which is asked instead of the backend's address. */
  url?: string
  turn: number
  aborts: number
}

/** Bytes for a model beside the policy: the one that plays the user, or the judge. `attempt` is from 1. */
export interface ChatRequest extends HttpRequest {
  kind: 'user' | 'judge'
  backend: string
  turn: number
  attempt: number
  timeoutMs: number
}

/** A custom grader's input, as JSON text. */
export interface GraderRequest {
  kind: 'grade'
  grader: string
  turn: number
  body: Uint8Array
}

/** An episode for a reward model behind HTTP. */
export interface RewardRequest {
  kind: 'reward'
  url: string
  turn: number
  headers: Record<string, string>
  body: Uint8Array
  timeoutMs: number
  budgetMs: number
  retries: number
}

export type EpisodeRequest = PolicyRequest | ChatRequest | GraderRequest | RewardRequest

/** Those that may be asked beside the policy. */
export type AskKind = Exclude<EpisodeRequest['kind'], 'policy'>

/**
 * What came back, whoever was asked. The journal of an episode is the list of its replies in the order in which they went
 * into `advance`: with task and seed they are all it takes to play the episode again. Status 0 says that nobody answered,
 * and the body, as UTF-8 text, why.
 */
export interface HttpReply {
  status: number
  headers: Record<string, string>
  body: Uint8Array
  /** The version that a policy's engine told around the reply, for replies that name none. */
  weightVersion?: string
}
