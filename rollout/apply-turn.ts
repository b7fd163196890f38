// What the environment does with a parsed turn: runs its calls, tells of refused ones, or answers the message.

import type { Environment, UserAsk } from '../envs/environment.ts'
import type { Message } from '../protocol/conversation.ts'
import type { EpisodeOutcome } from '../protocol/outcomes.ts'
import type { OnParseError, ParseErrorCode } from '../protocol/parse-codes.ts'
import { type ControlTokens, named } from './chat/control-tokens.ts'
import type { TurnRecord } from './episode.ts'
import type { GuardedObservation } from './guarded-environment.ts'
import { outsideText } from './outside-text.ts'
import type { ParsedTurn } from './toolcall/parser.ts'

export interface AppliedTurn {
  env: unknown
  record: TurnRecord
  /** What the conversation goes on with; empty where the episode is over. */
  messages: Message[]
  /** Null while the episode goes on. */
  end: { outcome: EpisodeOutcome; reason: string } | null
  /** A model that plays the user is to be asked; null where none is. */
  ask: UserAsk | null
}

/** What holds for every turn of an episode. */
export interface TurnRules {
  environment: Environment
  onParseError: OnParseError
  controlTokens: ControlTokens
  /** Whether an observation that spells out a control token is shown, as plain text, instead of withheld. */
  showsControlTokens: boolean
}

/** Errors that lie in the text around calls: nothing was refused that the policy meant to run. */
const NOT_A_CALL: ReadonlySet<ParseErrorCode> = new Set(['STRAY_CLOSE_TAG', 'REASONING_UNCLOSED'])

const isRefusedCall = ({ code }: { code: ParseErrorCode }): boolean => !NOT_A_CALL.has(code)

/**
 * Calls run in the order in which they stand; a refused block is answered in its place with code and sentence, and
 * calls beside it run. A completion that was cut (`length`) ends the episode: complete calls before the cut have run,
 * and what was said is heard, but nobody answers it. Where the task says so a refused call ends the episode, once the
 * calls beside it have run.
 */
export function applyTurn(
  env: unknown,
  record: TurnRecord,
  parsed: ParsedTurn,
  rules: TurnRules,
): AppliedTurn {
  const { environment, onParseError, controlTokens } = rules
  const steps = [
    ...parsed.calls.map((call) => ({ at: call.start, call, refused: null })),
    ...parsed.errors
      .filter(isRefusedCall)
      .map((refused) => ({ at: refused.start, call: null, refused })),
  ].sort((a, b) => a.at - b.at)
  const cut =
    record.finish === 'length'
      ? {
          outcome: 'ok_truncated' as const,
          reason: 'length: the completion was cut at its token limit',
        }
      : null
  if (steps.length === 0) return answerMessage(env, record, parsed.content ?? '', environment, cut)

  const played: AppliedTurn = { env, record: { ...record }, messages: [], end: cut, ask: null }
  if (parsed.content) played.env = environment.hear(played.env, parsed.content, record.turn)
  for (const [index, { call, refused }] of steps.entries()) {
    const id = `call_${record.turn}_${index}`
    if (call) runCall(played, { id, ...call }, rules)
    else
      observe(
        played,
        id,
        'refused',
        errorObservation(refused.code, named(refused.message, controlTokens), true),
      )
  }
  const [first] = parsed.errors.filter(isRefusedCall)
  if (first) played.end = refusedEnd(onParseError, first.code, played.end)
  return played
}

/** The order of outcomes (OPS 1.4): `parse_error` before `ok_truncated` before `ok`. */
function refusedEnd(
  onParseError: OnParseError,
  code: ParseErrorCode,
  end: AppliedTurn['end'],
): AppliedTurn['end'] {
  const reason = `${code}: a call was refused`
  if (onParseError === 'unscored') return { outcome: 'parse_error', reason }
  return onParseError === 'end' ? (end ?? { outcome: 'ok', reason }) : end
}

function runCall(
  played: AppliedTurn,
  { id, name, arguments: args, arguments_json }: ParsedTurn['calls'][number] & { id: string },
  rules: TurnRules,
): void {
  const { record } = played
  const step = rules.environment.step(
    played.env,
    { id, name, arguments: args, arguments_json },
    record.turn,
  )
  played.env = step.state
  record.calls = [...record.calls, { id, name, arguments_json }]
  const token = spelledToken(step.observation.content, rules)
  record.audit = [...record.audit, token ? { ...step.audit, control_token: token } : step.audit]
  const shown = token && !rules.showsControlTokens ? withheld(token, rules) : step.observation
  // A policy may call a tool by any name; some templates write it.
  const safeName = spelledToken(name, rules) ? 'refused' : name
  observe(played, id, safeName, { ...shown, ...(token && { control_token: token }) })
  if (step.end !== undefined) played.end ??= closing(step.end)
}

function spelledToken(text: string, { controlTokens }: TurnRules): string | null {
  return controlTokens.any(text)[0] ?? null
}

/** In the place of an observation that a template or a backend would turn into turns and calls of its own. */
function withheld(token: string, { controlTokens }: TurnRules) {
  const name = named(token, controlTokens)
  const message = `expected plain text, came a result that spells out the control token ${name}: it is withheld`
  return errorObservation('CONTROL_TOKEN', message, false)
}

function errorObservation(code: string, message: string, retryable: boolean) {
  return { content: JSON.stringify({ error: { code, message, retryable } }), is_error: true }
}

/** `replaced` comes from the guard, which reads what an environment gives. */
function observe(
  played: AppliedTurn,
  id: string,
  name: string,
  observation: GuardedObservation & { control_token?: string },
): void {
  const { record } = played
  const { content } = observation
  record.observations = [...record.observations, { ...observation, call_id: id, name, content }]
  played.messages.push({ role: 'tool', name, tool_call_id: id, content })
}

function answerMessage(
  env: unknown,
  record: TurnRecord,
  message: string,
  environment: Environment,
  cut: AppliedTurn['end'],
): AppliedTurn {
  if (cut) {
    const heard = message ? environment.hear(env, message, record.turn) : env
    return { env: heard, record, messages: [], end: cut, ask: null }
  }
  return { record, ...answered(env, message, record.turn, environment) }
}

/** What answers a message without calls; `said` is what the model that plays the user came to say, where it was asked. */
export function answered(
  env: unknown,
  message: string,
  turn: number,
  environment: Environment,
  said?: string,
): Omit<AppliedTurn, 'record'> {
  const answer = environment.reply(env, message, turn, said)
  const going = { env: answer.state, messages: [], end: null, ask: null }
  if ('ask' in answer) return { ...going, ask: answer.ask }
  if ('end' in answer) return { ...going, end: closing(answer.end) }
  return { ...going, messages: [{ role: 'user', content: outsideText(answer.say).text }] }
}

/** An environment's own limits (`max_calls`, `max_user_turns`) truncate; every other end is a finished episode. */
function closing(end: string): AppliedTurn['end'] {
  return { outcome: end.startsWith('max_') ? 'ok_truncated' : 'ok', reason: end }
}
