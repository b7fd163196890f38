// Checks that others decide: a custom grader of a pack, or the judge. What they are asked, and what of an answer is a score.
import { digest, isPlainObject, type JsonObject, type JsonValue } from '../../../protocol/json.ts'
import type { Answers, Ask } from '../../environment.ts'
import type { Check } from '../spec.ts'
import { type CheckResult, type Episode, scored } from './evidence.ts'

/** The name under which a check asks the judge; `params` then holds the rubric. */
export const JUDGE = 'judge'

/** What a grade may ask others, and what they answered before. */
export interface Others {
  answers: Answers
  /** Asks without an answer yet, by their id: equal checks ask once. */
  open: Map<string, Ask>
}

/** The score that was answered; where nobody was asked yet, `unknown` until the answer is there. */
export function checkCustom(
  check: Check<'custom'>,
  episode: Episode,
  { answers, open }: Others,
): CheckResult {
  const { grader, params = null } = check
  const id = `${grader}:${digest(params)}`
  const answer = Object.hasOwn(answers, id) ? answers[id]! : null
  if (!answer) {
    open.set(id, askOf(id, grader, params, episode))
    return { status: 'unknown', reason: `${grader} was not asked yet`, evidence: [] }
  }
  const { by } = answer
  if (answer.status !== 'scored')
    return { status: answer.status, reason: answer.reason, evidence: [], by }
  return { ...scored(answer.rewards.score ?? 0, answer.evidence), by }
}

/** The rubric of a check that asks the judge; null where it has none. */
export function rubricOf(params: JsonValue | undefined): string | null {
  const rubric = isPlainObject(params) ? params.rubric : null
  return typeof rubric === 'string' && rubric.trim() !== '' ? rubric : null
}

function askOf(id: string, grader: string, params: JsonValue, episode: Episode): Ask {
  if (grader === JUDGE)
    return { kind: 'judge', id, rubric: rubricOf(params) ?? '', transcript: transcriptOf(episode) }
  return { kind: 'grade', id, grader, input: viewOf(episode), params }
}

/** What a custom grader sees, as SPEC d says: calls, records at start and end, messages with their role, and the time. */
function viewOf({ audit, initial, final, messages, now }: Episode): JsonObject {
  return { audit, initial, final, messages, now } as unknown as JsonObject
}

/** Who said and did what, in order; `seq` of a message counts the calls before it. */
function transcriptOf({ request, audit, messages }: Episode): { role: string; text: string }[] {
  const parts = [
    ...audit.map(({ seq, tool, args, ok, error, writes }) => ({
      at: seq,
      role: 'call',
      text: JSON.stringify({
        tool,
        args,
        ...(ok
          ? { ok, writes: writes.map(({ op, entity, id }) => `${op} ${entity}/${id}`) }
          : { error }),
      }),
    })),
    ...messages.map(({ seq, role, text }) => ({ at: seq + 0.5, role, text })),
  ].sort((a, b) => a.at - b.at)
  return [{ role: 'user', text: request }, ...parts.map(({ role, text }) => ({ role, text }))]
}
