// The identity of a state for GiGPO: what the records are by now and what the policy has seen, however it came there.
import { canonicalJson, digest } from '../../../protocol/json.ts'
import { entityNamed } from '../catalogue/registry.ts'
import { initialTables, type OfficeState, type Row } from './state.ts'

/**
 * Digest of the records that differ from the seeded ones, the evidence read by calls that succeeded, and what the
 * scripted user has told. Clock, stamps, call counts and audit order leave no mark. Only states of one task compare.
 */
export function anchorOf(state: OfficeState): string {
  return digest({
    records: changedRecords(state),
    evidence: evidence(state),
    told: toldByUser(state),
  })
}

/** Every record that a write has touched and left different, without its stamps; null where it is gone. */
function changedRecords(state: OfficeState): [entity: string, id: string, row: Row | null][] {
  const touched = new Map(
    state.audit.flatMap(({ writes }) =>
      writes.map(({ entity, id }) => [canonicalJson([entity, id]), { entity, id }] as const),
    ),
  )
  if (touched.size === 0) return []
  const initial = initialTables(state.spec)
  return [...touched.entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([, { entity, id }]) => {
      const { id: key, stamps } = entityNamed(entity)
      const unstamped = (rows: readonly Row[] = []): Row | null => {
        const row = rows.find((candidate) => candidate[key] === id)
        return row
          ? Object.fromEntries(Object.entries(row).filter(([field]) => !stamps.has(field)))
          : null
      }
      const row = unstamped(state.tables[entity])
      const differs = canonicalJson(row) !== canonicalJson(unstamped(initial[entity]))
      return differs ? [[entity, id, row] as [string, string, Row | null]] : []
    })
}

/** Each record once, at the greatest depth at which it was seen, and how far those were that came in parts. */
function evidence({ audit, partly = {} }: OfficeState): string[] {
  const seen = new Map<string, 'summary' | 'full'>()
  for (const { ok, reads } of audit)
    for (const { entity, id, depth } of ok ? reads : []) {
      const key = canonicalJson([entity, id])
      if (depth === 'full' || !seen.has(key)) seen.set(key, depth)
    }
  const parts = Object.entries(partly).map(([key, { chars }]) => `${key} to ${chars}`)
  return [...[...seen].map(([key, depth]) => `${key} ${depth}`), ...parts].sort()
}

const toldByUser = ({ user }: OfficeState): string[] => user.fired.toSorted()
