// A policy backend's wire form as two pure functions: a turn to request bytes, reply bytes to a turn's sample.
import type { Sampling } from '../../protocol/batch.ts'
import type { Message, ToolDefinition } from '../../protocol/conversation.ts'
import type { JsonObject } from '../../protocol/json.ts'
import type { VersionRun } from '../chat/tape.ts'

/** All that one policy request is made of. */
export interface PromptTurn {
  model: string
  /** The conversation, for backends that render it (`chat`). */
  messages: readonly Message[]
  tools: readonly ToolDefinition[]
  /** The prompt's token ids, where Paddock renders (`tokens`); null in `chat`. */
  promptIds: Int32Array | null
  sampling: Omit<Sampling, 'seed'> & { seed: number }
  chatTemplateKwargs: JsonObject
  /** Ids that end the policy's turn. */
  stopTokenIds: readonly number[]
  /** Asks for the reply as server-sent events, where the form has them. */
  stream?: boolean
}

export interface HttpRequest {
  path: string
  headers: Record<string, string>
  body: Uint8Array
}

/** What the backend said a completion ended by; `abort` (weight update, preemption) continues the same turn. */
export type PolicyFinish = 'stop' | 'length' | 'abort'

/** One completion as it was sampled. Where ids are null the backend gave none and `content` is all there is. */
export interface Completion {
  kind: 'completion'
  finish: PolicyFinish
  promptIds: Int32Array | null
  ids: Int32Array | null
  /** One finite value for each of `ids`. */
  logprobs: Float32Array | null
  /** Null where this form of reply has no text. */
  content: string | null
  usage: { promptTokens: number; completionTokens: number }
  /** A decimal integer's value; null for none, or for a label. Where the weights changed in between, the last. */
  version: number | null
  /** Which versions made `ids`; empty where ids are null. */
  versions: readonly VersionRun[]
}

/**
 * A reply that is no completion. `contract_violation` names a field of ours that the backend broke, `infra_backend` is
 * the machinery's fault, `context_length` says that the prompt leaves no room.
 */
export interface ReplyFault {
  kind: 'contract_violation' | 'infra_backend' | 'context_length'
  /** Name of the offending field, as `token_ids`; empty where none is. */
  field: string
  message: string
  /** Set where the field is not there at all, or is of another length than what it goes with. */
  problem?: 'absent' | 'length'
}

export type PolicyReply = Completion | ReplyFault

/** What a reply is held against. */
export interface Expectation {
  /** Whether ids and log-probabilities must be there (false only without a tokenizer). */
  tokens: boolean
  /** The ids that were sent (`tokens` mode); null in `chat` mode. */
  promptIds: Int32Array | null
  maxTokens: number
  /** Whether the tokenizer has an id; null where there is none to ask. */
  knowsId: ((id: number) => boolean) | null
  /** Whether the reply was asked for as a stream, which the backend may still give whole. */
  stream?: boolean
  /** What was asked for; a reply that echoes something else is refused. */
  sampling?: PromptTurn['sampling']
}

export interface Dialect {
  /** How a policy may be asked: `chat` where `promptIds` is null, else `tokens`. */
  modes: readonly ('chat' | 'tokens')[]
  /** Throws PaddockError `invalid_config` for a mode that is not served. */
  request(turn: PromptTurn): HttpRequest
  /** Never throws: whatever came is a completion or a fault. Header names in any case. */
  read(
    status: number,
    headers: Record<string, string>,
    body: Uint8Array,
    expect: Expectation,
  ): PolicyReply
}
