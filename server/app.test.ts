// The routes of the native API over a stub Service, without a socket.
import { describe, expect, test } from 'vitest'
import { type ErrorCode, PaddockError, type Problem } from '../protocol/errors.ts'
import { type AppOptions, createApp } from './app.ts'
import { loadConfig } from './config.ts'
import { createBoard } from './dash/board.ts'
import { createMemorySource } from './dash/memory-source.ts'
import type { Service } from './service.ts'
import { createStubService } from './stub-service.testkit.ts'

const BATCH = { tasks: [{ task: 'office/dev-01' }], group_size: 8 }

function edge(overrides: Partial<Service> = {}, server = {}, options: AppOptions = {}) {
  const service = createStubService(overrides)
  const config = loadConfig({ file: null, flags: { server } })
  const board = createBoard(createMemorySource([], 10), () => 0)
  return { service, app: createApp(service, config, { board, ...options }) }
}

function post(body: unknown, headers: Record<string, string> = {}): RequestInit {
  return {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  }
}

async function problemOf(response: Response | Promise<Response>): Promise<Problem> {
  const answer = await response
  expect(answer.headers.get('content-type')).toBe('application/problem+json')
  const problem = (await answer.json()) as Problem
  expect(problem.status).toBe(answer.status)
  return problem
}

describe('the native API', () => {
  test('a batch is completed with the defaults of its schema and answered 202', async () => {
    const { app, service } = edge()
    const response = await app.request('/v1/batches', post({ id: 'step-41', ...BATCH }))
    expect(response.status).toBe(202)
    expect(await response.json()).toEqual({ id: 'step-41', groups: 1, episodes: 8 })
    expect(service.calls[0]?.args[0]).toMatchObject({
      id: 'step-41',
      mode: 'train',
      policy: { backend: 'main', mode: 'chat', sampling: { temperature: 1, max_tokens: 1024 } },
      groups: { attempts: 3, on_short: 'retry' },
      limits: { max_turns: 20 },
    })
  })

  test.each([
    ['GET', '/v1/batches', { batches: [] }],
    ['GET', '/v1/batches/b1', { id: 'b1', done: false }],
    ['DELETE', '/v1/batches/b1', { id: 'b1', state: 'cancelled' }],
    ['GET', '/v1/tasks', { tasks: createStubService().tasks() }],
    ['GET', '/v1/tasks/office/dev-01', { id: 'office/dev-01' }],
    ['GET', '/v1/episodes/e1', { id: 'e1' }],
    ['GET', '/v1/episodes/e1/tokens', { id: 'e1', samples: [] }],
    ['GET', '/v1/batches/b1/groups', { total: 0, groups: [] }],
    ['GET', '/healthz', { status: 'ok' }],
    ['GET', '/health', { status: 'ok' }],
    ['GET', '/readyz', { status: 'ready', reasons: [] }],
  ])('%s %s answers what the service says', async (method, path, expected) => {
    const response = await edge().app.request(path, { method })
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual(expected)
  })

  test.each([
    ['/v1/policy', { version: 42 }, { backend: 'main', version: 42 }],
    ['/v1/policy', { backend: 'b', pause: true }, { backend: 'b', pause: true }],
    ['/v1/heartbeat', { step: 41, checkpoint_step: 40 }, { step: 41, checkpoint_step: 40 }],
    ['/v1/parse', { id: '1', text: 'x' }, { line: { id: '1', text: 'x' } }],
    ['/v1/advantages', { name: 'a' }, { line: { name: 'a' } }],
  ])('POST %s hands %j to the service', async (path, body, expected) => {
    const response = await edge().app.request(path, post(body))
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual(expected)
  })

  test('tasks can be asked of one pack', async () => {
    const { app, service } = edge()
    await app.request('/v1/tasks?pack=office')
    expect(service.calls).toEqual([{ name: 'tasks', args: ['office'] }])
  })

  test('acked and nacked groups are answered one by one', async () => {
    const { app, service } = edge()
    const body = { groups: [{ id: 'g1', lease: 'l1' }] }
    const acked = await app.request('/v1/batches/b1/ack', post(body))
    expect(await acked.json()).toEqual({ groups: [{ id: 'g1', result: 'acked' }] })
    const nacked = await app.request('/v1/batches/b1/nack', post({ ...body, reason: 'oom' }))
    expect(await nacked.json()).toEqual({ groups: [{ id: 'g1', result: 'nacked' }] })
    expect(service.calls[1]?.args).toEqual(['b1', { ...body, reason: 'oom' }])
  })

  test.each([
    [undefined, 'application/json', 'json'],
    ['*/*', 'application/json', 'json'],
    ['application/msgpack', 'application/msgpack', 'msgpack'],
    ['application/json;q=0.5, application/msgpack', 'application/msgpack', 'msgpack'],
    ['application/msgpack;q=0.5, application/json', 'application/json', 'json'],
    ['text/html', 'application/json', 'json'],
  ])('a lease with Accept: %s comes as %s', async (accept, type, encoding) => {
    const { app, service } = edge()
    service.ready.push('{"id":"g1"}')
    const headers: Record<string, string> = accept === undefined ? {} : { accept }
    const response = await app.request('/v1/batches/b1/lease', post({ max: 2 }, headers))
    expect(response.headers.get('content-type')).toBe(type)
    expect(await response.text()).toBe('{"groups":[{"id":"g1"}],"done":false}')
    expect(service.calls[0]?.args).toEqual(['b1', { max: 2, lease_s: 60, wait_s: 0 }, encoding])
  })

  test('metrics come as the service writes them', async () => {
    const response = await edge().app.request('/metrics')
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4')
    expect(await response.text()).toBe('paddock_up 1\n')
  })

  test('a server that takes no work is alive but not ready, and says why', async () => {
    const { app } = edge({ notReady: () => ['draining'] })
    const response = await app.request('/readyz')
    expect(response.status).toBe(503)
    expect(response.headers.get('retry-after')).toMatch(/^\d+$/)
    expect(await response.json()).toEqual({ status: 'not ready', reasons: ['draining'] })
    expect((await app.request('/healthz')).status).toBe(200)
  })
})

