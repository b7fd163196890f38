// PromQL over samples in memory, a whole grid of moments at once. No sample and NaN are one thing here: the dashboard guards its ratios.
import type { Aggregation, Expression, Matcher, Operator } from './promql.ts'
import { changesIn, extrapolated, quantileOf } from './promql-functions.ts'

export type Labels = Readonly<Record<string, string>>

/** One series with a value for each moment of the grid; NaN where there is none. */
export interface Row {
  labels: Labels
  values: Float64Array
}

/** A series as it was sampled: `times` in seconds, rising; NaN where it was not there. */
export interface SampledSeries {
  labels: Labels
  times: Float64Array
  values: Float64Array
}

export interface Samples {
  /** By the name of the series. */
  named(name: string): readonly SampledSeries[]
  /** What a recorded name stands for; null for a sampled one. */
  recorded(name: string): Expression | null
}

/** All series of one name with one buffer of values: it crosses to a thread in a piece. */
export interface SampledTable {
  labels: readonly Labels[]
  times: Float64Array
  /** Series after series, each as long as `times`. */
  values: Float64Array
}

/** Views of the table, which share its memory. */
export function seriesIn({ labels, times, values }: SampledTable): SampledSeries[] {
  return labels.map((own, place) => ({
    labels: own,
    times,
    values: values.subarray(place * times.length, (place + 1) * times.length),
  }))
}

/** A query with all that it reads, so that any thread can answer it. */
export interface Query {
  expression: Expression
  grid: readonly number[]
  tables: Readonly<Record<string, SampledTable>>
  recorded: Readonly<Record<string, Expression>>
}

/** As `evaluate`. */
export function evaluateQuery({ expression, grid, tables, recorded }: Query): Row[] {
  const series = new Map(Object.entries(tables).map(([name, one]) => [name, seriesIn(one)]))
  return evaluate(expression, grid, {
    named: (name) => series.get(name) ?? [],
    recorded: (name) => recorded[name] ?? null,
  })
}

/** A sample counts for this long, as in Prometheus. */
const LOOKBACK_S = 300

/** Throws an Error where two series meet that cannot be told apart. */
export function evaluate(expression: Expression, grid: readonly number[], samples: Samples): Row[] {
  const value = computed(expression)
  return typeof value === 'number' ? [{ labels: {}, values: filled(value) }] : value

  function computed(one: Expression): number | Row[] {
    switch (one.kind) {
      case 'number':
        return one.value
      case 'selector':
        return selected(one.name, one.matchers)
      case 'range':
        return matching(samples.named(one.name), one.matchers).map(({ labels, times, values }) => ({
          labels,
          values: Float64Array.from(grid, (at) =>
            one.call === 'changes'
              ? changesIn(times, values, at, one.seconds)
              : extrapolated(times, values, at, one.seconds, one.call === 'rate'),
          ),
        }))
      case 'call':
        return called(one)
      case 'aggregate': {
        const rows = rowsOf(one.of)
        return one.op === 'topk' ? topk(rows, one.parameter) : aggregated(one.op, one.by, rows)
      }
      case 'or':
        return either(rowsOf(one.left), rowsOf(one.right))
      case 'binary':
        return binary(one)
    }
  }

  function rowsOf(one: Expression): Row[] {
    const rows = computed(one)
    if (typeof rows === 'number') throw new Error(`PromQL: expected series, found ${rows}`)
    return rows
  }

  function numberOf(one: Expression | undefined): number {
    if (one?.kind !== 'number') throw new Error('PromQL: expected a number')
    return one.value
  }

  function selected(name: string, matchers: readonly Matcher[]): Row[] {
    const rule = samples.recorded(name)
    if (rule) return matching(rowsOf(rule), matchers)
    return matching(samples.named(name), matchers).map(({ labels, times, values }) => ({
      labels,
      values: Float64Array.from(grid, (at) => newest(times, values, at)),
    }))
  }

  function called(one: Extract<Expression, { kind: 'call' }>): Row[] {
    const [first, second] = one.arguments
    if (one.call === 'histogram_quantile') return quantiles(numberOf(first), rowsOf(second!))
    const rows = rowsOf(first!)
    const least = one.call === 'clamp_min' ? numberOf(second) : 0
    return mapped(rows, one.call === 'sqrt' ? Math.sqrt : (value) => Math.max(least, value))
  }

  function quantiles(q: number, rows: readonly Row[]): Row[] {
    return groupedBy(rows, ({ le: _, ...labels }) => labels).map(({ labels, members }) => {
      const buckets = members
        .map((row) => ({ le: Number(row.labels.le?.replace('+Inf', 'Infinity')), row }))
        .sort((a, b) => a.le - b.le)
      return {
        labels,
        values: Float64Array.from(grid, (_, at) =>
          quantileOf(
            q,
            buckets.map(({ le, row }) => ({ le, count: row.values[at] ?? Number.NaN })),
          ),
        ),
      }
    })
  }

  function aggregated(
    op: Exclude<Aggregation, 'topk'>,
    by: string[] | null,
    rows: readonly Row[],
  ): Row[] {
    return groupedBy(rows, (labels) => picked(labels, by ?? [])).map(({ labels, members }) => ({
      labels,
      values: Float64Array.from(grid, (_, at) => {
        const known = members
          .map(({ values }) => values[at]!)
          .filter((value) => !Number.isNaN(value))
        if (known.length === 0) return Number.NaN
        if (op === 'min' || op === 'max') return Math[op](...known)
        const sum = known.reduce((total, value) => total + value, 0)
        return op === 'avg' ? sum / known.length : sum
      }),
    }))
  }

  /** Of equal values the first ones: never more than k. */
  function topk(rows: readonly Row[], k: number): Row[] {
    const kept = rows.map(({ labels }) => ({ labels, values: filled(Number.NaN) }))
    for (const at of grid.keys()) {
      const known = [...rows.keys()].filter((place) => !Number.isNaN(rows[place]!.values[at]))
      known.sort((a, b) => rows[b]!.values[at]! - rows[a]!.values[at]!)
      for (const place of known.slice(0, k)) kept[place]!.values[at] = rows[place]!.values[at]!
    }
    return kept
  }

  function binary({ op, left, right, on, many }: Extract<Expression, { kind: 'binary' }>) {
    const a = computed(left)
    const b = computed(right)
    if (typeof a === 'number' && typeof b === 'number') return compute(op, a, b)
    if (typeof b === 'number') return mapped(a as Row[], (value) => compute(op, value, b))
    if (typeof a === 'number') return mapped(b, (value) => compute(op, a, value))
    const keyOf = (labels: Labels) => (on ? picked(labels, on) : labels)
    const others = new Map<string, Row>()
    for (const row of b) {
      const key = textOf(keyOf(row.labels))
      if (others.has(key)) throw new Error(`PromQL: two series of the right side match ${key}`)
      others.set(key, row)
    }
    return a.flatMap(({ labels, values }) => {
      const other = others.get(textOf(keyOf(labels)))
      if (!other) return []
      return {
        labels: many ? labels : keyOf(labels),
        values: values.map((value, at) => compute(op, value, other.values[at]!)),
      }
    })
  }

  function filled(value: number): Float64Array {
    return new Float64Array(grid.length).fill(value)
  }
}

