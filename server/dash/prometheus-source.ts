// The dashboard's queries put to the Prometheus that the settings name, and to no other host.
import { z } from 'zod'
import { type QuerySource, SourceUnavailable } from './query-source.ts'

const TIMEOUT_MS = 10_000

const answerSchema = z.object({
  data: z.object({
    result: z.array(
      z.object({
        metric: z.record(z.string(), z.string()),
        values: z.array(z.tuple([z.number(), z.string()])),
      }),
    ),
  }),
})

export function createPrometheusSource(url: string, interval: number): QuerySource {
  const base = url.replace(/\/$/, '')

  async function ask(query: string, start: number, end: number, step: number) {
    const parameters = new URLSearchParams({
      query,
      start: `${start}`,
      end: `${end}`,
      step: `${step}`,
    })
    const response = await fetch(`${base}/api/v1/query_range?${parameters}`, {
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    if (!response.ok) throw new Error(`status ${response.status}`)
    return answerSchema.parse(await response.json())
  }

  return {
    kind: 'prometheus',
    interval,
    seconds: null,
    async range(expr, grid) {
      const [start = 0] = grid
      const end = grid.at(-1) ?? start
      const step = grid.length > 1 ? (end - start) / (grid.length - 1) : interval
      const answer = await ask(expr, start, end, step).catch((cause) => {
        const why = cause instanceof Error ? cause.message : String(cause)
        const told = `The Prometheus of dashboard.prometheus does not answer: ${why}.`
        throw new SourceUnavailable(told, { cause })
      })
      return answer.data.result.map(({ metric: { __name__: _, ...labels }, values }) => {
        const row = new Float64Array(grid.length).fill(Number.NaN)
        for (const [at, value] of values) row[Math.round((at - start) / step)] = Number(value)
        return { labels, values: row }
      })
    },
    obstacle: () => null,
    remark: () => null,
  }
}
