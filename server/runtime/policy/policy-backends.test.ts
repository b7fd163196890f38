// The policy client against backends that fail: how often they are asked, which endpoint is, and how long a wait lasts.
import { setMaxListeners } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import type { Backend } from '../../config.ts'
import { backendAt, clientOf, requestTo } from '../../testkit/policy-client.testkit.ts'
import { createPolicyBoard } from './policy-board.ts'
import type { PolicyClient } from './policy-client.ts'

type Handler = (request: IncomingMessage, response: ServerResponse, asked: number) => void

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** A backend of one endpoint; `asked` counts its requests. */
async function endpoint(handle: Handler) {
  const seen = { asked: 0, bodies: [] as string[] }
  const server = createServer((request, response) => {
    const nth = seen.asked++
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      seen.bodies.push(body)
      handle(request, response, nth)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closing.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return Object.assign(seen, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  })
}

const fine: Handler = (_, response) =>
  void response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
const broken: Handler = (_, response) => void response.writeHead(500).end()
/** Nobody listens there. */
const NOBODY = 'http://127.0.0.1:9'

function open(
  main: Backend,
  ...more: Parameters<typeof clientOf> extends [unknown, ...infer R] ? R : never
): PolicyClient {
  const client = clientOf({ main }, ...more)
  closing.push(() => client.close())
  return client
}

const never = new AbortController().signal
setMaxListeners(0, never)
const ask = (client: PolicyClient, ms = 5000, seat = { endpoint: null }) =>
  client.ask(requestTo('main'), performance.now() + ms, never, seat)

describe('a backend that fails every request', () => {
  test('gets at most 1.1 times the requests and 3, and is soon left alone', async () => {
    const backend = await endpoint(broken)
    const client = open(backendAt([backend.url]))
    const answers = await Promise.all(Array.from({ length: 100 }, () => ask(client, 10_000)))
    expect(backend.asked).toBeLessThanOrEqual(1.1 * 100 + 3)
    const later = await ask(client, 10_000)
    expect(later).toMatchObject({ kind: 'failure', outcome: 'infra_backend' })
    expect(later.kind === 'failure' && later.reason).toContain('status 500')
    // What got an answer has it; nothing ends in a timeout of ours.
    expect(answers.every((one) => one.kind === 'reply' || one.outcome === 'infra_backend')).toBe(
      true,
    )
    const before = backend.asked
    await ask(client, 2000)
    expect(backend.asked).toBe(before)
  })

  test('a refusal of single requests leaves it as it is', async () => {
    const backend = await endpoint((_, response) => void response.writeHead(400).end('no'))
    const client = open(backendAt([backend.url]))
    for (let count = 0; count < 15; count++)
      expect(await ask(client)).toMatchObject({ kind: 'reply', status: 400 })
    // Never asked again: it would be refused again.
    expect(backend.asked).toBe(15)
  })
})

test('a backend that is back is tried by one request alone, and then by all', async () => {
  let answerProbe = () => {}
  const backend = await endpoint((request, response, asked) => {
    if (asked === 0) return void response.writeHead(429, { 'retry-after': '1' }).end()
    if (asked > 1) return fine(request, response, asked)
    answerProbe = () => fine(request, response, asked)
  })
  let open429 = () => {}
  const opened = new Promise<void>((resolve) => {
    open429 = resolve
  })
  const client = open(backendAt([backend.url]), { breaker: () => open429() })
  const first = ask(client, 20_000)
  await opened
  const others = Array.from({ length: 4 }, () => ask(client, 20_000))
  await expect.poll(() => backend.asked, { timeout: 10_000 }).toBe(2)
  // The probe has no answer yet, and nobody goes beside it.
  expect(client.inFlight('main')).toBe(5)
  expect(backend.asked).toBe(2)
  answerProbe()
  for (const answer of await Promise.all([first, ...others]))
    expect(answer).toMatchObject({ status: 200 })
  expect(backend.asked).toBe(6)
})

describe('one of two endpoints', () => {
  test('that is dead costs no request, and is asked no more', async () => {
    const alive = await endpoint(fine)
    const states: string[] = []
    const tries: string[] = []
    const client = open(backendAt([NOBODY, alive.url]), {
      breaker: (_, state) => states.push(state),
      backendTry: (_, code) => tries.push(code),
    })
    for (let count = 0; count < 60; count++)
      expect(await ask(client)).toMatchObject({ kind: 'reply', status: 200 })
    expect(tries.filter((code) => code === 'reset').length).toBeLessThanOrEqual(10)
    expect(alive.asked).toBe(60)
    // The backend as a whole was never cut off.
    expect(states).not.toContain('open')
  })

  test('keeps an attempt’s requests, and both share the attempts', async () => {
    const [a, b] = [await endpoint(fine), await endpoint(fine)]
    const client = open(backendAt([a.url, b.url]))
    const attempts = Array.from({ length: 8 }, async () => {
      const seat = { endpoint: null }
      for (let turn = 0; turn < 5; turn++) await ask(client, 5000, seat)
    })
    await Promise.all(attempts)
    expect([a.asked, b.asked]).toEqual([20, 20])
  })

  test('whose replies cannot be used is asked by others only where it must be', async () => {
    const [a, b] = [await endpoint(fine), await endpoint(fine)]
    const client = open(backendAt([a.url, b.url]))
    const seat = { endpoint: null }
    await ask(client, 5000, seat)
    expect([a.asked, b.asked]).toEqual([1, 0])
    client.blame(seat)
    await Promise.all(Array.from({ length: 6 }, () => ask(client)))
    expect([a.asked, b.asked]).toEqual([1, 6])
  })

  test('that asks to wait is left for the other at once', async () => {
    const busy = await endpoint(
      (_, response) => void response.writeHead(429, { 'retry-after': '20' }).end(),
    )
    const free = await endpoint(fine)
    const client = open(backendAt([busy.url, free.url]))
    const started = performance.now()
    for (let count = 0; count < 5; count++) expect(await ask(client)).toMatchObject({ status: 200 })
    expect(performance.now() - started).toBeLessThan(4000)
    expect(busy.asked).toBe(1)
  })
})

test.each([
  ['seconds', () => '1'],
  ['a date', () => new Date(Date.now() + 1500).toUTCString()],
])('a Retry-After in %s is waited for', async (_, header) => {
  const backend = await endpoint((request, response, asked) =>
    asked === 0
      ? void response.writeHead(429, { 'retry-after': header() }).end()
      : fine(request, response, asked),
  )
  const client = open(backendAt([backend.url]))
  const started = performance.now()
  expect(await ask(client, 10_000)).toMatchObject({ kind: 'reply', status: 200 })
  expect(performance.now() - started).toBeGreaterThan(450)
  expect(backend.asked).toBe(2)
})

test('one that goes beyond 30 s or the deadline is not waited for', async () => {
  for (const seconds of ['31', '6']) {
    const backend = await endpoint(
      (_, response) => void response.writeHead(429, { 'retry-after': seconds }).end(),
    )
    const client = open(backendAt([backend.url]))
    const started = performance.now()
    expect(await ask(client, 5000)).toMatchObject({ kind: 'reply', status: 429 })
    expect(performance.now() - started).toBeLessThan(3000)
  }
})

describe('a stream', () => {
  const streaming = (url: string, some: Partial<Backend>) =>
    backendAt([url], { stream: true, ...some })
  const begins: Handler = (_, response) =>
    void response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {}\n\n')

  test('whose first token does not come ends by that limit, after its tries', async () => {
    const backend = await endpoint(() => {})
    const client = open(streaming(backend.url, { first_token_timeout_s: 0.2 }))
    const answer = await ask(client, 30_000)
    expect(answer).toMatchObject({ kind: 'failure', outcome: 'timeout' })
    expect(answer.kind === 'failure' && answer.reason).toContain('first_token_timeout_s')
    expect(backend.asked).toBe(3)
  })

  test('that stalls ends by the limit of its gaps', async () => {
    const backend = await endpoint(begins)
    const client = open(streaming(backend.url, { token_gap_timeout_s: 0.2 }))
    const answer = await ask(client, 30_000)
    expect(answer.kind === 'failure' && answer.reason).toContain('token_gap_timeout_s')
  })

  test('that goes on is heard to its end, and its pace is told', async () => {
    const backend = await endpoint((_, response) => {
      begins(_, response, 0)
      let pieces = 0
      const timer = setInterval(() => {
        response.write('data: {}\n\n')
        if (++pieces < 4) return
        clearInterval(timer)
        response.end('data: [DONE]\n\n')
      }, 40)
    })
    const told: [string, number][] = []
    const client = open(streaming(backend.url, { token_gap_timeout_s: 5 }), {
      firstToken: (_, seconds) => told.push(['first', seconds]),
      tokenGap: (_, seconds) => told.push(['gap', seconds]),
    })
    expect(await ask(client, 30_000)).toMatchObject({ kind: 'reply', status: 200 })
    expect(told.map(([what]) => what)).toEqual(['first', 'gap'])
    for (const [, seconds] of told) expect(seconds).toBeGreaterThan(0)
    expect(told[1]?.[1]).toBeGreaterThan(0.02)
  })
})

describe('what trainers announce', () => {
  test('an announced version salts vLLM’s prefix cache, each epoch and version apart', async () => {
    const backend = await endpoint(fine)
    const board = createPolicyBoard()
    const client = open(backendAt([backend.url]), {}, board)
    const salts = async () => {
      await ask(client)
      return JSON.parse(backend.bodies.at(-1) ?? '')
    }
    expect(await salts()).toEqual({ model: 'm' })
    board.announce('main', { version: 4 }, 1)
    expect(await salts()).toEqual({ cache_salt: '0/4', model: 'm' })
    board.announce('main', { version: 3, new_epoch: true }, 2)
    expect(await salts()).toEqual({ cache_salt: '1/3', model: 'm' })
  })

  test('no salt goes to SGLang, nor where the setting says so', async () => {
    const backend = await endpoint(fine)
    const board = createPolicyBoard()
    board.announce('main', { version: 4 }, 1)
    for (const some of [{ dialect: 'sglang' as const }, { cache_salt: false }]) {
      await ask(open(backendAt([backend.url], some), {}, board))
      expect(JSON.parse(backend.bodies.at(-1) ?? '')).toEqual({ model: 'm' })
    }
  })

  test('while a backend is paused nothing new goes out, and what is out is heard', async () => {
    let answer = () => {}
    const backend = await endpoint((request, response, asked) => {
      if (asked > 0) return fine(request, response, asked)
      answer = () => fine(request, response, asked)
      board.announce('main', { pause: true }, 1)
    })
    const board = createPolicyBoard()
    const client = open(backendAt([backend.url]), {}, board)
    const running = ask(client)
    while (!board.of('main').paused) await new Promise((resolve) => setImmediate(resolve))
    const waiting = ask(client)
    answer()
    expect(await running).toMatchObject({ status: 200 })
    expect(backend.asked).toBe(1)
    board.announce('main', { pause: false }, 2)
    expect(await waiting).toMatchObject({ status: 200 })
    board.announce('main', { pause: true }, 3)
    expect(await ask(client, 50)).toEqual({ kind: 'failure', outcome: 'timeout', reason: '' })
  })
})
