// The state of one episode as plain data: it survives structured clone and JSON, and no part of it is ever changed in place.
import type { JsonObject, JsonValue } from '../../../protocol/json.ts'
import type { CallErrorCode, EntityName } from '../catalogue/declare.ts'
import { ENTITIES_OF } from '../catalogue/registry.ts'
import type { PlayedSpec, TaskSpec } from '../spec.ts'
import { DEFAULT_MAX_CHARS } from './observation.ts'

/** One record. Absent fields have no key. */
export type Row = { [field: string]: JsonValue }

/** Records by `<service>.<entity>`, in the order in which they came to be. */
export type Tables = { [entity: EntityName]: readonly Row[] }

export type Depth = 'summary' | 'full'
type WriteOp = 'create' | 'update' | 'delete'

export interface ReadRecord {
  entity: EntityName
  id: string
  depth: Depth
}

export interface WriteRecord {
  entity: EntityName
  id: string
  op: WriteOp
  before: Row | null
  after: Row | null
}

/** What one call did; there is one for each call, refused ones included. */
export interface AuditRecord {
  /** Number of the call in its episode, from 1. */
  seq: number
  call_id: string
  turn: number
  /** Virtual time. */
  at: string
  tool: string
  service: string
  entity: string
  args: JsonObject
  ok: boolean
  error: CallErrorCode | null
  /** Id of the fault that was injected. */
  injected: string | null
  /** The answer was lost, what the call did stays. */
  committed?: true
  /** Characters that are no text (unpaired surrogates) were replaced in the observation. */
  replaced?: true
  reads: ReadRecord[]
  writes: WriteRecord[]
  result_digest: string
}

export interface SaidMessage {
  role: 'assistant' | 'user'
  text: string
  turn: number
  /** Calls made before it was said. */
  seq: number
  /** Said beside calls; such a message is no closing one. */
  beside_calls: boolean
}

export interface OfficeState {
  spec: PlayedSpec
  seed: number
  tables: Tables
  /** Last number given to a created id, by entity. */
  counters: { [entity: EntityName]: number }
  calls: number
  /** Calls that each fault has seen, by its place in the spec. */
  fault_calls: number[]
  audit: readonly AuditRecord[]
  messages: readonly SaidMessage[]
  user: {
    answers: number
    fired: readonly string[]
    /** A model plays it in the place of its script. */
    by_model?: true
  }
  /** Entities of which a seeded record is longer than one observation. */
  long: readonly EntityName[]
  /** How many characters from its beginning were shown of a record that came in parts, of which version of it. */
  partly?: { readonly [record: string]: { digest: string; chars: number } }
  /** How the episode ended; null while it runs. */
  ended: string | null
}

/** The first state of an episode. The spec is taken as `problems` found it: without any. */
export function firstState(
  spec: TaskSpec,
  seed: number,
  user: 'script' | 'model' = 'script',
): OfficeState {
  const { transcripts: _t, reference_path: _r, forbidden_probes: _p, hidden: _h, ...played } = spec
  const tables = initialTables(played)
  const limit = played.limits.max_observation_chars ?? DEFAULT_MAX_CHARS
  const isLong = (row: Row) => JSON.stringify(row).length > limit
  return {
    spec: played,
    seed,
    tables,
    long: Object.keys(tables).filter((name): name is EntityName =>
      tables[name as EntityName]!.some(isLong),
    ),
    counters: {},
    calls: 0,
    fault_calls: played.faults.map(() => 0),
    audit: [],
    messages: [],
    user: { answers: 0, fired: [], ...(user === 'model' && { by_model: true }) },
    ended: null,
  }
}

/** The seeded records of every entity of the task's services. */
export function initialTables(spec: Pick<TaskSpec, 'services' | 'initial_state'>): Tables {
  const tables: Tables = {}
  for (const service of spec.services)
    for (const { name, key } of ENTITIES_OF.get(service) ?? [])
      tables[name] = (spec.initial_state[service]?.[key] ?? []).map(withoutNulls)
  return tables
}

/** The record itself where nothing is null, else a copy: null counts as absent. */
function withoutNulls(record: JsonObject): Row {
  return Object.values(record).includes(null)
    ? Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null))
    : record
}
