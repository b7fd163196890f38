// The endpoints of one backend: which one a request goes to, and what is known of each.
import { Pool as HttpPool } from 'undici'
import { MAX_REPLY_BYTES } from '../../../protocol/limits.ts'
import { admits, type Breaker, closedBreaker } from './breaker.ts'

export interface Endpoint {
  pool: HttpPool
  /** Paths of requests are added to it. */
  base: string
  inFlight: number
  /** Requests so far. */
  sent: number
  breaker: Breaker
  /** When a reply of it could not be used last, milliseconds: for a while it is asked only where no other is. */
  blamedAt: number
  /** Whether its last reply was of weights that may be trained on now; null where none came, or nothing was announced. */
  current: boolean | null
}

/** Where an attempt's requests go: they stay with the endpoint that has its prefix cached. */
export interface Seat {
  endpoint: Endpoint | null
}

/** Sockets to one endpoint: enough for every episode in flight to have its own. */
const CONNECTIONS = 1024
/** A host that does not even answer a connection is left for the next one, where there is one. */
const CONNECT_MS = 5000
const BLAMED_MS = 60_000

export function openEndpoints(urls: readonly string[]): Endpoint[] {
  return urls.map((url) => {
    const { origin, pathname } = new URL(url)
    const pool = new HttpPool(origin, {
      connections: CONNECTIONS,
      // The turn's own deadline is the only one: undici's 300 s would cut long answers.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: { timeout: urls.length > 1 ? CONNECT_MS : 0 },
      maxResponseSize: MAX_REPLY_BYTES,
    })
    const base = pathname.replace(/\/(v1\/?)?$/, '')
    return {
      pool,
      base,
      inFlight: 0,
      sent: 0,
      breaker: closedBreaker,
      blamedAt: Number.NEGATIVE_INFINITY,
      current: null,
    }
  })
}

/**
 * The endpoint of the next try, null where none may be asked now. One that waits for its probe comes first, then the
 * attempt's own, then the least loaded; `avoid` and those whose replies were unusable only where there is no other.
 */
export function chooseEndpoint<
  E extends Pick<Endpoint, 'inFlight' | 'sent' | 'breaker' | 'blamedAt'>,
>(
  endpoints: readonly E[],
  { own, avoid }: { own: E | null; avoid: E | null },
  at: number,
): E | null {
  const probed = endpoints.find((one) => admits(one.breaker, at) === 'probe')
  if (probed && avoid === null) return probed
  const open = endpoints.filter((one) => admits(one.breaker, at) === 'yes')
  if (own && own !== avoid && open.includes(own)) return own
  const rank = (one: E) =>
    Number(one === avoid) * 2 + Number(at - one.blamedAt < BLAMED_MS || one.breaker.failures > 0)
  const best = (a: E, b: E) => {
    const by = rank(a) - rank(b) || a.inFlight - b.inFlight || a.sent - b.sent
    return by <= 0 ? a : b
  }
  return open.length > 0 ? open.reduce(best) : (probed ?? null)
}

/** When one of them may be asked again; null where that depends on a probe that is out. */
export function opensAt(endpoints: readonly Pick<Endpoint, 'breaker'>[]): number | null {
  const times = endpoints.flatMap(({ breaker }) =>
    breaker.phase === 'open' ? [breaker.openUntil] : [],
  )
  return times.length > 0 ? Math.min(...times) : null
}
