// What one panel of the dashboard is, and the forms of query that panels share.
import type { PanelKind } from './grafana-types.ts'

export interface Query {
  expr: string
  legend: string
}

export interface PanelPlan {
  title: string
  kind: PanelKind
  /** As Grafana names it. */
  unit: string
  /** What the picture says, for who hovers over the title. */
  description: string
  /** Colour from which value on; what is below the first has the other colour. */
  thresholds: { below: string; steps: [color: string, from: number][] } | null
  queries: Query[]
}

export interface RowPlan {
  title: string
  panels: PanelPlan[]
}

export const INTERVAL = '[$__rate_interval]'
export const ENV = 'env=~"$env"'
export const ENV_MODE = 'env=~"$env",mode=~"$mode"'
export const BACKEND = 'backend=~"$backend"'

const rate = (selector: string) => `rate(${selector}${INTERVAL})`
/** No sample where nothing happened: neither NaN nor 0 would be true. */
export const share = (part: string, whole: string) => `${part} / (${whole} > 0)`
export const sum = (selector: string) => `sum(${rate(selector)})`
export const sumBy = (labels: string, selector: string) => `sum by (${labels}) (${rate(selector)})`
export const quantile = (q: number, labels: string, selector: string) =>
  `histogram_quantile(${q}, sum by (le${labels}) (${rate(selector)}))`

export const GOOD_HIGH = {
  below: 'red',
  steps: [
    ['orange', 0.3],
    ['green', 0.6],
  ] as [string, number][],
}
export const GOOD_LOW = {
  below: 'green',
  steps: [
    ['orange', 0.3],
    ['red', 0.6],
  ] as [string, number][],
}

export function panel(
  kind: PanelKind,
  title: string,
  unit: string,
  description: string,
  queries: (Query | string)[],
  thresholds: PanelPlan['thresholds'] = null,
): PanelPlan {
  const named = queries.map((query) =>
    typeof query === 'string' ? { expr: query, legend: '' } : query,
  )
  return { title, kind, unit, description, thresholds, queries: named }
}

export const q = (legend: string, expr: string): Query => ({ legend, expr })
