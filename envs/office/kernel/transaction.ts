// What a call may do to the records while it runs: read, create, change, remove. Thrown away where the call is refused.
import type { JsonObject, JsonValue } from '../../../protocol/json.ts'
import type { EntityName } from '../catalogue/declare.ts'
import { entityNamed } from '../catalogue/registry.ts'
import type { Outcome } from './outcome.ts'
import { pageOf, sorted } from './query.ts'
import type { Depth, OfficeState, ReadRecord, Row, Tables, WriteRecord } from './state.ts'
import { sameJson } from './values.ts'

/** Checked arguments: declared parameters of the declared types, none null. */
export type Args = { readonly [parameter: string]: JsonValue }

/** A tool that no operation covers. Its arguments are checked, its references exist. */
export type Handler = (transaction: Transaction, args: Args) => Outcome

/** Fields to assign; null takes the field away. */
export type Patch = { readonly [field: string]: JsonValue }

export interface Transaction {
  /** The clock of this call, as a date-time. */
  readonly now: string
  readonly actor: { readonly name: string; readonly email: string }
  readonly seed: number
  /** Number of this call in its episode, from 1. */
  readonly seq: number
  readonly tables: Tables
  readonly counters: OfficeState['counters']
  readonly reads: ReadRecord[]
  readonly writes: WriteRecord[]
  /** All records of an entity; none where the task does not have its service. */
  rows<R = Row>(entity: EntityName): readonly R[]
  find<R = Row>(entity: EntityName, id: string): R | undefined
  /** Notes that the model was shown a record. */
  read(entity: EntityName, id: string, depth: Depth): void
  /** Adds a record under a new id; `created_at` is the clock where the entity has it. */
  create<R = Row>(entity: EntityName, fields: Patch): R
  /** Assigns what differs and returns the record; nothing is written where nothing does. */
  change<R = Row>(entity: EntityName, id: string, patch: Patch): R
  remove(entity: EntityName, id: string): void
  /** One page of these records in the entity's order, as list tools give it, and notes what was seen. */
  page(entity: EntityName, rows: readonly object[], paging: Args): JsonObject
}

/** Opens the records of a state for one call. The state stays as it is; `tables` and `counters` are the next ones. */
export function openTransaction(
  state: OfficeState,
  call: { now: string; seq: number },
): Transaction {
  const tables: Tables = { ...state.tables }
  const counters = { ...state.counters }
  const reads: ReadRecord[] = []
  const writes: WriteRecord[] = []

  const rows = (entity: EntityName): readonly Row[] => tables[entity] ?? []
  const indexOf = (entity: EntityName, id: string): number => {
    const key = entityNamed(entity).id
    return rows(entity).findIndex((row) => row[key] === id)
  }

  return {
    ...call,
    actor: state.spec.actor,
    seed: state.seed,
    tables,
    counters,
    reads,
    writes,
    rows: <R>(entity: EntityName) => rows(entity) as readonly R[],
    find: <R>(entity: EntityName, id: string) => rows(entity)[indexOf(entity, id)] as R | undefined,
    read: (entity, id, depth) => void reads.push({ entity, id, depth }),
    create<R>(entity: EntityName, fields: Patch) {
      const { id: key, prefix, fields: declared } = entityNamed(entity)
      counters[entity] = (counters[entity] ?? 0) + 1
      const id = `${prefix}-N${counters[entity]}`
      const given: Patch = { created_at: call.now, ...fields, [key]: id }
      const row: Row = {}
      // In declared order, so that a record reads the same whoever made it.
      for (const field of declared.keys())
        if (Object.hasOwn(given, field) && given[field] !== null) row[field] = given[field]!
      tables[entity] = [...rows(entity), row]
      writes.push({ entity, id, op: 'create', before: null, after: row })
      return row as R
    },
    change<R>(entity: EntityName, id: string, patch: Patch) {
      const at = indexOf(entity, id)
      const before = rows(entity)[at]
      if (!before) throw new Error(`${entity} ${id} is changed but does not exist: find it first`)
      const after = patched(before, patch)
      if (sameJson(before, after)) return before as R
      if (entityNamed(entity).fields.has('updated_at')) after.updated_at = call.now
      tables[entity] = rows(entity).with(at, after)
      writes.push({ entity, id, op: 'update', before, after })
      return after as R
    },
    remove(entity, id) {
      const before = rows(entity)[indexOf(entity, id)]
      if (!before) throw new Error(`${entity} ${id} is removed but does not exist: find it first`)
      tables[entity] = rows(entity).filter((row) => row !== before)
      writes.push({ entity, id, op: 'delete', before, after: null })
    },
    page(entity, found, paging) {
      const declared = entityNamed(entity)
      const page = pageOf(declared, sorted(declared, found as readonly Row[]), paging)
      reads.push(...page.reads)
      return page.result
    },
  }
}

/** A copy with the fields of a patch; fields patched with null are gone. */
function patched(row: Row, patch: Patch): Row {
  const next = { ...row }
  for (const [field, value] of Object.entries(patch)) {
    if (value === null) delete next[field]
    else next[field] = value
  }
  return next
}
