// Posting to a guarded URL, over real sockets: pinned names, no redirects, and a limit to everything.
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo, LookupFunction } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { createGuardedHttp, type GuardedHttp } from './guarded-url.ts'

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

async function listen(handler: RequestListener): Promise<{ port: number; server: Server }> {
  const server = createServer(handler).listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanups.push(async () => {
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, server }
}

function guarded(allow: string[], lookup?: LookupFunction): GuardedHttp {
  const http = createGuardedHttp({
    allow,
    setting: 'callbacks.allow',
    maxReplyBytes: 10_000,
    ...(lookup && { lookup }),
  })
  cleanups.push(() => http.close())
  return http
}

/** A resolver that answers with the next address of its list at each question. */
function resolver(...answers: string[]): LookupFunction & { asked: number } {
  const lookup = ((_, options, callback) => {
    const address = answers[Math.min(lookup.asked, answers.length - 1)] as string
    lookup.asked++
    if (options.all) callback(null, [{ address, family: 4 }])
    else callback(null, address, 4)
  }) as LookupFunction & { asked: number }
  lookup.asked = 0
  return lookup
}

const request = { headers: {}, body: new TextEncoder().encode('{}'), timeoutMs: 10_000 }

test('posts to a listed address and gives back status, headers and bytes', async () => {
  const { port } = await listen((incoming, response) => {
    response.writeHead(202, { 'x-was': incoming.headers['content-type'] }).end('taken')
  })
  const headers = { 'content-type': 'application/json' }
  const reply = await guarded(['127.0.0.1']).post(`http://127.0.0.1:${port}/a?b=c`, {
    ...request,
    headers,
  })
  expect(reply.status).toBe(202)
  expect(reply.headers['x-was']).toBe('application/json')
  expect(Buffer.from(reply.body).toString()).toBe('taken')
})

test('a listed name that resolves to an unlisted private address is not connected to', async () => {
  let heard = 0
  const { port } = await listen((_, response) => {
    heard++
    response.end()
  })
  const http = guarded(['trainer.example'], resolver('127.0.0.1'))
  await expect(http.post(`http://trainer.example:${port}/`, request)).rejects.toMatchObject({
    code: 'EBLOCKED',
  })
  expect(heard).toBe(0)
})

test('a name that resolves to a public address first and to loopback then gains nothing', async () => {
  let heard = 0
  const { port } = await listen((_, response) => {
    heard++
    response.end()
  })
  // 192.0.2.1 is a documentation address that nobody answers at; it is listed, loopback is not.
  const lookup = resolver('192.0.2.1', '127.0.0.1')
  const http = guarded(['trainer.example', '192.0.2.1'], lookup)
  const url = `http://trainer.example:${port}/`
  await expect(http.post(url, { ...request, timeoutMs: 300 })).rejects.toThrow()
  await expect(http.post(url, { ...request, timeoutMs: 300 })).rejects.toThrow()
  expect(heard).toBe(0)
})

test('the address that was checked is the one that is connected to', async () => {
  const { port } = await listen((incoming, response) => {
    response.end(incoming.headers.host)
  })
  const lookup = resolver('127.0.0.1')
  const http = guarded(['trainer.example', '127.0.0.1'], lookup)
  const reply = await http.post(`http://trainer.example:${port}/`, request)
  expect(Buffer.from(reply.body).toString()).toBe(`trainer.example:${port}`)
  expect(lookup.asked).toBe(1)
})

test('a redirect is a reply and is not followed', async () => {
  const inner = await listen((_, response) => response.end('the secret'))
  const { port } = await listen((_, response) => {
    response.writeHead(307, { location: `http://127.0.0.1:${inner.port}/` }).end()
  })
  const reply = await guarded([`127.0.0.1:${port}`]).post(`http://127.0.0.1:${port}/`, request)
  expect(reply.status).toBe(307)
  expect(reply.body.length).toBe(0)
})

test('a reply that is longer than the limit is an error', async () => {
  const { port } = await listen((_, response) => response.end(Buffer.alloc(20_000)))
  await expect(
    guarded(['127.0.0.1']).post(`http://127.0.0.1:${port}/`, request),
  ).rejects.toMatchObject({ code: 'UND_ERR_RES_EXCEEDED_MAX_SIZE' })
})

test('a reply that drips is cut at the deadline, however often a byte comes', async () => {
  const { port } = await listen((incoming, response) => {
    response.writeHead(200)
    const drip = setInterval(() => response.write('.'), 50)
    incoming.socket.on('close', () => clearInterval(drip))
  })
  const started = performance.now()
  await expect(
    guarded(['127.0.0.1']).post(`http://127.0.0.1:${port}/`, { ...request, timeoutMs: 400 }),
  ).rejects.toThrow()
  expect(performance.now() - started).toBeLessThan(5_000)
})

test('a caller who withdraws ends the request', async () => {
  const { port, server } = await listen(() => {})
  const withdrawn = new AbortController()
  server.once('request', () => withdrawn.abort())
  await expect(
    guarded(['127.0.0.1']).post(`http://127.0.0.1:${port}/`, {
      ...request,
      signal: withdrawn.signal,
    }),
  ).rejects.toThrow()
})
