// Hostile and broken clients against a server in a process of its own, while a neighbour's waits are measured.
// EDGE_SOAK=1 runs the whole form: 10,000 idle WebSockets and longer attacks. Both print what they measured.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, request as httpRequest, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { writeLab } from './testkit/lab-environment.testkit.ts'
import { type Neighbour, startNeighbour } from './testkit/neighbour.testkit.ts'

const WHOLE = process.env.EDGE_SOAK === '1'
const MAIN = fileURLToPath(new URL('./main.ts', import.meta.url))
const TOKEN = 'a-token-of-this-test-0123456789'
/** How long each attack is kept up at least. */
const ATTACK_MS = WHOLE ? 5_000 : 1_000
/** Tries of each attack, on a machine that others use. */
const ROUNDS = 10
/** Consumers that subscribe and do not read. */
const STALLED = 32
/** Files that the test itself may need beside its sockets. */
const SPARE_FILES = 500

let server: ChildProcess
let policy: Server
let url: string
let neighbour: Neighbour
const report: string[] = []

beforeAll(async () => {
  policy = await startPolicy()
  const folder = mkdtempSync(join(tmpdir(), 'paddock-soak-'))
  const file = join(folder, 'paddock.yaml')
  const settings = {
    server: { port: 0, token: TOKEN, drain_timeout_s: 0 },
    limits: { max_connections_per_token: 12_000 },
    backends: { main: { dialect: 'vllm', url: urlOf(policy), model: 'm' } },
    environments: { lab: writeLab().module },
    runtime: { threads: 1 },
  }
  // JSON is YAML.
  writeFileSync(file, JSON.stringify(settings))
  server = spawn(process.execPath, ['--import', 'tsx', MAIN, 'serve', file], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  url = await listening(server)
  neighbour = startNeighbour(url, TOKEN)
  // The first answers come from code that has not run before.
  await neighbour.during(() => Promise.resolve(), 500)
}, 120_000)

afterAll(async () => {
  console.log(`\nA neighbour's waits during each attack:\n${report.join('\n')}\n`)
  await neighbour?.close()
  server?.kill('SIGTERM')
  if (server && server.exitCode === null) await once(server, 'exit')
  policy?.closeAllConnections()
  policy?.close()
}, 30_000)

test('stream consumers that stop reading are bounded, and their batch is delivered', async () => {
  const observation = 'x'.repeat(100_000)
  const episodes = 120
  const body = {
    tasks: [{ spec: { request: 'Measure it.', observation }, environment: 'lab' }],
    group_size: episodes,
    mode: 'eval',
  }
  const { id } = (await (await post('/v1/batches', JSON.stringify(body))).json()) as { id: string }
  // Played first, so that what is measured is the pushing and not the playing.
  const lease = await post(`/v1/batches/${id}/lease`, JSON.stringify({ wait_s: 60, lease_s: 600 }))
  const { groups } = (await lease.json()) as { groups: { id: string; lease: { id: string } }[] }
  expect(groups).toHaveLength(1)

  const before = residentMegabytes()
  const stalled: WebSocket[] = []
  await survives('stalled stream consumers', async () => {
    if (stalled.length > 0) return stalled[0]?.ping()
    for (let k = 0; k < STALLED; k++) {
      const socket = await openStream()
      stalled.push(socket)
      socket.send(JSON.stringify({ type: 'subscribe', batch: id, groups: false }))
      socket.send(JSON.stringify({ type: 'credit', events: 1_000_000 }))
      socket.pause()
    }
  })
  const grown = residentMegabytes() - before
  report.push(
    `  ${STALLED} consumers of 12 MB each, resident memory grew by ${grown.toFixed(0)} MB`,
  )
  // Without a bound each would have all of it queued. With one: 1 MB and a message each, and the collector's leisure.
  expect(grown).toBeLessThan(STALLED * 12 * 0.5)

  const leases = groups.map((group) => ({ id: group.id, lease: group.lease.id }))
  const acked = await post(`/v1/batches/${id}/ack`, JSON.stringify({ groups: leases }))
  expect(await acked.json()).toMatchObject({ groups: [{ result: 'acked' }] })
  for (const socket of stalled) socket.terminate()
}, 240_000)

test('idle WebSockets cost little memory and no time', async () => {
  const limit = Number(execFileSync('sh', ['-c', 'ulimit -Hn']).toString()) || 1e9
  const count = Math.min(WHOLE ? 10_000 : 1_000, limit - SPARE_FILES)
  const before = residentMegabytes()
  const sockets: WebSocket[] = []
  await survives(`${count} idle WebSockets`, async () => {
    while (sockets.length < count) {
      const wave = Math.min(100, count - sockets.length)
      sockets.push(...(await Promise.all(Array.from({ length: wave }, () => openStream()))))
    }
  })
  expect(sockets.filter((socket) => socket.readyState === WebSocket.OPEN)).toHaveLength(count)
  const kilobytes = ((residentMegabytes() - before) * 1024) / count
  report.push(`  ${count} sockets were open (ulimit -Hn ${limit}), ${kilobytes.toFixed(1)} KB each`)
  expect(kilobytes).toBeLessThan(100)
  await survives('  and while they are open', () => Promise.resolve())
  for (const socket of sockets) socket.terminate()
}, 240_000)

test('a gzip bomb of 200 MB is refused and never inflated', async () => {
  const bomb = gzipSync(Buffer.alloc(200 * 2 ** 20), { level: 9 })
  const before = residentMegabytes()
  await survives('gzip bomb', async () => {
    const told = await post('/v1/batches', bomb, { 'content-encoding': 'gzip' })
    expect(told.status).toBe(415)
    const untold = await post('/v1/batches', bomb)
    expect(untold.status).toBe(400)
  })
  expect(residentMegabytes() - before).toBeLessThan(100)
}, 240_000)

test('a body larger than the limit is refused before it is read whole', async () => {
  await survives('20 MB body', async () => {
    // The connection may be cut before the answer is read.
    for (const told of [true, false])
      expect([413, 'cut']).toContain(await sendSpaces('/v1/batches', 20 * 2 ** 20, told))
  })
}, 240_000)

test('JSON of a million levels is refused', async () => {
  const deep = '['.repeat(1_000_000)
  await survives('1,000,000-deep JSON', async () => {
    const answer = await post('/v1/parse', deep)
    expect(answer.status).toBe(400)
    expect(await answer.text()).toContain('levels of nesting')
  })
}, 240_000)

test('a body with __proto__ is refused, and no prototype changes', async () => {
  const body = '{"id":"1","format":"hermes","tools":[],"text":"","__proto__":{"polluted":true}}'
  await survives('__proto__', async () => {
    const answer = await post('/v1/batches', body)
    expect(answer.status).toBe(400)
    expect(await answer.text()).toContain('__proto__')
  })
}, 240_000)

test('wrong tokens are refused, over HTTP and before an upgrade', async () => {
  await survives('wrong tokens', async () => {
    const headers = { authorization: 'Bearer wrong-token-of-the-same-length' }
    const answers = await Promise.all(
      ['GET', 'POST', 'DELETE'].map((method) => ask(method, '/v1/batches/x', undefined, headers)),
    )
    for (const { status } of answers) expect([401, 405, 429]).toContain(status)
    const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/stream`, { headers })
    const [, response] = await once(socket, 'unexpected-response')
    expect([401, 429]).toContain(response.statusCode)
    socket.on('error', () => {})
    response.destroy()
  })
}, 240_000)

test('connections that never finish their head are closed', async () => {
  const count = 200
  const { port } = new URL(url)
  const ends: Promise<unknown>[] = []
  await survives(`${count} half-sent heads`, async () => {
    if (ends.length > 0) return
    for (let k = 0; k < count; k++) {
      const socket = connect(Number(port), '127.0.0.1')
      socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n')
      socket.on('error', () => {})
      socket.resume()
      ends.push(once(socket, 'close'))
    }
  })
  // The head's limit is 10 s, looked at every second; the rest is room for a busy machine.
  const late = new Promise((_, reject) => setTimeout(() => reject(new Error('still open')), 30_000))
  await Promise.race([Promise.all(ends), late])
}, 240_000)

/**
 * The neighbour's p99 stays under 50 ms or five times what it was just before: the best round counts, since others use
 * the machine too.
 */
async function survives(name: string, attack: () => Promise<unknown>): Promise<void> {
  for (let round = 1; ; round++) {
    const quiet = await neighbour.during(() => Promise.resolve(), ATTACK_MS)
    const waits = await neighbour.during(() => repeated(attack), ATTACK_MS)
    const limit = Math.max(50, 5 * quiet.p99)
    if (waits.p99 > limit && round < ROUNDS) continue
    report.push(
      `${name.padEnd(28)} p50 ${waits.p50.toFixed(1)} ms, p99 ${waits.p99.toFixed(1)} ms of ${waits.count} (quiet: ${quiet.p99.toFixed(1)} ms)`,
    )
    return expect(waits.p99).toBeLessThanOrEqual(limit)
  }
}

async function repeated(attack: () => Promise<unknown>): Promise<void> {
  const end = performance.now() + ATTACK_MS
  do await attack()
  while (performance.now() < end)
}

function ask(
  method: string,
  path: string,
  body?: string | Buffer,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(url + path, {
    method,
    headers: {
      authorization: `Bearer ${TOKEN}`,
      ...(method === 'POST' && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: body as string }),
  })
}

function post(path: string, body: string | Buffer, headers: Record<string, string> = {}) {
  return ask('POST', path, body, headers)
}

/** Sends so many bytes, `told` in Content-Length or in chunks, and resolves with the status or with how it ended. */
function sendSpaces(path: string, size: number, told: boolean): Promise<number | 'cut'> {
  return new Promise((resolve) => {
    const headers = {
      authorization: `Bearer ${TOKEN}`,
      'content-type': 'application/json',
      ...(told && { 'content-length': size }),
    }
    const request = httpRequest(url + path, { method: 'POST', headers, agent: false })
    request.on('response', (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
      request.destroy()
    })
    request.on('socket', (socket) => socket.on('error', () => {}))
    request.on('error', () => resolve('cut'))
    for (let sent = 0; sent < size; sent += 2 ** 20) request.write(Buffer.alloc(2 ** 20, 0x20))
    request.end()
  })
}

async function openStream(): Promise<WebSocket> {
  const headers = { authorization: `Bearer ${TOKEN}` }
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/stream`, { headers })
  socket.on('error', () => {})
  await once(socket, 'open')
  return socket
}

function residentMegabytes(): number {
  const status = readFileSync(`/proc/${server.pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024
}

/** The address from the server's log. */
async function listening(child: ChildProcess): Promise<string> {
  const lines = createInterface({ input: child.stderr as NodeJS.ReadableStream })
  for await (const line of lines) {
    // What is no log line is why it could not start.
    if (!line.startsWith('{')) throw new Error(line)
    const told = JSON.parse(line) as { msg: string; url: string }
    if (told.msg !== 'listening') continue
    lines.close()
    child.stderr?.resume()
    return told.url
  }
  throw new Error('the server ended before it listened')
}

/** A policy that measures once and then says that it is done. */
async function startPolicy(): Promise<Server> {
  const call = '<tool_call>\n{"name": "measure", "arguments": {}}\n</tool_call>'
  const policy = createServer(async (request, response) => {
    let measured = false
    for await (const chunk of request) measured ||= (chunk as Buffer).includes('xxxxxxxx')
    const content = measured ? 'Done.' : call
    const token = { token: 'x', logprob: -0.5, bytes: null, top_logprobs: [] }
    response.writeHead(200, { 'content-type': 'application/json' }).end(
      JSON.stringify({
        id: 'c',
        object: 'chat.completion',
        created: 0,
        model: 'm',
        choices: [
          {
            index: 0,
            message: { role: 'assistant', content },
            finish_reason: 'stop',
            logprobs: { content: [token] },
          },
        ],
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      }),
    )
  }).listen(0, '127.0.0.1')
  await once(policy, 'listening')
  return policy
}

function urlOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
