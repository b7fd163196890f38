// The check on what the policy said: which messages are meant, and which conditions their text meets.
import type { Check, TextCondition } from '../spec.ts'
import { type CheckResult, type Episode, scored, toList } from './evidence.ts'
import { holdsNumber, normalised } from './text.ts'

/** Half a cent: numbers in prose are mostly amounts. */
const DEFAULT_TOLERANCE = 0.005

/**
 * All of `all_of`, one of `any_of`, none of `none_of`; with `partial` the share of `all_of`. Silence scores 0 whatever is
 * asked. Evidence: the messages that were read. What tools answered is nobody's word: it is never looked at.
 */
export function checkMessage(check: Check<'message'>, episode: Episode): CheckResult {
  const messages = messagesOf(check, episode)
  const evidence = messages.map(({ role, turn }) => `${role} message of turn ${turn}`)
  if (messages.length === 0) return scored(0, evidence)
  const text = messages.map((message) => message.text).join('\n')
  const { all_of = [], any_of, none_of = [], partial = false } = check
  if (any_of && !any_of.some((condition) => textHolds(text, condition))) return scored(0, evidence)
  if (none_of.some((condition) => textHolds(text, condition))) return scored(0, evidence)
  if (all_of.length === 0) return scored(1, evidence)
  const share = all_of.filter((condition) => textHolds(text, condition)).length / all_of.length
  return scored(partial || share === 1 ? share : 0, evidence)
}

/** Whether text meets a condition. A phrase is found without regard to case, width and spacing. */
export function textHolds(text: string, condition: TextCondition): boolean {
  if (typeof condition === 'string') return normalised(text).includes(normalised(condition))
  if ('any' in condition) return condition.any.some((one) => textHolds(text, one))
  if ('all' in condition) return condition.all.every((one) => textHolds(text, one))
  if ('re' in condition) return new RegExp(condition.re, 'iu').test(text)
  return holdsNumber(text, condition.number, condition.tol ?? DEFAULT_TOLERANCE)
}

/**
 * What the policy said. `final` is the last message without calls; what is said before the first call of a tool (or the
 * first write) is all that was said where there was none.
 */
function messagesOf({ in: scope, before_tool }: Check<'message'>, { audit, messages }: Episode) {
  const said = messages.filter(({ role }) => role === 'assistant')
  const tools = before_tool && toList(before_tool)
  const firstCall = tools && audit.find(({ tool }) => tools.includes(tool))
  const firstWrite = audit.find(({ writes }) => writes.length > 0)
  // With `before_tool` all messages before it are meant unless `in` says otherwise.
  const where = scope ?? (tools ? 'all' : 'final')
  const meant =
    where === 'final' ? said.filter(({ beside_calls }) => !beside_calls).slice(-1) : said
  return meant.filter(
    ({ seq }) =>
      (!firstCall || seq < firstCall.seq) &&
      (where !== 'before_first_write' || !firstWrite || seq < firstWrite.seq),
  )
}
