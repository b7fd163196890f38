// Who may ask: the Host and Origin of a request, and its bearer token. The same rules for HTTP and for upgrades.
import { createHash, timingSafeEqual } from 'node:crypto'
import { PaddockError } from '../protocol/errors.ts'
import { type Config, isLoopback } from './config.ts'
import { httpError } from './problems.ts'
import type { Role } from './settings.ts'
import { createTokenLimits, type Peer } from './token-limits.ts'

export interface Access {
  /** Throws 403 where the Host is none of ours or a foreign web page asks. */
  checkPeer(host: string, origin: string | undefined): void
  /**
   * The rights of whoever sent this Authorization header. Throws `unauthorized`, and `too_many_requests` beyond what the
   * peer's address and the token may take; without a peer, as in tests, neither is limited.
   */
  identify(authorization: string | undefined, peer?: Peer): readonly Role[]
}

/** Without tokens (loopback only) everyone has every right. */
export function createAccess({ server, limits }: Config): Access {
  const known = server.tokens.map(({ token, roles }) => ({ digest: sha256(token), roles }))
  // A page that rebinds its DNS name to 127.0.0.1 has a foreign Host; where a token is asked for it has none to send.
  const anyHost = !isLoopback(server.host) && server.allowed_hosts.length === 0
  const hosts = new Set(server.allowed_hosts.map((host) => host.toLowerCase()))
  const origins = new Set(server.allowed_origins)
  const limited = createTokenLimits(limits.max_connections_per_token)

  return {
    checkPeer(host, origin) {
      const name = hostname(host)
      if (!anyHost && !isLoopback(name) && !hosts.has(name))
        throw httpError(
          403,
          `Host ${JSON.stringify(host)}: expected localhost or a name of server.allowed_hosts; add it there if it is yours`,
        )
      if (origin === undefined || origins.has(origin) || isSameOrigin(origin, host)) return
      throw httpError(
        403,
        `Origin ${JSON.stringify(origin)}: web pages of other origins may not call; add it to server.allowed_origins if it is yours`,
      )
    },

    identify(authorization, peer) {
      if (known.length === 0) return ['admin']
      const token = tokenOf(authorization ?? '')
      if (token === undefined)
        throw new PaddockError('unauthorized', 'expected "Authorization: Bearer <token>"')
      // Digests have one length, and all of them are compared: the time tells nothing of any token.
      const digest = sha256(token)
      const matches = known.flatMap((entry, index) =>
        timingSafeEqual(entry.digest, digest) ? [{ index, roles: entry.roles }] : [],
      )
      const [first] = matches
      if (peer) limited.guess(peer.remoteAddress ?? '', first?.index ?? null)
      if (!first)
        throw new PaddockError('unauthorized', 'the bearer token is none that this server knows')
      if (peer) limited.hold(peer, first.index)
      return matches.flatMap((entry) => entry.roles)
    },
  }
}

/** The bearer token; or the password of Basic, which clients send that know an address and nothing else (`http://:token@host`). */
function tokenOf(authorization: string): string | undefined {
  const [, scheme, value = ''] = /^(bearer|basic) +(\S+)$/i.exec(authorization) ?? []
  if (scheme?.toLowerCase() !== 'basic') return scheme && value
  const pair = Buffer.from(value, 'base64').toString()
  return pair.slice(pair.indexOf(':') + 1) || undefined
}

/** Throws 403 where none of `roles` is among `granted`. */
export function requireRole(granted: readonly Role[], roles: readonly Role[]): void {
  if (granted.includes('admin') || roles.some((role) => granted.includes(role))) return
  throw httpError(
    403,
    `this token may ${granted.join(', ')}: expected one with the role ${roles.join(' or ')}`,
  )
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** `[::1]:8420` is `::1`, `LocalHost:1` is `localhost`. */
function hostname(host: string): string {
  const bracketed = /^\[([^\]]*)\]/.exec(host)?.[1]
  return (bracketed ?? host.replace(/:\d*$/, '')).toLowerCase()
}

function isSameOrigin(origin: string, host: string): boolean {
  return URL.canParse(origin) && new URL(origin).host === host.toLowerCase()
}
