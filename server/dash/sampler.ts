// Where the dashboard's data come from: the named Prometheus, else a timer that reads our own series into memory.
import type { Config } from '../config.ts'
import { type Board, boardQueries, createBoard } from './board.ts'
import type { Query, Row } from './evaluate.ts'
import { createMemorySource } from './memory-source.ts'
import { createPrometheusSource } from './prometheus-source.ts'
import type { Sample } from './ring.ts'

export interface SampledBoard extends Board {
  close(): void
}

/** `read` gives the present samples of the metrics of these names; `compute` evaluates a query over them, elsewhere. */
export function openBoard(
  { prometheus, interval_s }: Config['dashboard'],
  read: (metrics: ReadonlySet<string>) => Promise<Sample[]>,
  compute: (query: Query) => Promise<Row[]>,
  onError: (error: unknown) => void,
): SampledBoard {
  const now = () => Date.now() / 1000
  if (prometheus !== undefined)
    return { ...createBoard(createPrometheusSource(prometheus, interval_s), now), close() {} }
  const source = createMemorySource(boardQueries(), interval_s, compute)
  let reading = Promise.resolve()
  const sample = () => {
    reading = reading.then(async () => source.add(now(), await read(source.metrics))).catch(onError)
  }
  sample()
  const timer = setInterval(sample, source.interval * 1000)
  timer.unref()
  return { ...createBoard(source, now), close: () => clearInterval(timer) }
}
