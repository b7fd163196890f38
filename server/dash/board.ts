// The panels of the Grafana dashboard with their data, for a page of our own: from Prometheus, else from the samples in memory.
import { PaddockError } from '../../protocol/errors.ts'
import { createDashboard } from '../grafana/dashboard.ts'
import { type Chosen, filledIn } from '../grafana/filled-in.ts'
import type { PanelJson } from '../grafana/grafana-types.ts'
import { type Annotation, annotationQueries, annotationsOf } from './annotations.ts'
import { createCache } from './cache.ts'
import type { Labels } from './evaluate.ts'
import { asked, legendOf, type QuerySource } from './query-source.ts'
import { declaredVariables, presentValues, type Variable } from './variables.ts'

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
  describe(): Promise<{
    source: QuerySource['kind']
    interval: number
    seconds: number | null
    remark: string | null
    variables: Variable[]
    rows: { title: string; panels: PanelHead[] }[]
  }>
  /** `minutes` back from now, of what is `chosen`. Throws `not_found` for an id that no panel has. */
  panel(id: number, minutes: number, chosen?: Chosen): Promise<PanelData>
  annotations(minutes: number): Promise<Annotation[]>
  /** The stat panels over the last hour, of training. */
  figures(): Promise<Figure[]>
}

/** Moments that a picture has: two pixels each on a narrow screen. */
const POINTS = 120
const HOUR = 60

/** Every query that a board asks, with all variables open. */
export function boardQueries(): string[] {
  const panels = createDashboard().panels.flatMap((panel) =>
    'targets' in panel ? panel.targets.map(({ expr = '' }) => filledIn(expr)) : [],
  )
  const variables = declaredVariables().map(({ query }) => query)
  return [...panels, ...variables, ...annotationQueries().map(({ expr }) => expr)]
}

/**
 * `now`: seconds since 1970. Between two samples nothing new can be seen: whoever asks meanwhile, and however many do,
 * has the same answer, which was computed once.
 */
export function createBoard(source: QuerySource, now: () => number): Board {
  const all = createDashboard().panels
  const panels = all.filter((panel): panel is PanelJson => panel.type !== 'row')
  const cache = createCache(() => Math.floor(now() / source.interval))

  async function panelData(
    panel: PanelJson,
    minutes: number,
    chosen: Chosen = {},
  ): Promise<PanelData> {
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
      const query = filledIn(expr, window, `${minutes}m`, chosen)
      const { rows, note } = await asked(source, query, times)
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

  async function figureOf(panel: PanelJson): Promise<Figure> {
    const { series } = await panelData(panel, HOUR, { mode: ['train'] })
    const { kind: _, thresholds, ...head } = headOf(panel)
    const value = series[0]?.values.findLast((one) => one !== null) ?? null
    return { ...head, value, color: colorOf(value, thresholds) }
  }

  return {
    async describe() {
      return {
        source: source.kind,
        interval: source.interval,
        seconds: source.seconds,
        remark: source.remark(),
        variables: await cache('variables', () => presentValues(source, now())),
        rows: rowsOf(all),
      }
    },
    async panel(id, minutes, chosen = {}) {
      const panel = panels.find((one) => one.id === id)
      if (!panel) throw new PaddockError('not_found', `the dashboard has no panel ${id}`)
      const key = JSON.stringify([id, minutes, chosen])
      return cache(key, () => panelData(panel, minutes, chosen))
    },
    annotations: (minutes) =>
      cache(`annotations ${minutes}`, () => annotationsOf(source, now(), minutes)),
    figures: () =>
      cache('figures', () =>
        inTurn(
          panels.filter(({ type }) => type === 'stat'),
          figureOf,
        ),
      ),
  }
}

async function inTurn<In, Out>(items: readonly In[], work: (one: In) => Promise<Out>) {
  const done: Out[] = []
  for (const one of items) done.push(await work(one))
  return done
}

function rowsOf(all: ReturnType<typeof createDashboard>['panels']) {
  return all.flatMap((row, place) => {
    if (row.type !== 'row') return []
    const end = all.findIndex((one, later) => later > place && one.type === 'row')
    const own = all.slice(place + 1, end < 0 ? all.length : end) as PanelJson[]
    return [{ title: row.title ?? '', panels: own.map(headOf) }]
  })
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

/** Grafana's own name where there is no legend. */
function nameOf(labels: Labels, legend: string, title: string): string {
  if (legend) return legendOf(labels, legend)
  const told = Object.entries(labels).map(([name, value]) => `${name} ${value}`)
  return told.join(', ') || title
}
