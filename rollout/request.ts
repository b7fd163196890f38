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

/**
 * What came back, whoever was asked. The journal of an episode is the list of its replies in the order in which they went
 * into `advance`: with task and seed they are all it takes to play the episode again. Status 0 says that nobody answered,
 * and the body, as UTF-8 text, why.
 */
export interface HttpReply {
  status: number
  headers: Record<string, string>
  body: Uint8Array
}
