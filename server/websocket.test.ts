// WebSocket /v1/stream over real sockets: who may connect, credit, peers that do not read, and ends.
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { createApp } from './app.ts'
import { loadConfig } from './config.ts'
import { listen } from './listen.ts'
import { createEventLog } from './runtime/batches/event-log.ts'
import { createStubService } from './stub-service.testkit.ts'
import { createStreamServer, type StreamServerOptions } from './websocket.ts'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function start(server = {}, options: StreamServerOptions = {}) {
  const service = createStubService()
  const config = loadConfig({ file: null, flags: { server } })
  const app = createApp(service, config)
  const stream = createStreamServer(service, config, options)
  const listener = await listen({
    fetch: app.fetch,
    host: '127.0.0.1',
    port: 0,
    maxConnections: 100,
    upgrade: stream.upgrade,
  })
  cleanups.push(async () => {
    await stream.close()
    await listener.close(0)
  })
  const port = Number(new URL(listener.url).port)
  return { service, stream, port, url: `ws://127.0.0.1:${port}/v1/stream` }
}

/** A client that keeps what came until it is asked for. */
async function connectTo(url: string, headers: Record<string, string> = {}) {
  const socket = new WebSocket(url, { headers })
  cleanups.push(() => socket.terminate())
  const arrived: unknown[] = []
  const waiting: ((message: unknown) => void)[] = []
  socket.on('message', (data, isBinary) => {
    const message = isBinary ? data : JSON.parse(String(data))
    const next = waiting.shift()
    if (next) next(message)
    else arrived.push(message)
  })
  const closed = once(socket, 'close').then(([code]) => code as number)
  await once(socket, 'open')
  return {
    socket,
    closed,
    arrived,
    say: (message: unknown) =>
      socket.send(typeof message === 'string' ? message : JSON.stringify(message)),
    next: () =>
      arrived.length > 0
        ? Promise.resolve(arrived.shift() as Record<string, unknown>)
        : new Promise<Record<string, unknown>>((resolve) =>
            waiting.push((message) => resolve(message as Record<string, unknown>)),
          ),
    /** Resolves once the server has answered everything that was sent before. */
    async settled() {
      socket.ping()
      await once(socket, 'pong')
    },
  }
}

/** The first line and the body of the answer to a raw upgrade request. */
async function upgrade(port: number, lines: string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  cleanups.push(() => socket.destroy())
  const head = [
    'Connection: Upgrade',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Version: 13',
  ]
  socket.write(`${[...lines, ...head].join('\r\n')}\r\n\r\n`)
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  return chunk.toString()
}

const HOST = 'Host: localhost'
const WS = 'Upgrade: websocket'
const GET = 'GET /v1/stream HTTP/1.1'

describe('upgrade', () => {
  const token = 'a-long-enough-token'

  test.each([
    ['another protocol', {}, [GET, HOST, 'Upgrade: h2c'], 426],
    ['another path', {}, ['GET /v1/other HTTP/1.1', HOST, WS], 404],
    ['a foreign Host', {}, [GET, 'Host: rebound.example', WS], 403],
    ['a foreign Origin', {}, [GET, HOST, WS, 'Origin: https://evil.example'], 403],
    ['no token where one is asked for', { token }, [GET, HOST, WS], 401],
    ['a wrong token', { token }, [GET, HOST, WS, 'Authorization: Bearer nope'], 401],
    [
      'a token without the right',
      { tokens: [{ token, roles: ['metrics'] }] },
      [GET, HOST, WS, `Authorization: Bearer ${token}`],
      403,
    ],
    ['the right token', { token }, [GET, HOST, WS, `Authorization: Bearer ${token}`], 101],
    ['its own Origin', {}, [GET, HOST, WS, 'Origin: http://localhost'], 101],
  ])('%s', async (_, server, lines, status) => {
    const { port } = await start(server)
    const answer = await upgrade(port, lines)
    expect(answer.split(' ')[1]).toBe(String(status))
    if (status === 101) return
    const body = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4))
    expect(body).toMatchObject({ status, retryable: false })
  })
})

