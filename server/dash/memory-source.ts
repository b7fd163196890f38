// The dashboard's queries over samples in memory: taken from the same series that a scrape reads.
import { recordingRules, WINDOWS } from '../grafana/rules.ts'
import { evaluateQuery, type Query, type Row } from './evaluate.ts'
import { type Expression, parsePromql, seriesOf } from './promql.ts'
import type { QuerySource } from './query-source.ts'
import { createRing, type Sample } from './ring.ts'

/** One hour, a sample each ten seconds. */
const MOMENTS = 360
/** 2,880 bytes each: at most 17 MB. */
const MAX_SERIES = 6000

export interface MemorySource extends QuerySource {
  /** Metrics that are asked for, as they are registered: without _bucket, _sum and _count. */
  metrics: ReadonlySet<string>
  add(at: number, samples: readonly Sample[]): void
}

/**
 * `exprs`: every query that will come, from which follows what is kept. `interval`: seconds between two samples.
 * `compute` evaluates a query with all that it needs: in a thread, where the present one has to stay free.
 */
export function createMemorySource(
  exprs: readonly string[],
  interval: number,
  compute: (query: Query) => Promise<Row[]> = async (query) => evaluateQuery(query),
): MemorySource {
  const ring = createRing(MOMENTS, MAX_SERIES)
  const rules = new Map<string, Expression>(
    recordingRules(WINDOWS).map(({ record, expr }) => [record, parsePromql(expr)]),
  )
  const metrics = new Set(
    exprs
      .flatMap((expr) => sampledSeries(parsePromql(expr)))
      .filter(isOurs)
      .flatMap((name) => [name, name.replace(/_(bucket|sum|count)$/, '')]),
  )

  /** What it reads at last, through recorded names. */
  function sampledSeries(expression: Expression): string[] {
    return namesOf(expression).filter((name) => !rules.has(name))
  }

  /** All names in it, and in what those stand for. */
  function namesOf(expression: Expression): string[] {
    return seriesOf(expression).flatMap((name) => {
      const rule = rules.get(name)
      return rule ? [name, ...namesOf(rule)] : [name]
    })
  }

  return {
    kind: 'memory',
    interval,
    seconds: MOMENTS * interval,
    metrics,
    add: ring.add,
    async range(expr, grid) {
      const expression = parsePromql(expr)
      const names = [...new Set(namesOf(expression))]
      return compute({
        expression,
        grid,
        tables: Object.fromEntries(
          names.filter((name) => !rules.has(name)).map((name) => [name, ring.table(name)]),
        ),
        recorded: Object.fromEntries(
          names.flatMap((name) => {
            const rule = rules.get(name)
            return rule ? [[name, rule]] : []
          }),
        ),
      })
    },
    obstacle(expr) {
      const foreign = sampledSeries(parsePromql(expr)).find((name) => !isOurs(name))
      if (foreign === undefined) return null
      if (foreign === 'ALERTS')
        return 'Alerts are evaluated by Prometheus: without one there are none to show.'
      return `${foreign} is not kept in memory: each reading starts it anew, and a scraper's would be wrong.`
    },
    remark: () =>
      ring.left() === 0
        ? null
        : `${ring.left()} series found no room in memory and are left out: name a Prometheus under dashboard.prometheus.`,
  }
}

/** Node's own series are begun anew by each reader. */
function isOurs(name: string): boolean {
  return name.startsWith('paddock_')
}
