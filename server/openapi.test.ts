// The OpenAPI document and the page that shows it.
import { describe, expect, test } from 'vitest'
import { createApp } from './app.ts'
import { loadConfig } from './config.ts'
import { createStubService } from './stub-service.testkit.ts'

const service = createStubService()
service.ready.push('{"id":"g1"}')
const app = createApp(service, loadConfig({ file: null }))
const response = await app.request('/openapi.json')
// biome-ignore lint/suspicious/noExplicitAny: a document of no fixed type
const document = (await response.json()) as any

describe('/openapi.json', () => {
  test('it lists every route', () => {
    const routes = Object.entries<object>(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    )
    expect(routes.sort()).toEqual([
      'DELETE /rollout/task/{id}',
      'DELETE /v1/batches/{id}',
      'GET /events',
      'GET /rollout/status',
      'GET /rollout/task/{id}',
      'GET /tasks',
      'GET /tasks/{id}/sessions',
      'GET /v1/batches',
      'GET /v1/batches/{id}',
      'GET /v1/batches/{id}/evaluation',
      'GET /v1/batches/{id}/events',
      'GET /v1/batches/{id}/groups',
      'GET /v1/dashboard',
      'GET /v1/dashboard/annotations',
      'GET /v1/dashboard/figures',
      'GET /v1/dashboard/panels/{id}',
      'GET /v1/episodes/{id}',
      'GET /v1/episodes/{id}/tokens',
      'GET /v1/groups/{id}/explain',
      'GET /v1/tasks',
      'GET /v1/tasks/{pack}/{task}',
      'POST /admin/inference/pause',
      'POST /admin/inference/resume',
      'POST /admin/sglang/pause',
      'POST /admin/sglang/resume',
      'POST /buffer/write',
      'POST /get_rollout_data',
      'POST /rollout/admin/inference/pause',
      'POST /rollout/admin/inference/resume',
      'POST /rollout/task/submit',
      'POST /start_rollout',
      'POST /v1/advantages',
      'POST /v1/batches',
      'POST /v1/batches/{id}/ack',
      'POST /v1/batches/{id}/lease',
      'POST /v1/batches/{id}/nack',
      'POST /v1/batches/{id}/resume',
      'POST /v1/compat/slime',
      'POST /v1/heartbeat',
      'POST /v1/parse',
      'POST /v1/policy',
    ])
  })

  test('every reference leads to a schema', () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)]
    expect(references.length).toBeGreaterThan(10)
    for (const [, reference] of references) {
      const name = reference!.replace('#/components/schemas/', '')
      expect(Object.keys(document.components.schemas)).toContain(name)
    }
  })

  test('operation ids are unique, and every operation says how it fails', () => {
    const operations = Object.values<object>(document.paths).flatMap((path) => Object.values(path))
    const ids = operations.map((operation) => operation.operationId)
    expect(new Set(ids).size).toBe(ids.length)
    for (const operation of operations)
      expect(operation.responses.default.content).toHaveProperty(['application/problem+json'])
  })

  test('a request is told with its ranges, defaults and whether keys may be added', () => {
    expect(document.components.schemas.LeaseRequest).toMatchObject({
      type: 'object',
      properties: { max: { type: 'integer', minimum: 1, maximum: 1024, default: 1 } },
      additionalProperties: false,
    })
  })

  test('every example of a body is taken by its route', async () => {
    for (const [path, { post }] of Object.entries<Record<string, never>>(document.paths)) {
      const content = (post as { requestBody?: { content: object } } | undefined)?.requestBody
        ?.content as { 'application/json': { example: unknown } } | undefined
      // A task of Polar's needs a policy with token ids: its example is played in dialects/polar.test.ts.
      if (!content || path === '/rollout/task/submit') continue
      const answer = await app.request(path.replace('{id}', 'b1'), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(content['application/json'].example),
      })
      expect([path, answer.ok]).toEqual([path, true])
    }
  })
})

describe('/docs', () => {
  test('page, script, styles and icon come from here, under a policy that lets nothing else in', async () => {
    const page = await app.request('/docs')
    const html = await page.text()
    const assets = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path!)
    expect(assets).toHaveLength(4)
    for (const path of assets) {
      expect(path).toMatch(/^\/docs\//)
      expect((await app.request(path)).status).toBe(200)
    }
    const policy = page.headers.get('content-security-policy')
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("script-src 'self';")
    expect(policy).not.toContain('http')
  })
})
