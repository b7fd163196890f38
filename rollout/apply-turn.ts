// What the environment does with a parsed turn: runs its calls, tells of refused ones, or answers the message.

import type { Environment } from '../envs/environment.ts'
import type { Message } from '../protocol/conversation.ts'
import type { EpisodeOutcome } from '../protocol/outcomes.ts'
import type { OnParseError, ParseErrorCode } from '../protocol/parse-codes.ts'
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
  environment: Environment,
  onParseError: OnParseError,
): AppliedTurn {
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

  const played: AppliedTurn = { env, record: { ...record }, messages: [], end: cut }
  if (parsed.content) played.env = environment.hear(played.env, parsed.content, record.turn)
  for (const [index, { call, refused }] of steps.entries()) {
    const id = `call_${record.turn}_${index}`
    if (call) runCall(played, { id, ...call }, environment)
    else
      observe(played, id, 'refused', {
        content: JSON.stringify({
          error: { code: refused.code, message: refused.message, retryable: true },
        }),
        is_error: true,
      })
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
  environment: Environment,
): void {
  const { record } = played
  const step = environment.step(
    played.env,
    { id, name, arguments: args, arguments_json },
    record.turn,
  )
  played.env = step.state
  record.calls = [...record.calls, { id, name, arguments_json }]
  record.audit = [...record.audit, step.audit]
  observe(played, id, name, step.observation)
  if (step.end !== undefined) played.end ??= closing(step.end)
}

/** `replaced` comes from the guard, which reads what an environment gives. */
function observe(
  played: AppliedTurn,
  id: string,
  name: string,
  { content, is_error, replaced }: GuardedObservation,
): void {
  const { record } = played
  record.observations = [
    ...record.observations,
    { call_id: id, name, content, is_error, ...(replaced && { replaced }) },
  ]
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
    return { env: heard, record, messages: [], end: cut }
  }
  const answer = environment.reply(env, message, record.turn)
  return 'say' in answer
    ? {
        env: answer.state,
        record,
        messages: [{ role: 'user', content: outsideText(answer.say).text }],
        end: null,
      }
    : { env: answer.state, record, messages: [], end: closing(answer.end) }
}

/** An environment's own limits (`max_calls`, `max_user_turns`) truncate; every other end is a finished episode. */
function closing(end: string): AppliedTurn['end'] {
  return { outcome: end.startsWith('max_') ? 'ok_truncated' : 'ok', reason: end }
}
