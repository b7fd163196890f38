// The panels of the Grafana dashboard with their data, for a page of our own: from Prometheus, else from the samples in memory.
import { PaddockError } from '../../protocol/errors.ts'
import { createDashboard } from '../grafana/dashboard.ts'
import { filledIn } from '../grafana/filled-in.ts'
import type { PanelJson } from '../grafana/grafana-types.ts'
import type { Labels, Row } from './evaluate.ts'

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

export interface PanelHead {
  id: number
  title: string
  kind: PanelJson['type']
  description: string
  /** As Grafana names it. */
  unit: string
  /** Colour from which value on; the first from anywhere. */
  thresholds: { color: string; value: number | null }[]
}

export interface PanelData {
  /** Seconds since 1970. */
  times: number[]
  series: { name: string; labels: Labels; values: (number | null)[] }[]
  /** Why something is missing. */
  notes: string[]
}

export interface Figure extends Pick<PanelHead, 'id' | 'title' | 'description' | 'unit'> {
  /** The last that is known within the range; null where there was none. */
  value: number | null
  color: string
}

export interface Board {
  describe(): {
    source: QuerySource['kind']
    interval: number
    seconds: number | null
    remark: string | null
    rows: { title: string; panels: PanelHead[] }[]
  }
  /** `minutes` back from now. Throws `not_found` for an id that no panel has. */
  panel(id: number, minutes: number): Promise<PanelData>
  /** The stat panels, over the last hour. */
  figures(): Promise<Figure[]>
}

/** Moments that a picture has: two pixels each on a narrow screen. */
const POINTS = 120
const HOUR = 60

/** `now`: seconds since 1970. */
export function createBoard(source: QuerySource, now: () => number): Board {
  const all = createDashboard().panels
  const panels = all.filter((panel): panel is PanelJson => panel.type !== 'row')

  async function panelData(panel: PanelJson, minutes: number): Promise<PanelData> {
    const seconds = 60 * minutes
    // As in Grafana: a rate has at least four samples, and no gap between two windows.
    const step = Math.max(source.interval, Math.ceil(seconds / POINTS))
    const window = `${Math.max(4 * source.interval, step + source.interval)}s`
    const end = now()
    const length = panel.type === 'table' ? 1 : Math.floor(seconds / step) + 1
    const times = Array.from({ length }, (_, place) => end - (length - 1 - place) * step)
    const notes: string[] = []
    const series: PanelData['series'] = []
    for (const { expr = '', legendFormat = '' } of panel.targets) {
      const query = filledIn(expr, window, `${minutes}m`)
      const { rows, note } = await asked(query, times)
      if (note !== null) notes.push(note)
      for (const { labels, values } of rows)
        series.push({
          name: nameOf(labels, legendFormat, panel.title ?? ''),
          labels,
          values: Array.from(values, (value) => (Number.isFinite(value) ? value : null)),
        })
    }
    return {
      times,
      series: series.filter(({ values }) => values.some((one) => one !== null)),
      notes,
    }
  }

  /** A query without an answer leaves a note in its place: the other queries of the panel are shown. */
  async function asked(
    query: string,
    times: number[],
  ): Promise<{ rows: Row[]; note: string | null }> {
    const note = source.obstacle(query)
    if (note !== null) return { rows: [], note }
    try {
      return { rows: await source.range(query, times), note: null }
    } catch (error) {
      if (!(error instanceof SourceUnavailable)) throw error
      return { rows: [], note: error.message }
    }
  }

  return {
    describe: () => ({
      source: source.kind,
      interval: source.interval,
      seconds: source.seconds,
      remark: source.remark(),
      rows: all.flatMap((row, place) => {
        if (row.type !== 'row') return []
        const end = all.findIndex((one, later) => later > place && one.type === 'row')
        const own = all.slice(place + 1, end < 0 ? all.length : end) as PanelJson[]
        return [{ title: row.title ?? '', panels: own.map(headOf) }]
      }),
    }),
    async panel(id, minutes) {
      const panel = panels.find((one) => one.id === id)
      if (!panel) throw new PaddockError('not_found', `the dashboard has no panel ${id}`)
      return panelData(panel, minutes)
    },
    async figures() {
      const figures: Figure[] = []
      for (const panel of panels.filter(({ type }) => type === 'stat')) {
        const { series } = await panelData(panel, HOUR)
        const { kind: _, thresholds, ...head } = headOf(panel)
        const value = series[0]?.values.findLast((one) => one !== null) ?? null
        figures.push({ ...head, value, color: colorOf(value, thresholds) })
      }
      return figures
    },
  }
}

function headOf(panel: PanelJson): PanelHead {
  const { unit = 'short', thresholds } = panel.fieldConfig.defaults
  return {
    id: panel.id ?? 0,
    title: panel.title ?? '',
    kind: panel.type,
    description: panel.description ?? '',
    unit,
    thresholds: (thresholds?.steps ?? []).map(({ color, value }) => ({ color, value })),
  }
}

function colorOf(value: number | null, thresholds: PanelHead['thresholds']): string {
  if (value === null) return 'none'
  return thresholds.findLast((step) => step.value === null || value >= step.value)?.color ?? 'none'
}

/** `{{env}} p50` with the label's value; Grafana's own name where there is no legend. */
function nameOf(labels: Labels, legend: string, title: string): string {
  if (legend) return legend.replaceAll(/\{\{(\w+)\}\}/g, (_, label) => labels[label] ?? '').trim()
  const told = Object.entries(labels).map(([name, value]) => `${name} ${value}`)
  return told.join(', ') || title
}
