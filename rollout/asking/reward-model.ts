// A reward model behind HTTP: what it is told of an episode, and its answer bound to the reward contract.
import type { PaddockError } from '../../protocol/errors.ts'
import type { JsonObject } from '../../protocol/json.ts'
import { parseJsonBody } from '../../protocol/json-body.ts'
import type { EpisodeOutcome } from '../../protocol/outcomes.ts'
import { type CheckedRewards, checkRewards } from '../../reward/contract.ts'
import type { EpisodeState } from '../episode.ts'
import type { HttpReply, RewardRequest } from '../request.ts'
import { textOf } from './chat.ts'

export interface RewardPlan {
  url: string
  timeoutMs: number
  /** Tries after the first. */
  retries: number
  /** For all tries together. */
  budgetMs: number
}

/** Bytes of an answer that are read; a few numbers are far below. */
const MAX_ANSWER_BYTES = 65_536

export function rewardRequest(
  { plan, messages, turns }: EpisodeState,
  { url, timeoutMs, budgetMs, retries }: RewardPlan,
  outcome: EpisodeOutcome,
): RewardRequest {
  const episode: JsonObject = {
    episode: plan.episode,
    group: plan.group,
    batch: plan.batch,
    task: plan.task.id,
    metadata: plan.metadata ?? {},
    seed: plan.seed,
    contract: `${plan.contract.name}@${plan.contract.version}`,
    outcome,
    messages: messages as unknown as JsonObject[],
    turns: turns.map(({ turn, content, calls, observations }) => ({
      turn,
      content,
      calls,
      observations,
    })) as unknown as JsonObject[],
  }
  return {
    kind: 'reward',
    url,
    turn: turns.length,
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: new TextEncoder().encode(JSON.stringify(episode)),
    timeoutMs,
    budgetMs,
    retries,
  }
}

/** Its fields, how they break the contract, or why there are none: its failure is never a reward. */
export function readReward(
  { plan }: EpisodeState,
  { status, body }: HttpReply,
): CheckedRewards | { failed: string } {
  if (status === 0) return { failed: `reward model: ${textOf(body)}` }
  if (status < 200 || status > 299)
    return { failed: `reward model: status ${status}: ${textOf(body) || 'empty body'}` }
  if (body.length > MAX_ANSWER_BYTES)
    return {
      failed: `reward model: expected at most ${MAX_ANSWER_BYTES} bytes, found ${body.length}`,
    }
  try {
    return checkRewards(plan.contract, parseJsonBody(withReadableNumbers(body)))
  } catch (error) {
    const { code, message, path } = error as PaddockError
    if (code !== 'invalid_request') return { failed: `reward model: ${message}` }
    // JSON, but a number or a key of it that stands for nothing.
    return { ok: false, field: path || 'rewards', kind: path ? 'nan' : 'duplicate', message }
  }
}

/** Python writes NaN and Infinity, which JSON does not have: as a number that is too large they are told by their field. */
function withReadableNumbers(body: Uint8Array): Uint8Array {
  const text = new TextDecoder().decode(body)
  const readable = text.replace(
    /("(?:[^"\\]|\\.)*")|-?\b(?:NaN|Infinity)\b/g,
    (_, quoted: string | undefined) => quoted ?? '1e999',
  )
  return new TextEncoder().encode(readable)
}
