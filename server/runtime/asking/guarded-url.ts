// POSTs to URLs that came from outside (callbacks, reward models): only where the allow-list says, pinned, bounded.
import { lookup as resolve } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { Agent, type Dispatcher } from 'undici'
import type { HttpReply } from '../../../rollout/request.ts'
import { post } from '../policy/http-post.ts'
import { openPatience } from '../threads/patience.ts'
import { createReach, hostOf, portOf } from './reach.ts'

interface GuardedPost {
  headers: Record<string, string>
  body: Uint8Array
  /** For everything: name, connection, request, and the last byte of the reply. */
  timeoutMs: number
  signal?: AbortSignal
}

export interface GuardedHttp {
  /** Throws PaddockError `invalid_request` with `path` for a URL that may not be called. */
  check(url: string, path: string): void
  /**
   * Rejects as `check` does, with undici's error, or where the time is over. Redirects are not followed: a 3xx is a
   * reply like any other. The name is resolved once for each connection, its addresses are checked, and one of those
   * is connected to, so that a name that changes its mind gains nothing.
   */
  post(url: string, request: GuardedPost): Promise<HttpReply>
  close(): Promise<void>
}

interface GuardedHttpOptions {
  /** The forms of createReach. */
  allow: readonly string[]
  /** Where the list stands, for sentences: `callbacks.allow`. */
  setting: string
  /** A longer reply is an error. */
  maxReplyBytes: number
  /** For tests: the system's resolver by default. */
  lookup?: LookupFunction
}

export function createGuardedHttp(options: GuardedHttpOptions): GuardedHttp {
  const { allow, setting, maxReplyBytes, lookup = resolve as LookupFunction } = options
  const reach = createReach(allow, setting)
  const agents = new Map<number, Agent>()

  /** One for each port: the lookup is told the name alone. */
  const agentFor = (port: number): Agent => {
    const known = agents.get(port)
    if (known) return known
    const agent = new Agent({
      connect: { lookup: checkedLookup((address) => reach.mayConnect(address, port), lookup) },
      maxResponseSize: maxReplyBytes,
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    agents.set(port, agent)
    return agent
  }

  return {
    check(url, path) {
      reach.check(url, path)
    },
    async post(url, { headers, body, timeoutMs, signal }) {
      const target = reach.check(url, '')
      // Certificates are made out to a name without the dot at its end.
      if (isIP(hostOf(target)) === 0) target.hostname = hostOf(target)
      const agent = agentFor(portOf(target))
      const dispatcher = {
        dispatch: (request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler) =>
          agent.dispatch({ ...request, origin: target.origin }, handler),
      } as Dispatcher
      const patience = openPatience(performance.now() + timeoutMs, signal ?? null)
      try {
        return await post(dispatcher, target.pathname + target.search, headers, body, patience)
      } finally {
        patience.close()
      }
    },
    async close() {
      await Promise.all([...agents.values()].map((agent) => agent.destroy()))
    },
  }
}

/** The resolver with every address left out that may not be connected to. */
function checkedLookup(
  mayConnect: (address: string) => boolean,
  lookup: LookupFunction,
): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, '')
      const addresses =
        typeof found === 'string' ? [{ address: found, family: isIP(found) }] : found
      const allowed = addresses.filter(({ address }) => mayConnect(address))
      const [first] = allowed
      if (!first) return callback(refusal(hostname, addresses), '')
      if (options.all) return callback(null, allowed)
      callback(null, first.address, first.family)
    })
  }
}

function refusal(hostname: string, addresses: readonly { address: string }[]): Error {
  const found = addresses.map(({ address }) => address).join(', ') || 'no address'
  return Object.assign(
    new Error(`${hostname} is ${found}, which is private and not listed as reachable`),
    { code: 'EBLOCKED' },
  )
}
