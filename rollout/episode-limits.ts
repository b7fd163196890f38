// The limits that an episode has of its own, turns and sampled tokens: what is left of them, and when they are reached.
import type { EpisodeOutcome } from '../protocol/outcomes.ts'
import type { EpisodeState } from './episode.ts'

type Limited = Pick<EpisodeState, 'plan' | 'turns' | 'droppedTokens' | 'pending'>
type LimitEnd = { outcome: EpisodeOutcome; reason: string }

/** The limit that ends the episode before its next request, null where none does. What was done is graded. */
export function limitReached(state: Limited): LimitEnd | null {
  const { maxTurns } = state.plan.limits
  if (state.turns.length >= maxTurns)
    return { outcome: 'ok_truncated', reason: `max_turns: ${maxTurns} turns are over` }
  return tokenLimitReached(state)
}

/** The same of the token limit alone, which also ends a turn that its backend breaks off again and again. */
export function tokenLimitReached(state: Limited): LimitEnd | null {
  const { maxTokens } = state.plan.limits
  const tokens = spentTokens(state)
  if (tokens < maxTokens) return null
  return {
    outcome: 'ok_truncated',
    reason: `max_tokens: ${tokens} of ${maxTokens} tokens are sampled`,
  }
}

/** Tokens that the pending turn may still sample: what is left of the turn's own budget and of the episode's. */
export function tokensLeft(state: Limited): number {
  const { policy, limits } = state.plan
  const budget = Math.min(policy.sampling.max_tokens, limits.maxTokens - spentTokens(state))
  return budget - (state.pending.partial?.ids.length ?? 0)
}

/** Tokens of finished turns, and those that were dropped with aborts: they were sampled too. */
function spentTokens({ turns, droppedTokens }: Limited): number {
  return turns.reduce((sum, turn) => sum + turn.completion_tokens, 0) + droppedTokens
}
