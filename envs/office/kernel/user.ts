// The scripted user and the ends of an episode: what answers a message that makes no call (SPEC d.3).
import type { UserAsk } from '../../environment.ts'
import type { SpecUser, UserRule } from '../spec.ts'
import { DONE, userMessages } from './model-user.ts'
import type { OfficeState, SaidMessage } from './state.ts'

/** Notes what the policy said beside its calls, while the episode runs. */
export function noteMessage(state: OfficeState, text: string, turn: number): OfficeState {
  if (state.ended) return state
  const beside = message(state, 'assistant', text, turn, true)
  return { ...state, messages: [...state.messages, beside] }
}

type Answered =
  | { state: OfficeState; say: string }
  | { state: OfficeState; end: string }
  | { state: OfficeState; ask: UserAsk }

/**
 * Answers a message without calls, or ends the episode: `final` where no user answers, `user_done` where the user is
 * content, `max_turns` where the user has answered as often as the task allows. Where a model plays the user, it is asked
 * first, and `said` is what it came to say.
 */
export function answer(state: OfficeState, text: string, turn: number, said?: string): Answered {
  if (state.ended) return { state, end: state.ended }
  const messages = [...state.messages, message(state, 'assistant', text, turn, false)]
  const { user } = state.spec
  const byModel = user.mode === 'scripted' && state.user.by_model
  if (byModel && said === undefined && !isSpent(user, state.user))
    return { state, ask: { kind: 'user', messages: userMessages(state.spec, messages) } }
  const end = byModel ? modelEnd(user, state.user, said) : endAfter(user, state.user, text)
  if (end || user.mode === 'none') {
    const ended = end ?? 'final'
    return { state: { ...state, messages, ended }, end: ended }
  }
  const { fired } = state.user
  const answering = byModel ? [] : user.rules.filter((rule) => answers(rule, fired, text))
  const say = answering.map((rule) => rule.say).join(' ') || said?.trim() || user.fallback
  const next: OfficeState = {
    ...state,
    messages: [...messages, message(state, 'user', say, turn, false)],
    user: {
      ...state.user,
      answers: state.user.answers + 1,
      fired: [...new Set([...fired, ...answering.map((rule) => rule.id)])],
    },
  }
  return { state: next, say }
}

/** True where one of the patterns, tested without regard to case, is found in the text. */
const anyMatches = (patterns: readonly string[], text: string): boolean =>
  patterns.some((pattern) => new RegExp(pattern, 'iu').test(text))

function endAfter(user: SpecUser, so: OfficeState['user'], text: string): string | null {
  if (user.mode === 'none') return 'final'
  const { done } = user
  if (done && haveFired(done.after, so.fired) && anyMatches(done.if_any, text)) return 'user_done'
  return isSpent(user, so) ? 'max_turns' : null
}

/** The model says itself when it is content; how often it answers is the task's word all the same. */
function modelEnd(user: SpecUser, so: OfficeState['user'], said = ''): string | null {
  if (said.includes(DONE)) return 'user_done'
  return isSpent(user, so) ? 'max_turns' : null
}

const isSpent = (user: SpecUser, { answers }: OfficeState['user']): boolean =>
  user.mode === 'scripted' && answers >= (user.max_turns ?? Infinity)

/** Whether a rule is unspent, has its turn, and the text touches on it. Rules fired by this text do not count yet. */
function answers(rule: UserRule, fired: readonly string[], text: string): boolean {
  const spent = rule.once !== false && fired.includes(rule.id)
  return !spent && haveFired(rule.after, fired) && anyMatches(rule.if_any, text)
}

const haveFired = (rules: readonly string[] = [], fired: readonly string[]): boolean =>
  rules.every((rule) => fired.includes(rule))

const message = (
  state: OfficeState,
  role: SaidMessage['role'],
  text: string,
  turn: number,
  beside_calls: boolean,
): SaidMessage => ({ role, text, turn, seq: state.calls, beside_calls })