describe('credit', () => {
  test('nothing is pushed before credit is given, and never more than was given', async () => {
    const { service, url } = await start()
    for (let n = 1; n <= 10; n++) service.log.append('turn', '{"type":"turn"}', 1)
    const client = await connectTo(url)
    client.say({ type: 'subscribe', batch: 'b1', groups: false })
    await client.settled()
    expect(client.arrived).toEqual([])
    client.say({ type: 'credit', events: 3 })
    for (const n of [1, 2, 3])
      expect(await client.next()).toEqual({
        type: 'event',
        batch: 'b1',
        event: { n, at: 1, type: 'turn' },
      })
    await client.settled()
    expect(client.arrived).toEqual([])
    client.say({ type: 'credit', events: 100 })
    for (const n of [4, 5, 6, 7, 8, 9, 10])
      expect(await client.next()).toMatchObject({ event: { n } })
    service.log.append('verdict', '{"type":"verdict"}', 1)
    expect(await client.next()).toMatchObject({ event: { n: 11, type: 'verdict' } })
    service.log.end()
    expect(await client.next()).toEqual({ type: 'done' })
  })

  test('groups are leased one by one within the credit, acked, and done follows', async () => {
    const { service, url } = await start()
    service.ready.push('{"id":"g1","episodes":[{"ids":[1]}]}', '{"id":"g2"}', '{"id":"g3"}')
    const client = await connectTo(url)
    client.say({ type: 'subscribe', batch: 'b1', events: false, lease_s: 5 })
    client.say({ type: 'credit', groups: 2 })
    expect(await client.next()).toEqual({
      type: 'group',
      group: { id: 'g1', episodes: [{ ids: [1] }] },
    })
    expect(await client.next()).toEqual({ type: 'group', group: { id: 'g2' } })
    await client.settled()
    expect(service.ready).toEqual(['{"id":"g3"}'])
    expect(service.calls).toEqual([
      { name: 'lease', args: ['b1', { max: 1, lease_s: 5, wait_s: 20 }, 'json'] },
      { name: 'lease', args: ['b1', { max: 1, lease_s: 5, wait_s: 20 }, 'json'] },
    ])
    client.say({ type: 'ack', groups: [{ id: 'g1', lease: 'l1' }] })
    expect(await client.next()).toEqual({ type: 'ack', groups: [{ id: 'g1', result: 'acked' }] })
    client.say({ type: 'nack', groups: [{ id: 'g2', lease: 'l2' }], reason: 'oom' })
    expect(await client.next()).toEqual({ type: 'nack', groups: [{ id: 'g2', result: 'nacked' }] })
    client.say({ type: 'credit', groups: 1 })
    expect(await client.next()).toEqual({ type: 'group', group: { id: 'g3' } })
    service.log.end()
    expect(await client.next()).toEqual({ type: 'done' })
  })

  test('a long log is put out in many turns of the thread', async () => {
    const { service, url } = await start()
    const log = createEventLog(100_000)
    for (let n = 1; n <= 20_000; n++) log.append('turn', '{"type":"turn"}', 1)
    log.end()
    let reads = 0
    let turns = 0
    let turnsAtRead = -1
    const count = () => {
      turns++
      if (!log.ended || reads < 20_000 / 256) setImmediate(count)
    }
    service.events = () =>
      Object.create(log, {
        read: {
          value: (after: number, limit: number) => {
            reads++
            expect(turns).toBeGreaterThan(turnsAtRead)
            turnsAtRead = turns
            return log.read(after, limit)
          },
        },
      })
    count()
    const client = await connectTo(url)
    client.say({ type: 'subscribe', batch: 'b1', groups: false })
    client.say({ type: 'credit', events: 20_000 })
    for (let n = 1; n <= 20_000; n++) await client.next()
    expect(await client.next()).toEqual({ type: 'done' })
    expect(reads).toBeGreaterThan(20_000 / 256)
  })

  test('a lease in MessagePack comes as a binary frame', async () => {
    const { service, url } = await start()
    service.ready.push('{"id":"g1"}')
    const client = await connectTo(url)
    client.say({ type: 'subscribe', batch: 'b1', events: false, encoding: 'msgpack' })
    client.say({ type: 'credit', groups: 1 })
    // The stub writes JSON whatever is asked for: what counts is that its bytes come as they are.
    expect(String(await client.next())).toBe('{"groups":[{"id":"g1"}],"done":false}')
    expect(service.calls[0]?.args[2]).toBe('msgpack')
  })

  test('a client that resumes after N begins with N + 1', async () => {
    const { service, url } = await start()
    for (let n = 1; n <= 5; n++) service.log.append('turn', '{"type":"turn"}', 1)
    const client = await connectTo(url)
    client.say({ type: 'subscribe', batch: 'b1', after: 3, groups: false })
    client.say({ type: 'credit', events: 10 })
    expect(await client.next()).toMatchObject({ event: { n: 4 } })
  })

  test('a client that goes away ends its waiting lease', async () => {
    const { service, url } = await start()
    const client = await connectTo(url)
    client.say({ type: 'subscribe', batch: 'b1', events: false })
    client.say({ type: 'credit', groups: 1 })
    await expect.poll(() => service.calls.length).toBe(1)
    client.socket.terminate()
    await service.aborted
  })
})

