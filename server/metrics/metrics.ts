// The server's own figures for Prometheus: counted where things end, in the main thread, with closed labels only.
import { performance } from 'node:perf_hooks'
import type { PoolStats } from '../runtime/threads/pool.ts'
import type { OnSilence } from './backend-health.ts'
import { LABEL_LISTS, type LabelValue } from './labels.ts'
import { createLearningEvents, type LearningEvents } from './learning-events.ts'
import { createSeries, type OpenLists, type Series } from './series.ts'
import { createServingEvents, type ServingEvents } from './serving-events.ts'

/** One method for each thing that happens; docs/metrics.md lists the series behind them. */
export interface Metrics extends LearningEvents, ServingEvents {
  text(form: 'plain' | 'openmetrics'): Promise<{ contentType: string; text: string }>
  samples: Series['samples']
}

/** What is read at the moment of a scrape. */
export interface MetricsSources {
  pool(): PoolStats
  queueDepth(): { episodes: number; ready: number; leased: number }
  queueCapacity: { batches: number; ready: number }
  batches(): {
    /** Not played to their end; those that are only to be read wait in `ready`. */
    playing: number
    /** Seconds since the oldest of those was submitted, 0 where none is. */
    oldest: number
    heldBytes: number
    paused: ReadonlySet<LabelValue<'pause_reason'>>
  }
  /** Seconds that the oldest has waited, 0 where none does: a start for its slot, a group for its first lease. */
  oldest(): { episode: number; ready: number }
  backendInFlight(backend: string): number
  socketBytes(): number
  /** Null where the ledger keeps nothing on disk. */
  store(): { bytes: number; freeBytes: number } | null
}

/** `now` gives monotonic milliseconds; `onSilence` hears of backends that give no tokens. */
export function createMetrics(
  lists: OpenLists,
  sources: MetricsSources,
  now = () => performance.now(),
  onSilence: OnSilence = () => {},
): Metrics {
  const series = createSeries(lists)
  const { version, node } = lists
  series.set('build_info', { version, node }, 1)
  readLevels(series, lists, sources)
  return {
    ...createLearningEvents(series, lists.component),
    ...createServingEvents(series, lists.backend, now, onSilence),
    text: series.text,
    samples: series.samples,
  }
}

function readLevels(series: Series, lists: OpenLists, sources: MetricsSources): void {
  let busySeconds = 0
  let loop = performance.eventLoopUtilization()
  series.beforeScrape(() => {
    const { threads, busy, starting, queued, oldestQueued, busySeconds: spent } = sources.pool()
    const states = { busy, starting, idle: threads - busy - starting }
    for (const state of ['busy', 'starting', 'idle'] as const)
      series.set('pool_threads', { pool: 'turn', state }, states[state])
    const total = spent.reduce((sum, seconds) => sum + seconds, 0)
    series.inc('pool_busy_seconds_total', { pool: 'turn' }, Math.max(0, total - busySeconds))
    busySeconds = total

    const { episodes, ready, leased } = sources.queueDepth()
    const { queueCapacity } = sources
    const batches = sources.batches()
    series.set('queue_depth', { queue: 'submit' }, batches.playing)
    series.set('queue_depth', { queue: 'episode' }, episodes)
    series.set('queue_depth', { queue: 'turn' }, queued)
    series.set('queue_depth', { queue: 'ready' }, ready)
    series.set('queue_capacity', { queue: 'submit' }, queueCapacity.batches)
    series.set('queue_capacity', { queue: 'ready' }, queueCapacity.ready)
    series.set('queue_bytes', { queue: 'ready' }, batches.heldBytes)
    const ages = { submit: batches.oldest, turn: oldestQueued, ...sources.oldest() }
    for (const queue of LABEL_LISTS.queue)
      series.set('queue_oldest_age_seconds', { queue }, ages[queue])
    series.set('leases_active', {}, leased)
    for (const reason of LABEL_LISTS.pause_reason)
      series.set('admission_paused', { reason }, batches.paused.has(reason) ? 1 : 0)

    for (const backend of lists.backend)
      series.set('backend_in_flight', { backend }, sources.backendInFlight(backend))
    series.set('ws_buffered_bytes', {}, sources.socketBytes())
    const store = sources.store()
    series.set('store_bytes', { kind: 'db' }, store?.bytes ?? 0)
    if (store) series.set('store_free_bytes', {}, store.freeBytes)

    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, loop)
    series.set('eventloop_utilization_ratio', {}, Number.isFinite(utilization) ? utilization : 0)
    loop = now
  })
}
