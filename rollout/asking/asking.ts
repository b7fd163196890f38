// What an episode waits for beside its policy: the asks that are open, the request of the first, and what a reply makes of it.
import { hash } from 'node:crypto'
import type { Answer, Answers, Ask, UserAsk } from '../../envs/environment.ts'
import type { JsonObject } from '../../protocol/json.ts'
import type { EpisodeOutcome } from '../../protocol/outcomes.ts'
import type { AskedCost } from '../../protocol/sealed.ts'
import type { ContractKind } from '../../reward/contract.ts'
import type { EpisodeState } from '../episode.ts'
import type { AskKind, EpisodeRequest, HttpReply } from '../request.ts'
import { type ChatPlan, chatRequest, readChat } from './chat.ts'
import { graderRequest, readGrader } from './grader.ts'
import { judgedBy, judgeRequest, noJudge, readVerdict } from './judge.ts'
import { type RewardPlan, readReward, rewardRequest } from './reward-model.ts'

/** Whom an episode may ask beside its policy; a kind that is absent is not configured. */
export interface AskPlan {
  user?: ChatPlan
  judge?: ChatPlan
  reward?: RewardPlan
}

/** The reward model is asked by the engine, for whatever environment. */
interface RewardAsk {
  kind: 'reward'
  id: 'reward'
}

/** What the answers are for. */
export type Purpose =
  | { kind: 'reply'; message: string }
  | { kind: 'grade'; outcome: EpisodeOutcome; reason: string }

export interface Asking {
  /** The first is out. */
  open: readonly (Ask | UserAsk | RewardAsk)[]
  answers: Answers
  /** What the model that plays the user said. */
  said: string | null
  /** Of the request that is out; from 1. */
  attempt: number
  purpose: Purpose
}

export type AskStep =
  | { kind: 'request'; state: EpisodeState; request: EpisodeRequest }
  /** All is answered. */
  | { kind: 'answered'; state: EpisodeState; asking: Asking }
  | {
      kind: 'failed'
      state: EpisodeState
      outcome: EpisodeOutcome
      reason: string
      /** How a record broke its contract, where that is the failure. */
      violation?: ContractKind
    }

/** The first request of these asks. */
export function startAsking(
  state: EpisodeState,
  open: Asking['open'],
  answers: Answers,
  purpose: Purpose,
): AskStep {
  return next(state, { open, answers, said: null, attempt: 1, purpose })
}

/** What the reply to the request that is out makes of the asks. */
export function takeReply(state: EpisodeState, asking: Asking, reply: HttpReply): AskStep {
  const [ask] = asking.open
  if (!ask) throw new Error('a reply came where nothing was asked')
  switch (ask.kind) {
    case 'user':
      return takeUser(state, asking, reply)
    case 'judge': {
      const { text, reason, usage } = readChat(reply)
      const counted = charged(state, 'judge', reply, usage)
      const plan = planOf(state, 'judge')
      const verdict = text === null ? { refused: reason } : readVerdict(text)
      const by = judgedBy(plan, ask, asking.attempt)
      if ('score' in verdict) {
        const { score } = verdict
        return answer(counted, asking, { status: 'scored', rewards: { score }, evidence: [], by })
      }
      if (asking.attempt < plan.attempts) return again(counted, asking)
      const failure = `judge: ${verdict.refused} (attempt ${asking.attempt})`
      return answer(counted, asking, { status: 'unknown', reason: failure, by })
    }
    case 'grade': {
      const read = readGrader(ask, reply)
      const counted = charged(state, 'grade', reply)
      if (read.status === 'violation') return failed(counted, 'contract_violation', read.reason)
      return answer(counted, asking, read)
    }
    case 'reward': {
      const read = readReward(state, reply)
      const counted = charged(state, 'reward', reply)
      if ('failed' in read) return failed(counted, 'verifier_error', read.failed)
      if (!read.ok)
        return failed(
          counted,
          'contract_violation',
          `${read.field}: reward model: ${read.message}`,
          read.kind,
        )
      const by: JsonObject = { reward_model: new URL(planOf(state, 'reward').url).host }
      const { rewards } = read
      return answer(counted, asking, { status: 'scored', rewards, evidence: [], by })
    }
  }
}

