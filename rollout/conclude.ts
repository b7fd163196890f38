// The end of an episode as a decision: graded where its outcome is scored, be it with the help of others, then sealed.
import type { Answers, Environment } from '../envs/environment.ts'
import { isPlainObject, type JsonObject } from '../protocol/json.ts'
import { type EpisodeOutcome, isScored } from '../protocol/outcomes.ts'
import { composeReward } from '../reward/compose.ts'
import { checkRewards } from '../reward/contract.ts'
import { type AskStep, startAsking } from './asking/asking.ts'
import type { EpisodeState } from './episode.ts'
import { isEnvironmentFault } from './guarded-environment.ts'
import { type Ending, seal } from './seal.ts'
import type { TurnResult } from './turn.ts'

/** Asks that one grade may make; a grader that always asks on would never end. */
const MAX_ASKS = 256

/**
 * A scored outcome is graded first, and the grade may turn it into `verifier_error` or `contract_violation`; any other
 * outcome is never graded and has no reward. `answers` are those to what an earlier call of this asked for.
 */
export function concluded(
  state: EpisodeState,
  outcome: EpisodeOutcome,
  reason: string,
  environment: Environment,
  answers: Answers = {},
): TurnResult {
  if (!isScored(outcome)) return sealed(state, unscored(outcome, reason))
  const graded = state.plan.asked?.reward
    ? rewarded(state, outcome, reason, answers)
    : grade(state, outcome, reason, environment, answers)
  return 'state' in graded ? afterAsking(graded, environment) : sealed(state, graded)
}

/** The grade goes on: it waits for an answer, has them all, or cannot have one. */
export function afterAsking(step: AskStep, environment: Environment): TurnResult {
  if (step.kind === 'request') return { ...step, events: [] }
  if (step.kind === 'failed')
    return sealed(step.state, { ...unscored(step.outcome, step.reason), kind: step.violation })
  const { purpose, answers } = step.asking
  if (purpose.kind !== 'grade') throw new Error('expected answers for a grade, got a user')
  return concluded(step.state, purpose.outcome, purpose.reason, environment, answers)
}

/** An ending without a reward. */
export function unscored(
  outcome: EpisodeOutcome,
  reason: string,
  grade: JsonObject | null = null,
): Ending {
  return { outcome, reason, reward: null, rewards: null, grade }
}

/** The end of the episode as it is, whatever the environment would say. */
export function sealed(state: EpisodeState, ending: Ending): TurnResult {
  return { kind: 'end', ...seal({ ...state, asking: null }, ending) }
}

function grade(
  state: EpisodeState,
  outcome: EpisodeOutcome,
  reason: string,
  environment: Environment,
  answers: Answers,
): Ending | AskStep {
  try {
    const graded = environment.grade(state.env, answers)
    if (graded.status === 'asks') {
      const open = graded.asks.filter(({ id }) => !Object.hasOwn(answers, id))
      const many = Object.keys(answers).length + open.length
      if (open.length === 0)
        return unscored('verifier_error', 'grade asked again for what was answered already')
      if (many > MAX_ASKS)
        return unscored('verifier_error', `grade asked ${many} times; it may ask ${MAX_ASKS} times`)
      return startAsking(state, open, answers, { kind: 'grade', outcome, reason })
    }
    const shown = graded as unknown as JsonObject
    const weights = environment.weights?.(state.env)
    if (graded.status === 'unavailable')
      return { ...unscored('verifier_error', graded.reason, shown), weights }
    return { ...scored(state, { outcome, reason }, graded.rewards, () => shown), weights }
  } catch (error) {
    if (!isEnvironmentFault(error)) throw error
    return unscored('verifier_error', error.message)
  }
}

/** The reward model's answer in the place of a grade. */
function rewarded(
  state: EpisodeState,
  outcome: EpisodeOutcome,
  reason: string,
  answers: Answers,
): Ending | AskStep {
  const answer = answers.reward
  if (!answer)
    return startAsking(state, [{ kind: 'reward', id: 'reward' }], answers, {
      kind: 'grade',
      outcome,
      reason,
    })
  if (answer.status !== 'scored') return unscored('verifier_error', answer.reason)
  const show = (rewards: JsonObject) => ({ status: 'scored', rewards, evidence: answer.by })
  return scored(state, { outcome, reason }, answer.rewards, show)
}

/** What was written, under the contract: rewards, the reward that is made of them, or how they break it. */
function scored(
  { plan, turns }: EpisodeState,
  end: Pick<Ending, 'outcome' | 'reason'>,
  written: unknown,
  show: (rewards: JsonObject) => JsonObject,
): Ending {
  const checked = checkRewards(plan.contract, written)
  // Tokens that an aborted answer lost are no part of the episode, and cost it nothing.
  const tokens = turns.reduce((sum, turn) => sum + turn.completion_tokens, 0)
  const composed = checked.ok ? composeReward(plan.contract, checked.rewards, tokens) : checked
  if (!checked.ok || !composed.ok) {
    const { field, message, kind } = composed as Extract<typeof composed, { ok: false }>
    const shown = isPlainObject(written) ? show(written as JsonObject) : null
    return { ...unscored('contract_violation', `${field}: ${message}`, shown), kind }
  }
  const { reward, shaping } = composed
  return { ...end, reward, rewards: checked.rewards, shaping, grade: show(checked.rewards) }
}
