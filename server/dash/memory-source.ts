// The dashboard's queries over samples in memory: taken from the same series that a scrape reads.
import { recordingRules, WINDOWS } from '../grafana/rules.ts'
import type { QuerySource } from './board.ts'
import { evaluate } from './evaluate.ts'
import { type Expression, parsePromql, seriesOf } from './promql.ts'
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

/** `exprs`: every query that will come, from which follows what is kept. `interval`: seconds between two samples. */
export function createMemorySource(exprs: readonly string[], interval: number): MemorySource {
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
    return seriesOf(expression).flatMap((name) => {
      const rule = rules.get(name)
      return rule ? sampledSeries(rule) : [name]
    })
  }

  return {
    kind: 'memory',
    interval,
    seconds: MOMENTS * interval,
    metrics,
    add: ring.add,
    async range(expr, grid) {
      return evaluate(parsePromql(expr), grid, {
        named: ring.named,
        recorded: (name) => rules.get(name) ?? null,
      })
    },
    obstacle(expr) {
      const foreign = sampledSeries(parsePromql(expr)).find((name) => !isOurs(name))
      if (foreign === undefined) return null
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
