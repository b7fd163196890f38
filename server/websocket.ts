// WebSocket /v1/stream: who may connect, how a connection lives, and how it ends. What is said on it: stream-session.ts.
import { type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { PaddockError, type Problem } from '../protocol/errors.ts'
import { type Access, createAccess, requireRole } from './access.ts'
import type { Config } from './config.ts'
import { createOutbox, type Outbox } from './outbox.ts'
import { httpError, problemOf, RETRY_AFTER_S } from './problems.ts'
import type { Service } from './service.ts'
import type { Role } from './settings.ts'
import { createStreamSession } from './stream-session.ts'

export interface StreamServer {
  /** Bytes written to open connections and not sent yet. */
  bufferedBytes(): number
  /** For the HTTP server's `upgrade` event, whose only listener it must be. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Closes every connection with 1001, and resolves when all are gone. */
  close(): Promise<void>
}

export interface StreamServerOptions {
  /** Shared with HTTP, whose tokens count as ours do. */
  access?: Access
  onFault?(error: unknown): void
  onOpen?(): void
  onClose?(code: number): void
  /** Ping each peer so often, and give it up when it has not answered by the next. */
  pingMs?: number
  /** How long a peer that more than 1 MB waits for may take nothing. */
  stallMs?: number
}

const PATH = '/v1/stream'
/** Acks of 1,024 groups have room in it many times over. */
const MAX_MESSAGE_BYTES = 1024 * 1024
/** A peer's socket is not read while so many of its messages wait. */
const MAX_WAITING = 16
const STALL_MS = 30_000
/** How long a peer may take to answer a close frame. */
const CLOSE_TIMEOUT_MS = 5_000

export function createStreamServer(
  service: Service,
  config: Config,
  options: StreamServerOptions = {},
): StreamServer {
  const { onFault, onOpen, onClose, stallMs = STALL_MS } = options
  const pingMs = options.pingMs ?? 1000 * config.server.heartbeat_s
  const access = options.access ?? createAccess(config)
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_MESSAGE_BYTES,
    perMessageDeflate: false,
    // Missing in @types/ws 8.18.
    ...{ closeTimeout: CLOSE_TIMEOUT_MS },
  })
  /** How each open connection is ended. */
  const closers = new Set<(code: number, reason: string) => void>()
  let closing = false

  function admit({ headers, socket, url = '' }: IncomingMessage): readonly Role[] {
    if (headers.upgrade?.toLowerCase() !== 'websocket')
      throw httpError(426, `Upgrade: expected websocket, found ${headers.upgrade}`)
    const path = url.split('?', 1)[0]
    if (path !== PATH)
      throw new PaddockError('not_found', `${path}: WebSockets are served at ${PATH} only`)
    access.checkPeer(headers.host ?? '', headers.origin)
    const roles = access.identify(headers.authorization, socket)
    requireRole(roles, ['submit', 'lease'])
    if (closing) throw new PaddockError('draining', 'the server is stopping: connect again later')
    return roles
  }

  function open(socket: WebSocket, roles: readonly Role[]): void {
    onOpen?.()
    // Ended before its close frame is out: nothing may be leased for a peer that will not get it.
    const close = (code: number, reason: string) => {
      session.end()
      socket.close(code, reason)
    }
    const outbox = createOutbox(socket, stallMs, () => close(1013, 'the peer does not read'))
    const session = createStreamSession({ service, roles, outbox, onFault, close })
    const stopPinging = keepAlive(socket, outbox, pingMs)
    closers.add(close)
    let waiting = 0
    socket.on('message', async (data: Buffer, isBinary) => {
      if (isBinary) return close(1003, 'expected JSON text')
      if (++waiting >= MAX_WAITING) socket.pause()
      await session.receive(data)
      if (--waiting < MAX_WAITING && socket.isPaused) socket.resume()
    })
    // ws closes a connection with an error by itself, with the code that says which.
    socket.on('error', () => {})
    socket.on('close', (code: number) => {
      onClose?.(code)
      closers.delete(close)
      stopPinging()
      session.end()
    })
  }

  return {
    bufferedBytes: () => [...sockets.clients].reduce((sum, one) => sum + one.bufferedAmount, 0),
    upgrade(request, socket, head) {
      socket.on('error', () => socket.destroy())
      try {
        const roles = admit(request)
        sockets.handleUpgrade(request, socket, head, (peer) => open(peer, roles))
      } catch (error) {
        refuse(socket, problemOf(error))
      }
    },
    close() {
      closing = true
      for (const end of closers) end(1001, 'the server is stopping')
      return new Promise((resolve) => sockets.close(() => resolve()))
    },
  }
}

/** Finds peers that are gone without a word. Each connection has its own beat, so that no sweep holds up the thread. */
function keepAlive(socket: WebSocket, outbox: Outbox, pingMs: number): () => void {
  let alive = true
  socket.on('pong', () => {
    alive = true
  })
  const beat = setInterval(() => {
    // Behind a full buffer neither ping nor pong gets through; the outbox has its own limit for that.
    if (outbox.blocked) return
    if (!alive) return socket.terminate()
    alive = false
    socket.ping()
  }, pingMs)
  return () => clearInterval(beat)
}

function refuse(socket: Duplex, problem: Problem): void {
  const body = JSON.stringify(problem)
  const retryAfter = RETRY_AFTER_S[problem.status]
  const head = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...(problem.status === 426 ? ['Upgrade: websocket'] : []),
    ...(problem.status === 401 ? ['WWW-Authenticate: Bearer'] : []),
    ...(retryAfter === undefined ? [] : [`Retry-After: ${retryAfter}`]),
    `Connection: ${problem.status === 426 ? 'Upgrade, close' : 'close'}`,
  ]
  socket.once('finish', () => socket.destroy())
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}
