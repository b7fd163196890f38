// What the simulator counted, for GET /simulator/stats.
import type { FaultKind } from './faults.ts'

/** One completion as it was sampled, before any fault bent it. */
export interface SampledRecord {
  path: string
  seed: number
  prompt_tokens: number
  ids: number[] | null
  /** Faults that hit the request. */
  faults: FaultKind[]
}

export interface Stats {
  request(path: string): void
  completion(record: SampledRecord): void
  faults(kinds: Iterable<FaultKind>): void
  report(): object
}

/** Records kept with `record`; older ones go first. */
const MAX_RECORDS = 100_000

export function createStats({ record }: { record: boolean }): Stats {
  const requests: Record<string, number> = {}
  const faultsByKind: Record<string, number> = {}
  const tokens = { prompt: 0, completion: 0 }
  const records: SampledRecord[] = []
  return {
    request: (path) => count(requests, path),
    faults: (kinds) => {
      for (const kind of kinds) count(faultsByKind, kind)
    },
    completion(one) {
      tokens.prompt += one.prompt_tokens
      tokens.completion += one.ids?.length ?? 0
      if (!record) return
      records.push(one)
      if (records.length > MAX_RECORDS) records.shift()
    },
    report: () => ({ requests, tokens, faults: faultsByKind, ...(record && { records }) }),
  }
}

function count(counts: Record<string, number>, key: string): void {
  counts[key] = (counts[key] ?? 0) + 1
}
