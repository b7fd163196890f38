// What happened meanwhile, to be drawn over the pictures: the annotations of dashboard.json as spans of time.
import { createDashboard } from '../grafana/dashboard.ts'
import { asked, legendOf, type QuerySource } from './query-source.ts'

export interface Annotation {
  name: string
  color: string
  /** Seconds since 1970; `from` and `to` are the same where it was seen at one moment only. */
  spans: { from: number; to: number; text: string }[]
  /** Why something is missing. */
  notes: string[]
}

/** Moments further apart would step over what lasts a minute. */
const STEP_S = 30

/** The annotations' queries, as they are declared. */
export function annotationQueries(): { name: string; color: string; expr: string; text: string }[] {
  return (createDashboard().annotations.list ?? []).map((one) => ({
    name: one.name ?? '',
    color: one.iconColor ?? '',
    expr: one.expr ?? '',
    text: one.titleFormat ?? '',
  }))
}

/** Those of the last `minutes` before `end`, by their beginning. */
export function annotationsOf(
  source: QuerySource,
  end: number,
  minutes: number,
): Promise<Annotation[]> {
  const count = Math.floor((60 * minutes) / STEP_S) + 1
  const grid = Array.from({ length: count }, (_, place) => end - (count - 1 - place) * STEP_S)
  return Promise.all(
    annotationQueries().map(async ({ name, color, expr, text }) => {
      const { rows, note } = await asked(source, expr, grid)
      const spans = rows.flatMap(({ labels, values }) =>
        runs(values, grid).map((span) => ({ ...span, text: legendOf(labels, text) })),
      )
      spans.sort((a, b) => a.from - b.from)
      return { name, color, spans, notes: note === null ? [] : [note] }
    }),
  )
}

/** Moments in a row that have a value are one span, as in Grafana. */
function runs(values: Float64Array, grid: readonly number[]): { from: number; to: number }[] {
  const found: { from: number; to: number }[] = []
  for (const [place, value] of values.entries()) {
    if (Number.isNaN(value)) continue
    const at = grid[place]!
    const last = found.at(-1)
    if (last && place > 0 && last.to === grid[place - 1]) last.to = at
    else found.push({ from: at, to: at })
  }
  return found
}