function either(left: readonly Row[], right: readonly Row[]): Row[] {
  const others = new Map(right.map((row) => [textOf(row.labels), row]))
  const kept = left.map(({ labels, values }) => {
    const other = others.get(textOf(labels))
    others.delete(textOf(labels))
    return {
      labels,
      values: values.map((value, at) => (Number.isNaN(value) && other ? other.values[at]! : value)),
    }
  })
  return [...kept, ...others.values()]
}

function mapped(rows: readonly Row[], change: (value: number) => number): Row[] {
  return rows.map(({ labels, values }) => ({ labels, values: values.map(change) }))
}

/** A comparison keeps the left value where it holds. */
function compute(op: Operator, a: number, b: number): number {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.NaN
  switch (op) {
    case '+':
      return a + b
    case '-':
      return a - b
    case '*':
      return a * b
    case '/':
      return a / b
    case '^':
      return a ** b
    case '>':
      return a > b ? a : Number.NaN
    case '<':
      return a < b ? a : Number.NaN
  }
}

/** The newest sample at or before a moment, unless it is too old. */
function newest(times: Float64Array, values: Float64Array, at: number): number {
  for (let place = times.length - 1; place >= 0; place--) {
    if (times[place]! > at) continue
    if (times[place]! <= at - LOOKBACK_S) return Number.NaN
    if (!Number.isNaN(values[place])) return values[place]!
  }
  return Number.NaN
}

function matching<S extends { labels: Labels }>(
  series: readonly S[],
  matchers: readonly Matcher[],
): S[] {
  return series.filter(({ labels }) =>
    matchers.every(({ label, equal, pattern }) => pattern.test(labels[label] ?? '') === equal),
  )
}

function picked(labels: Labels, names: readonly string[]): Labels {
  return Object.fromEntries(
    names.flatMap((name) => (labels[name] === undefined ? [] : [[name, labels[name]]])),
  )
}

function groupedBy(rows: readonly Row[], key: (labels: Labels) => Labels) {
  const groups = new Map<string, { labels: Labels; members: Row[] }>()
  for (const row of rows) {
    const labels = key(row.labels)
    const text = textOf(labels)
    const group = groups.get(text)
    if (group) group.members.push(row)
    else groups.set(text, { labels, members: [row] })
  }
  return [...groups.values()]
}

function textOf(labels: Labels): string {
  return JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)))
}
