// One call from its name to its audit record: the order of checks, injected faults, the clock and the limit of calls.
import type { ToolCall } from '../../../protocol/conversation.ts'
import { digest } from '../../../protocol/json.ts'
import type { CallErrorCode } from '../catalogue/declare.ts'
import type { Tool } from '../catalogue/derive.ts'
import { TOOLS } from '../catalogue/registry.ts'
import type { Moment } from '../grading/conditions.ts'
import { checkArguments, keptArguments, missingReference } from './arguments.ts'
import { evidenceOf } from './evidence.ts'
import { faultRefusal, meetFaults } from './faults.ts'
import { formatLike, instantOf, offsetOf } from './instant.ts'
import { render } from './observation.ts'
import { operate } from './operations.ts'
import { errorResult, type Outcome, refuse } from './outcome.ts'
import type { AuditRecord, OfficeState } from './state.ts'
import { type Args, openTransaction, type Transaction } from './transaction.ts'
import { shown } from './values.ts'

/** What the audit keeps of a name or id that a policy made up. */
const MAX_NAME_CHARS = 200

export interface CallStep {
  state: OfficeState
  content: string
  audit: AuditRecord
}

/** How a call came out, and what it leaves behind. */
interface Ran {
  outcome: Outcome
  tool?: Tool
  args?: Args
  transaction?: Transaction
  fault_calls?: number[]
  injected?: string
  committed?: true
}

/**
 * Runs one call. Checks come in this order: episode over, unknown tool, arguments, injected fault `before`, missing
 * reference, the tool itself, injected fault `after_commit` (the write stays, the answer is lost).
 */
export function runCall(state: OfficeState, call: ToolCall, turn: number): CallStep {
  const seq = state.calls + 1
  const now = clockAt(state.spec.clock, seq)
  // A budget of n calls lets n calls run; the one after that ends the episode.
  const spent = !state.ended && state.calls >= (state.spec.limits.max_calls ?? Infinity)
  const ended = spent ? 'max_calls' : state.ended
  const ran: Ran = ended
    ? {
        outcome: refuse('EPISODE_DONE', `the episode is over (${ended}); nothing more can be done`),
      }
    : attempt(state, call, { now, seq })
  const { outcome, tool, transaction } = ran
  const kept = outcome.ok || ran.committed ? transaction : undefined
  const result = outcome.ok ? outcome.result : errorResult(outcome)
  const { max_observation_chars } = state.spec.limits
  const from = Number(ran.args?.offset ?? 0)
  const offsets = tool?.declaration.op === 'get' ? { item: 0, char: from } : { item: from, char: 0 }
  const { content, replaced, cut } = render(
    result,
    max_observation_chars,
    outcome.ok ? offsets : undefined,
  )
  const result_digest = digest(result)
  const seen = evidenceOf(state.partly, kept?.reads ?? [], cut, result_digest)
  const audit: AuditRecord = {
    seq,
    call_id: String(call.id).slice(0, MAX_NAME_CHARS),
    turn,
    at: now,
    tool: String(call.name).slice(0, MAX_NAME_CHARS),
    service: tool?.service ?? '',
    entity: tool?.entity.name ?? '',
    args: { ...(ran.args ?? keptArguments(call.arguments)) },
    ok: outcome.ok,
    error: outcome.ok ? null : outcome.code,
    injected: ran.injected ?? null,
    ...(ran.committed && { committed: true as const }),
    ...(replaced && { replaced: true as const }),
    reads: seen.reads,
    writes: kept?.writes ?? [],
    result_digest,
  }
  const next: OfficeState = {
    ...state,
    ended,
    calls: seq,
    audit: [...state.audit, audit],
    ...(ran.fault_calls && { fault_calls: ran.fault_calls }),
    ...(kept && { tables: kept.tables, counters: kept.counters }),
    ...(seen.partly && { partly: seen.partly }),
  }
  return { state: next, content, audit }
}

/** The clock when call `seq` (from 1) is made, with the offset that the task's clock has. */
export function clockAt(clock: { now: string; tick_s?: number }, seq: number): string {
  return formatLike(instantOf(clock.now, 0)! + seq * (clock.tick_s ?? 1) * 1000, clock.now)
}

/** The moment to which relative times in conditions refer: the start of the episode. */
export function momentOf({ now }: { now: string }): Moment {
  return { nowMs: instantOf(now, 0)!, offsetMinutes: offsetOf(now) }
}

function attempt(state: OfficeState, call: ToolCall, at: { now: string; seq: number }): Ran {
  const refused = (code: CallErrorCode, message: string) => ({ outcome: refuse(code, message) })
  const tool = offeredTool(state, call.name)
  if (!tool)
    return refused(
      'UNKNOWN_TOOL',
      `there is no tool ${shown(call.name)}; call one of those offered`,
    )
  const checked = checkArguments(tool, call.arguments)
  if (!checked.ok) return { tool, ...refused('INVALID_ARGUMENT', checked.message) }
  const { args } = checked
  const moment = momentOf(state.spec.clock)
  const before = meetFaults(state, 'before', tool, args, moment)
  const ran = { tool, args, fault_calls: before.fault_calls }
  if (before.fault)
    return { ...ran, outcome: faultRefusal(before.fault), injected: before.fault.id }
  const transaction = openTransaction(state, at)
  const missing = missingReference(tool, transaction, args)
  if (missing) return { ...ran, ...refused('REF_NOT_FOUND', missing) }
  const outcome = operate(tool, transaction, args)
  if (!outcome.ok) return { ...ran, outcome }
  const seen = { spec: state.spec, fault_calls: before.fault_calls }
  const { fault, fault_calls } = meetFaults(seen, 'after_commit', tool, args, moment)
  if (!fault) return { ...ran, fault_calls, outcome, transaction }
  const lost = { outcome: faultRefusal(fault), injected: fault.id, committed: true as const }
  return { ...ran, fault_calls, transaction, ...lost }
}

function offeredTool({ spec }: OfficeState, name: unknown): Tool | undefined {
  const tool = typeof name === 'string' ? TOOLS.get(name) : undefined
  if (!tool || !spec.services.includes(tool.service)) return undefined
  return !spec.tools || spec.tools.includes(tool.name) ? tool : undefined
}
