// What one address and one token may take: wrong tokens by the minute, and open connections.
import { PaddockError } from '../protocol/errors.ts'

/** The connection that a request came by: a socket. */
export interface Peer {
  remoteAddress?: string | undefined
  once(event: 'close', listener: () => void): unknown
}

export interface TokenLimits {
  /**
   * Throws PaddockError `too_many_requests` for an address that has shown too many wrong tokens, whether this one is right
   * or not: a guess tells nothing. Tokens that the address has shown before pass, as a neighbour's mistake is not theirs.
   */
  guess(address: string, token: number | null): void
  /** Counts the connection as the token's until it closes. Throws `too_many_requests` where it has as many as it may. */
  hold(peer: Peer, token: number): void
}

interface Address {
  /** Wrong tokens that are not forgotten yet, at `since`. */
  wrong: number
  since: number
  /** Tokens that were right here. */
  known: Set<number>
}

/** Wrong tokens that an address may show at once, and how many of them are forgotten in a second. */
const MAX_WRONG = 20
const FORGOTTEN_A_SECOND = 1 / 3
/** Addresses that are remembered; the one that was heard of least lately goes first. */
const MAX_ADDRESSES = 10_000

/** `now` gives monotonic milliseconds. */
export function createTokenLimits(
  maxConnections: number,
  now = () => performance.now(),
): TokenLimits {
  const addresses = new Map<string, Address>()
  const connections = new Map<number, Set<Peer>>()

  function recall(address: string): Address {
    const at = now()
    const known = addresses.get(address) ?? { wrong: 0, since: at, known: new Set<number>() }
    known.wrong = Math.max(0, known.wrong - ((at - known.since) / 1000) * FORGOTTEN_A_SECOND)
    known.since = at
    addresses.delete(address)
    addresses.set(address, known)
    const [oldest] = addresses.keys()
    if (addresses.size > MAX_ADDRESSES && oldest !== undefined) addresses.delete(oldest)
    return known
  }

  return {
    guess(address, token) {
      const from = recall(address)
      if (token !== null && from.known.has(token)) return
      // Until one is forgotten whole.
      if (from.wrong > MAX_WRONG - 1)
        throw new PaddockError(
          'too_many_requests',
          `${MAX_WRONG} wrong tokens came from this address: mend the client that sends them, and try again later`,
        )
      if (token === null) from.wrong++
      else from.known.add(token)
    },
    hold(peer, token) {
      const held = connections.get(token) ?? new Set<Peer>()
      connections.set(token, held)
      if (held.has(peer)) return
      if (held.size >= maxConnections)
        throw new PaddockError(
          'too_many_requests',
          `this token has ${held.size} connections open, which is the limit (limits.max_connections_per_token); close some`,
        )
      held.add(peer)
      peer.once('close', () => held.delete(peer))
    },
  }
}
