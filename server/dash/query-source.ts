// What the dashboard asks of those who keep samples: Prometheus, or this process's memory.
import type { Row } from './evaluate.ts'

/** A source that does not answer now. */
export class SourceUnavailable extends Error {}

/** What answers a query over a grid of moments, seconds. */
export interface QuerySource {
  kind: 'prometheus' | 'memory'
  /** Seconds between two samples. */
  interval: number
  /** How far back it reaches; null where it may be any time. */
  seconds: number | null
  /** Throws SourceUnavailable where it does not answer. */
  range(expr: string, grid: readonly number[]): Promise<Row[]>
  /** Why a query can have no data here; null where it may. */
  obstacle(expr: string): string | null
  /** What is wrong with the whole of it, as a sentence. */
  remark(): string | null
}

/** A query without an answer leaves a note in its place: what else was asked is shown. */
export async function asked(
  source: QuerySource,
  query: string,
  grid: readonly number[],
): Promise<{ rows: Row[]; note: string | null }> {
  const note = source.obstacle(query)
  if (note !== null) return { rows: [], note }
  try {
    return { rows: await source.range(query, grid), note: null }
  } catch (error) {
    if (!(error instanceof SourceUnavailable)) throw error
    return { rows: [], note: error.message }
  }
}

/** `{{env}} p50` with the labels' values; empty where there is no legend. */
export function legendOf(labels: Row['labels'], legend: string): string {
  return legend.replaceAll(/\{\{(\w+)\}\}/g, (_, label) => labels[label] ?? '').trim()
}
