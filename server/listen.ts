// The socket: opens the port with its time limits, and closes it without cutting an answer off.
import { once } from 'node:events'
import type { IncomingMessage, Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { createAdaptorServer, type HttpBindings } from '@hono/node-server'
import { PaddockError } from '../protocol/errors.ts'

export interface ListenOptions {
  /** `env` has the socket's own request and answer (`incoming`, `outgoing`). */
  fetch(request: Request, env: HttpBindings): Response | Promise<Response>
  host: string
  /** 0 takes a free one; `url` says which. */
  port: number
  maxConnections: number
  /** Owns every request with an Upgrade header. Without it they are answered as if they had none. */
  upgrade?(request: IncomingMessage, socket: Duplex, head: Buffer): void
}

export interface Listener {
  /** `http://127.0.0.1:8420`, with the port that was taken. */
  url: string
  /**
   * Takes no new connection, lets answers under way finish for `graceMs`, then cuts what is left.
   * Streams without end are for their owners to end first.
   */
  close(graceMs: number): Promise<void>
}

const TIME_LIMITS = {
  // Against senders that drip: Node's own defaults are 60 s, 300 s and a look every 30 s.
  headersTimeout: 10_000,
  requestTimeout: 60_000,
  connectionsCheckingInterval: 1_000,
  // Node's 5 s are those of many a client: one that sends just then finds its connection closed, and no POST is sent again.
  keepAliveTimeout: 75_000,
}

// A connection whose last answer is out stays open for keepAliveTimeout unless swept.
const SWEEP_MS = 50

/** Throws PaddockError `invalid_config` naming address and port where the port cannot be had. */
export async function listen(options: ListenOptions): Promise<Listener> {
  const { host, port, maxConnections, upgrade } = options
  const server = createAdaptorServer({
    fetch: (request, env) => options.fetch(request, env as HttpBindings),
    serverOptions: TIME_LIMITS,
  }) as Server
  server.maxConnections = maxConnections
  if (upgrade) server.on('upgrade', upgrade)
  server.listen(port, host)
  try {
    await once(server, 'listening')
  } catch (error) {
    throw portRefused(error as NodeJS.ErrnoException, host, port)
  }
  return { url: urlOf(server.address() as AddressInfo), close: (graceMs) => close(server, graceMs) }
}

async function close(server: Server, graceMs: number): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS)
  const cut = setTimeout(() => server.closeAllConnections(), graceMs)
  await closed
  clearInterval(sweep)
  clearTimeout(cut)
}

function urlOf({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

const REASONS: Partial<Record<string, string>> = {
  EADDRINUSE: 'another process has it; stop that one, or choose another port (0 takes a free one)',
  EACCES: 'this user may not take it; choose a port above 1023',
  EADDRNOTAVAIL: 'this machine has no such address; choose one of its own',
  ENOTFOUND: 'no address is known by that name',
}

function portRefused(error: NodeJS.ErrnoException, host: string, port: number): PaddockError {
  const reason = REASONS[error.code ?? ''] ?? error.message
  return new PaddockError(
    'invalid_config',
    `cannot listen on ${host} port ${port} (${error.code}): ${reason}`,
    { path: 'server.port', cause: error },
  )
}
