// What a grader looks at, and what a check says: records at start and end, calls, messages, and a score with its evidence.
import type { JsonObject } from '../../../protocol/json.ts'
import { entityNamed } from '../catalogue/registry.ts'
import { momentOf } from '../kernel/call.ts'
import {
  type AuditRecord,
  initialTables,
  type OfficeState,
  type Row,
  type SaidMessage,
  type Tables,
} from '../kernel/state.ts'
import { sameJson } from '../kernel/values.ts'
import type { Count, Fault, Origin, Where } from '../spec.ts'
import { type Moment, meets } from './conditions.ts'

/** Numbers of calls, ids of records (`<service>.<entity>/<id>`), messages by role and turn. */
export type Evidence = (number | string)[]

export type CheckResult =
  | { status: 'scored'; score: number; evidence: Evidence; by?: JsonObject }
  /** The grader failed, or nobody could tell: the whole score is unavailable. `by` says who was asked. */
  | { status: 'error' | 'unknown'; reason: string; evidence: Evidence; by?: JsonObject }

export interface Episode {
  request: string
  /** The clock's first moment, as the spec writes it. */
  now: string
  /** Calls made while the episode ran. */
  audit: readonly AuditRecord[]
  initial: Tables
  final: Tables
  messages: readonly SaidMessage[]
  moment: Moment
  faults: readonly Fault[]
  verifyWith: Record<string, string[]>
}

/** An episode as its checks see it. Calls refused because it was over are no attempts at anything. */
export function episodeOf(state: OfficeState): Episode {
  return {
    request: state.spec.request,
    now: state.spec.clock.now,
    audit: state.audit.filter(({ error }) => error !== 'EPISODE_DONE'),
    initial: initialTables(state.spec),
    final: state.tables,
    messages: state.messages,
    moment: momentOf(state.spec.clock),
    faults: state.spec.faults,
    verifyWith: state.spec.grading.verify_with ?? {},
  }
}

export const scored = (score: number, evidence: Evidence = []): CheckResult => ({
  status: 'scored',
  score,
  evidence,
})

/** 1 or 0. */
export const verdict = (holds: boolean, evidence: Evidence = []): CheckResult =>
  scored(holds ? 1 : 0, evidence)

/** True where anything was written, be it by a call whose answer was lost. */
export const hasWritten = ({ audit }: Episode): boolean =>
  audit.some(({ writes }) => writes.length > 0)

/** Records of an entity with that origin that meet the conditions; deleted ones as they were. */
export function recordsOf(
  episode: Episode,
  entity: string,
  origin: Origin,
  where: Where = {},
): Row[] {
  const { name, id, fields } = entityNamed(entity)
  const before = new Map((episode.initial[name] ?? []).map((row) => [row[id], row]))
  const after = episode.final[name] ?? []
  const isOf: Record<Exclude<Origin, 'deleted'>, (row: Row) => boolean> = {
    any: () => true,
    created: (row) => !before.has(row[id]),
    updated: (row) => before.has(row[id]) && changedFields(before.get(row[id])!, row).length > 0,
    touched: (row) => isOf.created(row) || isOf.updated(row),
  }
  const kept = new Set(after.map((row) => row[id]))
  const rows =
    origin === 'deleted'
      ? [...before.values()].filter((row) => !kept.has(row[id]))
      : after.filter(isOf[origin])
  return rows.filter((row) => meets(row, where, fields, episode.moment))
}

/** Fields in which two versions of a record differ; the stamp of the change itself does not count. */
export function changedFields(before: Row, after: Row): string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (field) => field !== 'updated_at' && !sameJson(before[field], after[field]),
  )
}

export const nameOf = (entity: string, row: Row): string =>
  `${entity}/${String(row[entityNamed(entity).id])}`

/** How many different combinations of these fields there are. */
export function distinctBy(
  rows: readonly { readonly [field: string]: unknown }[],
  fields: readonly string[],
): number {
  return new Set(rows.map((row) => JSON.stringify(fields.map((field) => row[field] ?? null)))).size
}

/** Whether a number is as asked for: exactly, or within bounds; at least one where nothing is asked. */
export function countHolds(number: number, count: Count = { min: 1 }): boolean {
  if (typeof count === 'number') return number === count
  return number >= (count.min ?? 0) && number <= (count.max ?? Infinity)
}

export const toList = <T>(one: T | readonly T[]): readonly T[] =>
  Array.isArray(one) ? (one as readonly T[]) : [one as T]