/** A user that cannot be had is the environment's fault, never the policy's. */
function takeUser(state: EpisodeState, asking: Asking, reply: HttpReply): AskStep {
  const { text, reason, usage } = readChat(reply)
  const counted = charged(state, 'user', reply, usage)
  if (text === null)
    return asking.attempt < planOf(state, 'user').attempts
      ? again(counted, asking)
      : failed(counted, 'infra_env', `user: ${reason} (attempt ${asking.attempt})`)
  return next(counted, { ...asking, open: asking.open.slice(1), said: text, attempt: 1 })
}

function next(state: EpisodeState, asking: Asking): AskStep {
  const [ask] = asking.open
  if (!ask) return { kind: 'answered', state: { ...state, asking: null }, asking }
  const { asked } = state.plan
  const turn = state.turns.length - 1
  const out = (request: EpisodeRequest): AskStep => ({
    kind: 'request',
    state: { ...state, asking },
    request,
  })
  const chat = (kind: 'user' | 'judge', plan: ChatPlan, bytes: ReturnType<typeof chatRequest>) => {
    const { backend, timeoutMs } = plan
    return out({ ...bytes, kind, backend, turn, attempt: asking.attempt, timeoutMs })
  }
  switch (ask.kind) {
    case 'user':
      if (!asked?.user)
        return failed(
          state,
          'infra_env',
          'no model plays the user: say user: "model" in the batch, and name one under user: in paddock.yaml',
        )
      return chat(
        'user',
        asked.user,
        chatRequest(asked.user, ask.messages, userSeed(state, asking)),
      )
    case 'judge':
      if (!asked?.judge) return answer(state, asking, noJudge)
      return chat('judge', asked.judge, judgeRequest(asked.judge, ask, asking.attempt))
    case 'grade':
      return out(graderRequest(ask, turn))
    case 'reward':
      if (asking.purpose.kind !== 'grade') throw new Error('a reward is asked for at the end alone')
      return out(rewardRequest(state, planOf(state, 'reward'), asking.purpose.outcome))
  }
}

function answer(state: EpisodeState, asking: Asking, answer: Answer): AskStep {
  const [ask, ...open] = asking.open
  if (!ask || ask.kind === 'user') throw new Error('an answer came where nothing was asked')
  const answers = { ...asking.answers, [ask.id]: answer }
  return next(state, { ...asking, open, answers, attempt: 1 })
}

const again = (state: EpisodeState, asking: Asking): AskStep =>
  next(state, { ...asking, attempt: asking.attempt + 1 })

const failed = (
  state: EpisodeState,
  outcome: EpisodeOutcome,
  reason: string,
  violation?: ContractKind,
): AskStep => ({
  kind: 'failed',
  state: { ...state, asking: null },
  outcome,
  reason,
  ...(violation && { violation }),
})

function planOf<Kind extends keyof AskPlan>(
  { plan }: EpisodeState,
  kind: Kind,
): NonNullable<AskPlan[Kind]> {
  const known = plan.asked?.[kind]
  if (!known) throw new Error(`a reply of kind ${kind} came, which is not configured`)
  return known as NonNullable<AskPlan[Kind]>
}

/** The header of a reply that was kept from an equal question: nobody was asked, and nothing was spent. */
export const KEPT_REPLY = 'x-paddock-kept'

/** Books what an answer cost under its kind, apart from what the policy costs. */
function charged(
  state: EpisodeState,
  kind: AskKind,
  { headers }: HttpReply,
  usage = { prompt_tokens: 0, completion_tokens: 0 },
): EpisodeState {
  const before: AskedCost = state.asked[kind] ?? {
    requests: 0,
    kept: 0,
    prompt_tokens: 0,
    completion_tokens: 0,
  }
  const kept = headers[KEPT_REPLY] !== undefined
  const cost = kept
    ? { ...before, kept: before.kept + 1 }
    : {
        ...before,
        requests: before.requests + 1,
        prompt_tokens: before.prompt_tokens + usage.prompt_tokens,
        completion_tokens: before.completion_tokens + usage.completion_tokens,
      }
  return { ...state, asked: { ...state.asked, [kind]: cost } }
}

/** As the policy's seed, a function of where the question stands; equal members of a group hear different users. */
function userSeed({ plan, turns }: EpisodeState, { attempt }: Asking): number {
  const { policy, groupIndex, index } = plan
  const place = ['user', policy.seedBase, groupIndex, index, turns.length, plan.attempt, attempt]
  return hash('sha256', JSON.stringify(place), 'buffer').readUInt32LE(0) >>> 1
}
