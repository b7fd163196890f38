// The socket over real connections: limits of time and size, and a close that cuts no answer off.
import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { PaddockError } from '../protocol/errors.ts'
import { createApp } from './app.ts'
import { loadConfig } from './config.ts'
import { type Listener, listen } from './listen.ts'
import type { Service } from './service.ts'
import { createStubService } from './stub-service.testkit.ts'

const listeners: Listener[] = []
afterEach(async () => {
  await Promise.all(listeners.splice(0).map((listener) => listener.close(0)))
})

async function start(overrides: Partial<Service> = {}) {
  const service = createStubService(overrides)
  const app = createApp(service, loadConfig({ file: null }))
  const listener = await listen({
    fetch: app.fetch,
    host: '127.0.0.1',
    port: 0,
    maxConnections: 100,
  })
  listeners.push(listener)
  return { service, listener, url: listener.url }
}

/** Sends a raw request and resolves with the first line of the answer. */
async function raw(url: string, head: string): Promise<string> {
  const { port } = new URL(url)
  const socket = connect(Number(port), '127.0.0.1')
  socket.write(head)
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  return chunk.toString('latin1').split('\r\n', 1)[0]!
}

test('the url holds the port that was taken', async () => {
  const { url } = await start()
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:[1-9]\d*$/)
  expect((await fetch(`${url}/healthz`)).status).toBe(200)
})

test('a connection is kept longer than clients keep theirs: whoever closes first cuts a request off that is on its way', async () => {
  const { url } = await start()
  const { headers } = await fetch(`${url}/livez`)
  // httpx keeps a connection that nothing happens on for 5 s, aiohttp for 15, Go for 90 but asks again by itself.
  const [, seconds] = /timeout=(\d+)/.exec(headers.get('keep-alive') ?? '') ?? []
  expect(Number(seconds)).toBeGreaterThan(60)
})

test('a taken port is refused with its address and number', async () => {
  const { url } = await start()
  const port = Number(new URL(url).port)
  const second = listen({ fetch: () => new Response(), host: '127.0.0.1', port, maxConnections: 1 })
  const error = await second.catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(PaddockError)
  expect((error as PaddockError).message).toContain(`127.0.0.1 port ${port} (EADDRINUSE)`)
})

describe('close', () => {
  test('an answer under way is finished, and new connections are refused', async () => {
    let answer = () => {}
    const asked = new Promise<void>((resolve) => {
      answer = resolve
    })
    let arrived = () => {}
    const underWay = new Promise<void>((resolve) => {
      arrived = resolve
    })
    const { listener, url } = await start({
      async task(id) {
        arrived()
        await asked
        return { id }
      },
    })
    const pending = fetch(`${url}/v1/tasks/a/b`)
    await underWay
    const closed = listener.close(10_000)
    await expect(fetch(`${url}/healthz`)).rejects.toThrow()
    answer()
    expect(await (await pending).json()).toEqual({ id: 'a/b' })
    const start_ = performance.now()
    await closed
    // The kept-alive connection of the answer would hold an unswept server for 5 s.
    expect(performance.now() - start_).toBeLessThan(2_000)
  })

  test('a silent connection is cut when the grace is over', async () => {
    const { listener, url } = await start()
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    await once(socket, 'connect')
    socket.write('GET /healthz HTTP/1.1\r\n')
    const ended = once(socket, 'close')
    await listener.close(100)
    await ended
  })
})

describe('what comes in', () => {
  test('a body that says it is over the limit is refused before it is read', async () => {
    const { url } = await start()
    const head = `POST /v1/batches HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n`
    expect(await raw(url, head)).toBe('HTTP/1.1 413 Payload Too Large')
  })

  test('a chunked body is refused as soon as it is over the limit', async () => {
    const { url } = await start()
    const outgoing = request(`${url}/v1/batches/b1/ack`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'transfer-encoding': 'chunked' },
    })
    outgoing.on('error', () => {})
    const answered = once(outgoing, 'response')
    const chunk = Buffer.alloc(256 * 1024, ' ')
    for (let sent = 0; sent < 5; sent++) outgoing.write(chunk)
    const [response] = await answered
    expect(response.statusCode).toBe(413)
    outgoing.destroy()
  })

  test('a foreign Host is refused', async () => {
    const { url } = await start()
    const head = 'GET /v1/tasks HTTP/1.1\r\nHost: rebound.example\r\n\r\n'
    expect(await raw(url, head)).toBe('HTTP/1.1 403 Forbidden')
  })

  test('a client that goes away ends its waiting lease', async () => {
    const { service, url } = await start()
    const client = new AbortController()
    const leasing = fetch(`${url}/v1/batches/b1/lease`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"wait_s":60}',
      signal: client.signal,
    }).catch(() => 'gone')
    await expect.poll(() => service.calls.length).toBe(1)
    client.abort()
    expect(await leasing).toBe('gone')
    await service.aborted
  })
})