describe('errors', () => {
  test.each([
    ['{"type":"subscribe","batch":"nope"}', 'not_found', 404],
    ['{"type":"subscribe","batch":"b1","after":7}', 'invalid_request', 400],
    ['{"type":"subscribe","batch":"b1","events":false,"groups":false}', 'invalid_request', 400],
    ['{"type":"credit","events":1}', 'invalid_request', 400],
    ['{"type":"ack","groups":[{"id":"g","lease":"l"}]}', 'invalid_request', 400],
  ])('%s is answered with a problem, and the connection lives on', async (text, code, status) => {
    const { url } = await start()
    const client = await connectTo(url)
    client.say(text)
    const problem = await client.next()
    expect(problem).toMatchObject({ type: 'error', code, status, retryable: false })
    client.say({ type: 'subscribe', batch: 'b1', groups: false })
    await client.settled()
    expect(client.arrived).toEqual([])
  })

  test.each([
    'nope',
    '[]',
    '{"type":"subscribe"}',
    '{"type":"subcribe","batch":"b1"}',
    '{"type":"credit","evnts":1}',
  ])('%s cannot be read: a problem, then close code 1008', async (text) => {
    const { url } = await start()
    const client = await connectTo(url)
    client.say(text)
    expect(await client.next()).toMatchObject({ type: 'error', status: 400 })
    expect(await client.closed).toBe(1008)
  })

  test('a binary message is refused with 1003, one over 1 MB with 1009', async () => {
    const { url } = await start()
    const binary = await connectTo(url)
    binary.socket.send(Buffer.from('{}'))
    expect(await binary.closed).toBe(1003)
    const large = await connectTo(url)
    large.socket.send('x'.repeat(1024 * 1024 + 1))
    expect(await large.closed).toBe(1009)
  })

  test('one connection follows one batch at a time', async () => {
    const { service, url } = await start()
    const client = await connectTo(url)
    client.say({ type: 'subscribe', batch: 'b1', groups: false })
    client.say({ type: 'subscribe', batch: 'b1', groups: false })
    expect(await client.next()).toMatchObject({ type: 'error', code: 'invalid_request' })
    service.log.end()
    expect(await client.next()).toEqual({ type: 'done' })
    client.say({ type: 'subscribe', batch: 'b1', groups: false })
    expect(await client.next()).toEqual({ type: 'done' })
  })

  test('a token that may only submit gets events but no groups', async () => {
    const token = 'a-long-enough-token'
    const { url } = await start({ tokens: [{ token, roles: ['submit'] }] })
    const client = await connectTo(url, { authorization: `Bearer ${token}` })
    client.say({ type: 'subscribe', batch: 'b1' })
    expect(await client.next()).toMatchObject({ type: 'error', status: 403 })
    client.say({ type: 'subscribe', batch: 'b1', groups: false })
    await client.settled()
    expect(client.arrived).toEqual([])
  })
})

describe('ends', () => {
  test('shutdown closes every connection with 1001', async () => {
    const { stream, url } = await start()
    const clients = [await connectTo(url), await connectTo(url)]
    await stream.close()
    expect(await Promise.all(clients.map((client) => client.closed))).toEqual([1001, 1001])
  })

  test('a peer that answers no ping is terminated after one miss', async () => {
    const { port } = await start({}, { pingMs: 30 })
    const socket = connect(port, '127.0.0.1')
    const head = [GET, HOST, WS, 'Connection: Upgrade', 'Sec-WebSocket-Version: 13']
    socket.write(`${head.join('\r\n')}\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`)
    socket.resume()
    await once(socket, 'close')
  })

  test('a peer that answers pings stays', async () => {
    const { url } = await start({}, { pingMs: 10 })
    const client = await connectTo(url)
    for (let pings = 0; pings < 5; pings++) await once(client.socket, 'ping')
    expect(client.socket.readyState).toBe(WebSocket.OPEN)
  })

  test('a peer that does not read is sent little, leases nothing more, and is closed with 1013', async () => {
    const { service, url } = await start({}, { stallMs: 200 })
    const log = createEventLog(100_000)
    const filler = 'x'.repeat(1000)
    for (let n = 1; n <= 50_000; n++) log.append('turn', `{"type":"turn","text":"${filler}"}`, 1)
    service.events = () => log
    const client = await connectTo(url)
    client.say({ type: 'subscribe', batch: 'b1' })
    client.say({ type: 'credit', events: 1_000_000, groups: 1 })
    await client.next()
    client.socket.pause()
    await service.aborted
    client.socket.resume()
    expect(await client.closed).toBe(1013)
    // 50 MB were there; what was on its way is 1 MB of ours and the kernel's buffers.
    expect(client.arrived.length).toBeLessThan(20_000)
    expect(client.arrived.length).toBeGreaterThan(1000)
  })
})