describe('refusals', () => {
  test.each<[string, RequestInit, number, ErrorCode, string]>([
    ['/v1/batches', post('{"a":'), 400, 'malformed_json', 'expected JSON'],
    ['/v1/batches', post(''), 400, 'malformed_json', 'empty body'],
    ['/v1/batches', post('{"group_size": NaN}'), 400, 'malformed_json', 'json.dumps'],
    ['/v1/batches', post('{"a": -Infinity}'), 400, 'malformed_json', 'Infinity'],
    ['/v1/batches', post('{"group_size":8,"group_size":9}'), 400, 'invalid_request', 'twice'],
    ['/v1/batches', post('{"__proto__":{}}'), 400, 'invalid_request', '__proto__'],
    ['/v1/parse', post('['.repeat(65)), 400, 'invalid_request', '64 levels'],
    ['/v1/parse', post('[1]'), 400, 'invalid_request', 'an object'],
    ['/v1/batches', post({ ...BATCH, gruop_size: 8 }), 400, 'invalid_request', 'mean group_size'],
    ['/v1/batches', post({ ...BATCH, tasks: [] }), 400, 'invalid_request', 'at least 1 item'],
    ['/v1/batches', post({ ...BATCH, id: '../x' }), 400, 'invalid_request', 'an id is'],
    ['/v1/policy', post({ backend: 'main' }), 400, 'invalid_request', 'version, pause'],
    ['/v1/policy', post({ version: 'default' }), 400, 'invalid_request', 'found "default"'],
    ['/v1/policy', post({ version: -1 }), 400, 'invalid_request', 'at least 0'],
    ['/v1/heartbeat', post({ step: 1.5 }), 400, 'invalid_request', 'an integer'],
    ['/v1/tasks?pak=office', {}, 400, 'invalid_request', 'mean pack'],
    ['/v1/batches/b1/lease', post({ wait_s: 1e9 }), 400, 'invalid_request', 'at most 60'],
    ['/v1/batches/b1/events?after=-1', {}, 400, 'invalid_request', 'number of an event'],
    ['/v1/batches/b1/events?after=1', {}, 400, 'invalid_request', 'expected 0 to 0'],
    ['/v1/batches/nope', {}, 404, 'not_found', 'nope'],
    ['/v1/batches/nope/lease', post({}), 404, 'not_found', 'nope'],
    ['/v1/nothing', {}, 404, 'not_found', '/openapi.json'],
    ['/v1/batches', { method: 'PUT' }, 405, 'method_not_allowed', 'GET, HEAD, POST'],
    [
      '/v1/batches',
      { method: 'POST', body: '{}', headers: { 'content-type': 'text/plain' } },
      415,
      'unsupported_media_type',
      'text/plain',
    ],
    ['/v1/batches', { method: 'POST' }, 415, 'unsupported_media_type', 'found none'],
    [
      '/v1/batches',
      post({}, { 'content-encoding': 'gzip' }),
      415,
      'unsupported_media_type',
      'gzip',
    ],
  ])('%s %j is answered %i', async (path, init, status, code, words) => {
    const problem = await problemOf(edge().app.request(path, init))
    expect(problem).toMatchObject({ status, code, retryable: false })
    expect(problem.detail).toContain(words)
  })

  test('the problem points at the first value that is wrong, and tells of all of them', async () => {
    const body = { ...BATCH, tasks: [{ task: 'a/b' }, { task: 'a/b', seed: -1 }], mode: 'trian' }
    const problem = await problemOf(edge().app.request('/v1/batches', post(body)))
    expect(problem.path).toBe('tasks[1].seed')
    expect(problem.detail).toContain('mode: expected one of train, eval, found "trian"')
  })

  test('a wrong field of an inline contract is named inside it', async () => {
    const contract = { name: 'c', version: 1, fields: { s: { typ: 'number' } }, scalar: 's' }
    const body = { ...BATCH, reward: { contract } }
    const problem = await problemOf(edge().app.request('/v1/batches', post(body)))
    expect(problem.path).toContain('reward.contract.fields.s')
    expect(problem.detail).toContain('did you mean type?')
  })

  test('a number that is no double is refused wherever it stands', async () => {
    const body = '{"tasks":[{"task":"a/b","metadata":{"x":1e400}}],"group_size":1}'
    const problem = await problemOf(edge().app.request('/v1/batches', post(body)))
    expect(problem.path).toContain('metadata')
  })

  test('what a model wrote reaches the parser with every key', async () => {
    const body = '{"id":"1","tools":[{"__proto__":{"a":1,"a":2}}]}'
    const response = await edge().app.request('/v1/parse', post(body))
    expect(await response.text()).toBe('{"line":{"id":"1","tools":[{"__proto__":{"a":2}}]}}')
  })

  test('a wrong method is told which are right', async () => {
    const response = await edge().app.request('/v1/batches/b1', { method: 'PATCH' })
    expect(response.status).toBe(405)
    expect(response.headers.get('allow')).toBe('DELETE, GET, HEAD')
  })

  test.each([
    ['queue_full', 429],
    ['draining', 503],
  ] as const)('%s is retryable and says when', async (code, status) => {
    const { app } = edge({
      submit: () => Promise.reject(new PaddockError(code, 'not now')),
    })
    const response = await app.request('/v1/batches', post(BATCH))
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await problemOf(response)).toMatchObject({ status, code, retryable: true })
  })

  test('a fault tells the client nothing of itself, and its owner everything', async () => {
    const faults: unknown[] = []
    const secret = new Error('postgres://user:secret@db')
    const { app } = edge(
      { submit: () => Promise.reject(secret) },
      {},
      {
        onFault: (error, route) => faults.push(error, route),
      },
    )
    const problem = await problemOf(app.request('/v1/batches', post(BATCH)))
    expect(problem).toMatchObject({ status: 500, code: 'internal' })
    expect(JSON.stringify(problem)).not.toContain('secret')
    expect(faults).toEqual([secret, '/v1/batches'])
  })

  test.each([
    ['/v1/batches/b1/ack', 1024 * 1024],
    ['/v1/batches', 16 * 1024 * 1024],
  ])('%s takes a body of the limit and refuses one byte more', async (path, limit) => {
    const { app } = edge()
    const of = (bytes: number) => post(`{}${' '.repeat(bytes - 2)}`)
    expect((await app.request(path, of(limit))).status).toBe(400)
    const problem = await problemOf(
      app.request(path, {
        ...of(limit + 1),
        headers: { 'content-type': 'application/json', 'content-length': String(limit + 1) },
      }),
    )
    expect(problem).toMatchObject({ status: 413, code: 'body_too_large' })
    expect(problem.detail).toContain(String(limit))
  })
})

