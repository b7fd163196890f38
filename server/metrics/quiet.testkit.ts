// What metrics read of a server in which nothing happens, for tests of what they hear.
import type { MetricsSources } from './metrics.ts'

export const QUIET: MetricsSources = {
  pool: () => ({
    ...{ threads: 1, busy: 0, starting: 0, queued: 0, oldestQueued: 0 },
    busySeconds: [0],
  }),
  queueDepth: () => ({ episodes: 0, ready: 0, leased: 0 }),
  queueCapacity: { batches: 1, ready: 1 },
  batches: () => ({ playing: 0, oldest: 0, heldBytes: 0, paused: new Set<never>() }),
  oldest: () => ({ episode: 0, ready: 0 }),
  backendInFlight: () => 0,
  socketBytes: () => 0,
  store: () => null,
}
