// A check of any kind to its result: the table of kinds, combinators, and what one check requires of others.
import type { Check, CheckKind } from '../spec.ts'
import { checkCall, checkOrder, checkRead, checkRecovered } from './call-checks.ts'
import { checkCustom, type Others } from './custom-check.ts'
import { type CheckResult, type Episode, hasWritten, scored } from './evidence.ts'
import { checkMessage } from './message-check.ts'
import {
  checkCover,
  checkOnlyWrites,
  checkSlot,
  checkState,
  checkUnchanged,
} from './record-checks.ts'

export interface Context {
  episode: Episode
  /** Calls that failed count too unless a check says otherwise: so it is within safety rules. */
  attempts: boolean
  /** The result of a completion check, for `requires`. */
  completion(id: string): CheckResult
  others: Others
}

const KINDS: { [K in CheckKind]: (check: Check<K>, context: Context) => CheckResult } = {
  state: (check, { episode }) => checkState(check, episode),
  call: (check, { episode, attempts }) => checkCall(check, episode, attempts),
  cover: (check, { episode, attempts }) => checkCover(check, episode, attempts),
  read: (check, { episode }) => checkRead(check, episode),
  order: (check, { episode, attempts }) => checkOrder(check, episode, attempts),
  message: (check, { episode }) => checkMessage(check, episode),
  unchanged: (check, { episode }) => checkUnchanged(check, episode),
  only_writes: (check, { episode }) => checkOnlyWrites(check, episode),
  slot: (check, { episode }) => checkSlot(check, episode),
  recovered: (check, { episode }) => checkRecovered(check, episode),
  all: (check, context) => combined(check.of, context, (scores) => Math.min(...scores)),
  any: (check, context) => combined(check.of, context, (scores) => Math.max(...scores)),
  mean: (check, context) =>
    combined(
      check.of,
      context,
      (scores) => scores.reduce((sum, one) => sum + one, 0) / scores.length,
    ),
  not: (check, context) =>
    check.requires_action && !hasWritten(context.episode)
      ? scored(0)
      : combined([check.of], context, ([score]) => 1 - score!),
  best: (check, context) =>
    combined(
      check.of.map((option) => option.check),
      context,
      (scores) => Math.max(...scores.map((score, i) => score * check.of[i]!.score)),
    ),
  custom: (check, { episode, others }) => checkCustom(check, episode, others),
}

/** Score in [0, 1] with its evidence, or why there can be none. */
export function evaluate(check: Check, context: Context): CheckResult {
  for (const id of check.requires ?? []) {
    const required = context.completion(id)
    if (required.status !== 'scored') return required
    if (required.score <= 0) return scored(0, required.evidence)
  }
  return (KINDS[check.kind] as (check: Check, context: Context) => CheckResult)(check, context)
}

/** One score of several checks; the first that fails to score decides. */
function combined(
  checks: readonly Check[],
  context: Context,
  combine: (scores: number[]) => number,
): CheckResult {
  const results = checks.map((check) => evaluate(check, context))
  const scores: number[] = []
  for (const result of results) {
    if (result.status !== 'scored') return result
    scores.push(result.score)
  }
  const evidence = [...new Set(results.flatMap((result) => result.evidence))]
  return scored(scores.length === 0 ? 0 : combine(scores), evidence)
}
