// Where requests to a backend can go: the endpoints of the settings, or the engine that a batch brought.
import type { PolicyRequest } from '../../../rollout/request.ts'
import type { Backend } from '../../config.ts'
import { type Endpoint, openEndpoints } from './endpoints.ts'
import type { RetryBudget } from './retry-budget.ts'
import type { PaceLimits } from './stopwatch.ts'

/** Endpoints that serve one model and share a retry budget. */
export interface Target {
  name: string
  backend: Backend
  endpoints: Endpoint[]
  headers: Record<string, string>
  /** Null where replies come whole. */
  paceLimits: PaceLimits | null
  budget: RetryBudget
  /** Ends the wait of every request that no endpoint may be asked for. */
  waiting: Set<() => void>
  /** Why an endpoint failed last. */
  lastFailure: string
}

export interface Targets {
  /** Undefined for a name that is not configured. */
  of(request: Pick<PolicyRequest, 'backend' | 'url'>): Target | undefined
  close(): Promise<void>
}

/** Engines of batches whose connections are kept: a run has one, a restarted one another. */
const MAX_FOREIGN_ENGINES = 16

export function createTargets(backends: Record<string, Backend>): Targets {
  const own = new Map(Object.entries(backends).map(([name, one]) => [name, targetOf(name, one)]))
  /** Engines that batches brought, the one asked last at the end. */
  const foreign = new Map<string, Target>()
  return {
    of({ backend, url }) {
      const target = own.get(backend)
      if (url === undefined || target === undefined) return target
      const key = `${backend} ${url}`
      const engine = foreign.get(key) ?? targetOf(backend, engineOf(target.backend, url))
      foreign.delete(key)
      foreign.set(key, engine)
      for (const [oldest, { endpoints }] of foreign) {
        if (foreign.size <= MAX_FOREIGN_ENGINES) break
        foreign.delete(oldest)
        // Requests under way are finished first.
        for (const { pool } of endpoints) void pool.close()
      }
      return engine
    },
    async close() {
      const endpoints = [...own.values(), ...foreign.values()].flatMap((one) => one.endpoints)
      await Promise.all(endpoints.map(({ pool }) => pool.destroy()))
    },
  }
}

/** The backend at another address, which never sees the backend's key. */
function engineOf(backend: Backend, url: string): Backend {
  const { api_key, ...known } = backend
  const { origin } = new URL(url)
  const trusted = backend.urls.some((one) => new URL(one).origin === origin)
  return { ...known, urls: [url], ...(trusted && api_key !== undefined && { api_key }) }
}

function targetOf(name: string, backend: Backend): Target {
  const { api_key, stream, first_token_timeout_s: first, token_gap_timeout_s: gap } = backend
  const ms = (seconds: number | undefined) => (seconds ?? Number.POSITIVE_INFINITY) * 1000
  return {
    name,
    backend,
    endpoints: openEndpoints(backend.urls),
    headers: api_key === undefined ? {} : { authorization: `Bearer ${api_key}` },
    paceLimits: stream ? { firstTokenMs: ms(first), gapMs: ms(gap) } : null,
    budget: [],
    waiting: new Set(),
    lastFailure: '',
  }
}
