// The registry made from the catalogue: every closed combination stands from the start, what is not known yet apart, and no label value is ever new.
import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type MetricValueWithName,
  Registry,
} from 'prom-client'
import type { Sample } from '../dash/ring.ts'
import { CATALOGUE, type MetricLabels, type MetricName, PREFIX } from './catalogue/catalogue.ts'
import { type Definition, labelLists } from './catalogue/definition.ts'
import { LABEL_LISTS } from './labels.ts'
import { plainText } from './plain-text.ts'

/** What the configuration says that labels may be. */
export interface OpenLists {
  env: readonly string[]
  backend: readonly string[]
  /** By environment. */
  component: Readonly<Record<string, readonly string[]>>
  version: string
  node: string
}

export interface Series {
  inc<Name extends MetricName<'counter'>>(name: Name, labels: MetricLabels<Name>, by?: number): void
  set<Name extends MetricName<'gauge'>>(name: Name, labels: MetricLabels<Name>, value: number): void
  /** `episode`: the id that a look at this bucket leads to. */
  observe<Name extends MetricName<'histogram'>>(
    name: Name,
    labels: MetricLabels<Name>,
    value: number,
    episode?: string,
  ): void
  /** Calls before each scrape, for levels that are read and not counted. */
  beforeScrape(read: () => void): void
  text(form: 'plain' | 'openmetrics'): Promise<{ contentType: string; text: string }>
  /** What stands now in the metrics of these names; buckets, sums and counts by their own. */
  samples(metrics: ReadonlySet<string>): Promise<Sample[]>
}

/** Tools of all environments together. */
const MAX_TOOLS = 200
/** OpenMetrics allows 128 characters for names and values of an exemplar. */
const MAX_EPISODE_ID = 128 - 'episode_id'.length

const CLOSED: Record<string, readonly string[]> = LABEL_LISTS

type Labels = Record<string, string>
type Kept = Counter | Gauge | Histogram

export function createSeries(lists: OpenLists): Series {
  const registry = new Registry()
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as never)
  collectDefaultMetrics({ register: registry })
  const readers: (() => void)[] = []
  const tools = new Set<string>()
  const kept = new Map<string, Kept>()
  const labelsOf = new Map<string, ReturnType<typeof labelLists>>()
  for (const [name, definition] of Object.entries(CATALOGUE)) {
    labelsOf.set(name, labelLists(definition))
    kept.set(name, register(name, definition))
    if (!definition.onceKnown)
      for (const labels of combinations(definition, lists)) zero(name, labels)
  }

  function register(name: string, { kind, help, ...definition }: Definition): Kept {
    const labelNames = labelsOf.get(name)?.map((label) => label.name) ?? []
    const common = { name: PREFIX + name, help, labelNames, registers: [registry] }
    if (kind === 'counter') return new Counter(common)
    if (kind === 'gauge') {
      const gauge = new Gauge(common)
      // The client library begins with a 0 where there are no labels.
      if (definition.onceKnown && labelNames.length === 0) gauge.remove()
      return gauge
    }
    return new Histogram({
      ...common,
      buckets: [...(definition.buckets ?? [])],
      enableExemplars: true,
    })
  }

  function zero(name: string, labels: Labels): void {
    const metric = kept.get(name)
    if (metric instanceof Histogram) metric.zero(labels)
    else (metric as Counter | Gauge).inc(labels, 0)
  }

  /** The same labels, with `other` for every value that its list does not have. */
  function closed(name: string, labels: Labels): Labels {
    const checked: Labels = {}
    for (const label of labelsOf.get(name) ?? []) {
      const value = labels[label.name] ?? 'other'
      checked[label.name] = value
      if (value === 'other' || isKnown(label.list, value, labels)) continue
      checked[label.name] = 'other'
      ;(kept.get('label_overflow_total') as Counter).inc({ label: overflowOf(label.list) })
    }
    return checked
  }

  function isKnown(list: string, value: string, { env = '' }: Labels): boolean {
    if (list === 'env') return lists.env.includes(value)
    if (list === 'backend') return lists.backend.includes(value)
    if (list === 'component') return lists.component[env]?.includes(value) ?? false
    if (list === 'version' || list === 'node') return true
    return list === 'tool' ? isTool(env, value) : (CLOSED[list]?.includes(value) ?? false)
  }

  /** A tool has its series from its first call, while there is room. */
  function isTool(env: string, value: string): boolean {
    const tool = `${env}/${value}`
    if (tools.has(tool)) return true
    if (tools.size >= MAX_TOOLS) return false
    tools.add(tool)
    for (const outcome of LABEL_LISTS.tool_outcome)
      zero('tool_calls_total', { env, tool: value, outcome })
    return true
  }

  return {
    inc: (name, labels, by = 1) => (kept.get(name) as Counter).inc(closed(name, labels), by),
    set: (name, labels, value) => (kept.get(name) as Gauge).set(closed(name, labels), value),
    observe(name, labels, value, episode) {
      const named = episode !== undefined && episode.length <= MAX_EPISODE_ID
      ;(kept.get(name) as Histogram).observe({
        labels: closed(name, labels),
        value,
        exemplarLabels: named ? { episode_id: episode } : {},
      })
    },
    beforeScrape: (read) => void readers.push(read),
    async samples(metrics) {
      for (const read of readers) read()
      const found = await Promise.all(
        [...metrics].map(async (name) => {
          const { values = [] } = (await registry.getSingleMetric(name)?.get()) ?? {}
          return (values as MetricValueWithName<string>[]).map((one) => ({
            name: one.metricName ?? name,
            labels: textLabels(one.labels),
            value: one.value,
          }))
        }),
      )
      return found.flat()
    },
    async text(form) {
      for (const read of readers) read()
      const text = await registry.metrics()
      return form === 'openmetrics'
        ? { contentType: Registry.OPENMETRICS_CONTENT_TYPE, text }
        : { contentType: Registry.PROMETHEUS_CONTENT_TYPE, text: plainText(text) }
    },
  }
}

/** As the text form has them: the bound of a bucket is a number in memory. */
function textLabels(labels: Partial<Record<string, string | number>>): Labels {
  return Object.fromEntries(Object.entries(labels).map(([name, value]) => [name, String(value)]))
}

/** Every combination of label values that is known at the start; of tools only `other` is. */
function combinations(definition: Definition, lists: OpenLists): Labels[] {
  return labelLists(definition).reduce<Labels[]>(
    (all, { name, list }) =>
      all.flatMap((labels) =>
        valuesOf(list, labels, lists).map((value) => ({ ...labels, [name]: value })),
      ),
    [{}],
  )
}

function valuesOf(list: string, labels: Labels, lists: OpenLists): readonly string[] {
  switch (list) {
    case 'env':
    case 'backend':
      return lists[list]
    case 'component':
      return lists.component[labels.env ?? ''] ?? []
    case 'tool':
      return ['other']
    case 'version':
    case 'node':
      return [lists[list]]
    default:
      return CLOSED[list] ?? []
  }
}

function overflowOf(list: string): string {
  return CLOSED.overflow_label?.includes(list) ? list : 'other'
}
