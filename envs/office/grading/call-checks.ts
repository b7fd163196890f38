// Checks on calls: call, read, order, recovered.
import { TOOLS } from '../catalogue/registry.ts'
import type { AuditRecord } from '../kernel/state.ts'
import { sameJson } from '../kernel/values.ts'
import type { Check, Where } from '../spec.ts'
import { meets } from './conditions.ts'
import {
  type CheckResult,
  countHolds,
  distinctBy,
  type Episode,
  scored,
  toList,
  verdict,
} from './evidence.ts'

interface CallFilter {
  tool: string | readonly string[]
  /** `any`: refused and failed calls too. */
  ok: boolean | 'any'
  args?: Where
  /** A call whose answer was lost counts as one that succeeded. */
  committed?: boolean
}

/** The calls of these tools, with that success, whose arguments meet the conditions; in order. */
export function callsOf(
  episode: Episode,
  { tool, ok, args = {}, committed = false }: CallFilter,
): AuditRecord[] {
  const tools = toList(tool)
  return episode.audit.filter((call) => {
    if (!tools.includes(call.tool)) return false
    const succeeded = call.ok || (committed && call.committed === true)
    if (ok !== 'any' && succeeded !== ok) return false
    return meets(call.args, args, TOOLS.get(call.tool)!.params, episode.moment)
  })
}

/** How many calls there are, how many different ones, or what a staircase gives for them. */
export function checkCall(check: Check<'call'>, episode: Episode, attempts: boolean): CheckResult {
  const calls = callsOf(episode, {
    tool: check.tool,
    ok: check.ok ?? (attempts ? 'any' : true),
    args: check.args,
    committed: check.count_committed,
  })
  const evidence = calls.map(({ seq }) => seq)
  const number = check.distinct_by
    ? distinctBy(
        calls.map(({ args }) => args),
        check.distinct_by,
      )
    : calls.length
  if (check.steps) {
    const reached = check.steps.filter(([least]) => number >= least)
    return scored(Math.max(0, ...reached.map(([, score]) => score)), evidence)
  }
  if (check.ratio_of !== undefined) return scored(Math.min(1, number / check.ratio_of), evidence)
  return verdict(countHolds(number, check.count), evidence)
}

/** Evidence seen by calls that succeeded: ids seen / min, at most 1. */
export function checkRead(check: Check<'read'>, episode: Episode): CheckResult {
  const reads = episode.audit.filter(({ ok }) => ok).flatMap((call) => call.reads)
  const seen = check.ids.filter((id) =>
    reads.some(
      (read) =>
        read.entity === check.entity &&
        read.id === id &&
        (check.depth !== 'full' || read.depth === 'full'),
    ),
  )
  const evidence = seen.map((id) => `${check.entity}/${id}`)
  return scored(Math.min(1, seen.length / (check.min ?? check.ids.length)), evidence)
}

/** The calls occur in this order; others may lie between. */
export function checkOrder(
  check: Check<'order'>,
  episode: Episode,
  attempts: boolean,
): CheckResult {
  const evidence: number[] = []
  for (const { tool, args, ok } of check.steps) {
    const next = callsOf(episode, { tool, args, ok: ok ?? (attempts ? 'any' : true) }).find(
      ({ seq }) => seq > (evidence.at(-1) ?? 0),
    )
    if (!next) return scored(0, evidence)
    evidence.push(next.seq)
  }
  return scored(1, evidence)
}

/** Whether a fault has fired in this episode. */
export const hasFired = ({ audit }: Episode, fault: string): boolean =>
  audit.some(({ injected }) => injected === fault)

/**
 * After each firing of a fault the same tool succeeded for the same target; where the write had gone through, reading
 * with a tool of `verify_with` proves recovery as well. 0 where the fault never fired.
 */
export function checkRecovered(check: Check<'recovered'>, episode: Episode): CheckResult {
  const verifying = check.verify_with ?? episode.verifyWith[check.fault] ?? []
  const fired = episode.audit.filter(({ injected }) => injected === check.fault)
  const recoveries = fired.map((failed) =>
    episode.audit.find((call) => {
      if (!call.ok || call.seq <= failed.seq) return false
      if (failed.committed && verifying.includes(call.tool)) return true
      return call.tool === failed.tool && hasSameTarget(failed, call)
    }),
  )
  const evidence = [...fired, ...recoveries].flatMap((call) => (call ? [call.seq] : []))
  return verdict(fired.length > 0 && recoveries.every((call) => call !== undefined), evidence)
}

/** All arguments that are ids or references are equal. */
function hasSameTarget(one: AuditRecord, other: AuditRecord): boolean {
  return [...TOOLS.get(one.tool)!.params].every(([name, { t, ...rest }]) => {
    const names = t === 'id' || t === 'ref' || ('of' in rest && rest.of === 'id')
    return !names || sameJson(one.args[name], other.args[name])
  })
}