describe('who may ask', () => {
  const tokens = [
    { token: 'trainer-token', roles: ['lease'] },
    { token: 'submit-token', roles: ['submit'] },
    { token: 'metrics-token', roles: ['metrics'] },
    { token: 'admin-token' },
  ]

  test.each(['evil.example', 'evil.example:8420', '10.0.0.1:8420', '127.0.0.1.evil.example'])(
    'Host %s is refused on loopback',
    async (host) => {
      const problem = await problemOf(edge().app.request('/v1/tasks', { headers: { host } }))
      expect(problem.status).toBe(403)
      expect(problem.detail).toContain('server.allowed_hosts')
    },
  )

  test.each(['localhost', 'LOCALHOST:9', '127.0.0.1:8420', '[::1]:8420', 'proxy.example'])(
    'Host %s is served',
    async (host) => {
      const { app } = edge({}, { allowed_hosts: ['proxy.example'] })
      expect((await app.request('/v1/tasks', { headers: { host } })).status).toBe(200)
    },
  )

  test.each([
    ['https://evil.example', 403],
    ['null', 403],
    ['http://localhost:9999', 403],
    ['http://localhost:8420', 200],
    ['https://ops.example', 200],
  ])('a page of Origin %s gets %i', async (origin, status) => {
    const { app } = edge({}, { allowed_origins: ['https://ops.example'] })
    const headers = { host: 'localhost:8420', origin }
    expect((await app.request('/v1/tasks', { headers })).status).toBe(status)
  })

  test.each([
    [undefined, 401],
    ['Bearer wrong-token', 401],
    ['Bearer ', 401],
    ['Basic YTpi', 401],
    // An address that holds the token, as :admin-token@host or admin-user:admin-token@host.
    [`Basic ${btoa(':admin-token')}`, 200],
    [`Basic ${btoa('trainer:admin-token')}`, 200],
    [`Basic ${btoa('admin-token:')}`, 401],
    ['Basic ', 401],
    ['Basic !', 401],
    ['Bearer admin-token', 200],
    ['bearer admin-token', 200],
    ['Bearer admin-token2', 401],
  ])('Authorization: %s gets %i', async (authorization, status) => {
    const { app } = edge({}, { tokens })
    const headers: Record<string, string> = authorization ? { authorization } : {}
    const response = await app.request('/v1/tasks', { headers })
    expect(response.status).toBe(status)
    expect(response.headers.get('www-authenticate')).toBe(status === 401 ? 'Bearer' : null)
  })

  test('the stream without an upgrade says what it expects', async () => {
    const { app } = edge()
    const response = await app.request('/v1/stream')
    expect([response.status, response.headers.get('upgrade')]).toEqual([426, 'websocket'])
    expect(await response.json()).toMatchObject({ code: 'upgrade_required' })
  })

  test.each([
    ['GET', '/v1/batches', ['submit', 'lease']],
    ['POST', '/v1/batches', ['submit']],
    ['GET', '/v1/batches/b1', ['submit', 'lease']],
    ['DELETE', '/v1/batches/b1', ['submit']],
    ['POST', '/v1/batches/b1/lease', ['lease']],
    ['POST', '/v1/batches/b1/ack', ['lease']],
    ['POST', '/v1/batches/b1/nack', ['lease']],
    ['GET', '/v1/batches/b1/events', ['submit', 'lease']],
    ['GET', '/v1/tasks', ['submit', 'lease']],
    ['GET', '/v1/tasks/a/b', ['submit', 'lease']],
    ['GET', '/v1/episodes/e', ['submit', 'lease']],
    ['GET', '/v1/episodes/e/tokens', ['submit', 'lease']],
    ['GET', '/v1/batches/b1/groups', ['submit', 'lease']],
    ['GET', '/v1/dashboard', ['metrics']],
    ['GET', '/v1/dashboard/annotations', ['metrics']],
    ['GET', '/v1/dashboard/figures', ['metrics']],
    ['GET', '/v1/dashboard/panels/2', ['metrics']],
    ['POST', '/v1/policy', ['submit']],
    ['POST', '/v1/heartbeat', ['submit', 'lease']],
    ['POST', '/v1/parse', ['submit', 'lease']],
    ['POST', '/v1/advantages', ['submit', 'lease']],
    ['GET', '/metrics', ['metrics']],
    ['GET', '/readyz', ['submit', 'lease', 'metrics']],
  ])('%s %s is for %j and admin', async (method, path, roles) => {
    const { app, service } = edge({}, { tokens })
    service.log.end()
    const statusFor = async (token: string | null) => {
      const headers: Record<string, string> = token ? { authorization: `Bearer ${token}` } : {}
      return (await app.request(path, { method, headers })).status
    }
    for (const { token, roles: granted = ['admin'] } of tokens) {
      const status = await statusFor(token)
      const may = granted.some((role) => role === 'admin' || roles.includes(role))
      if (may) expect([200, 415]).toContain(status)
      else expect(status).toBe(403)
    }
    expect(await statusFor(null)).toBe(401)
  })

  test('health and the description of the routes ask for no token, any other path does', async () => {
    const { app } = edge({}, { tokens })
    for (const path of [
      '/healthz',
      '/health',
      '/openapi.json',
      '/docs',
      '/',
      '/dash',
      '/assets/app.js',
    ])
      expect((await app.request(path)).status).toBe(200)
    expect((await app.request('/v1/nothing')).status).toBe(401)
  })
})

describe('what is told of requests', () => {
  test('the route is its pattern, and other where none matched', async () => {
    const seen: string[] = []
    const { app } = edge(
      {},
      {},
      {
        observe: ({ method, route, status, seconds }) => {
          expect(seconds).toBeGreaterThanOrEqual(0)
          seen.push(`${method} ${route} ${status}`)
        },
      },
    )
    await app.request('/v1/batches/b1')
    await app.request('/v1/batches/nope')
    await app.request('/v1/scan/123')
    await app.request('/v1/batches', { method: 'PUT' })
    expect(seen).toEqual([
      'GET /v1/batches/:id 200',
      'GET /v1/batches/:id 404',
      'GET other 404',
      'PUT other 405',
    ])
  })
})
