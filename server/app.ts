// The HTTP edge: every route of the native API over one Service, with the checks that each request passes first.

import type { HttpBindings } from '@hono/node-server'
import { Hono } from 'hono'
import { methodNotAllowed } from 'hono/method-not-allowed'
import { type Bound, type ErrorCode, PaddockError } from '../protocol/errors.ts'
import { type Access, createAccess } from './access.ts'
import { createCallbackSender } from './callback-sender.ts'
import { withCallbacks } from './callbacks.ts'
import type { Config } from './config.ts'
import type { Board } from './dash/board.ts'
import { dialectRoutes } from './dialects/routes.ts'
import { openApiDocument } from './openapi.ts'
import { mountDocs } from './pages/docs.ts'
import { mountPages } from './pages/pages.ts'
import { httpError, isFault, problemOf, problemResponse } from './problems.ts'
import { batchRoutes } from './routes/batches.ts'
import { coreRoutes } from './routes/cores.ts'
import { dashboardRoutes } from './routes/dashboard.ts'
import { mountAlive, mountMetrics, mountReadiness } from './routes/health.ts'
import { type App, type Edge, mount, type Route } from './routes/route.ts'
import { taskRoutes } from './routes/tasks.ts'
import { trainerRoutes } from './routes/trainer.ts'
import type { Service } from './service.ts'
import { VERSION } from './version.ts'

export interface AppOptions {
  /** Told of each answered request; `route` is a path pattern, `other` where none matched. */
  observe?(request: {
    method: string
    route: string
    status: number
    seconds: number
    /** The code of the problem document that it was answered with, or the bound that is full. */
    refusal: ErrorCode | Bound | null
  }): void
  /** Told of each fault of the server, whose cause the client does not see. */
  onFault?(error: unknown, route: string): void
  /** Told of each try of a callback. */
  onCallback?(result: 'delivered' | 'retried' | 'failed'): void
  /** Told of a callback that was not taken, or may not be made. */
  onCallbackFailure?(batch: string, reason: string): void
  /** What /dash draws; without one its routes answer 404. */
  board?: Board
  /** Shared with the WebSockets, whose tokens count as ours do. */
  access?: Access
  /** Ends the event streams; to be aborted before the socket closes. */
  closing?: AbortSignal
}

const ROUTES: readonly Route[] = [
  ...batchRoutes,
  ...taskRoutes,
  ...trainerRoutes,
  ...coreRoutes,
  ...dashboardRoutes,
]

/**
 * The app answers every error with a problem document. A request passes in this order: Host and Origin (403), token
 * (401; open routes of a dialect ask for none), role (403), content type (415), size (413), JSON and schema (400).
 */
export function createApp(service: Service, config: Config, options: AppOptions = {}): App {
  const app: App = new Hono()
  const closing = options.closing ?? new AbortController().signal
  const callbacks = createCallbackSender(config, {
    closing,
    ...(options.onCallback && { onTried: options.onCallback }),
  })
  const onCallbackFailure = options.onCallbackFailure ?? (() => {})
  const called = withCallbacks(service, callbacks, closing, onCallbackFailure)
  const edge: Edge = {
    ...{ service: called, config, closing, callbacks, onCallbackFailure },
    board: options.board ?? null,
  }
  const access = options.access ?? createAccess(config)
  const foreign = dialectRoutes(edge)

  app.use(async (context, next) => {
    const start = performance.now()
    context.set('route', 'other')
    await next()
    const seconds = (performance.now() - start) / 1000
    options.observe?.({
      method: context.req.method,
      route: context.get('route'),
      status: context.res.status,
      seconds,
      refusal: context.get('refusal') ?? null,
    })
  })
  app.use(
    methodNotAllowed({
      app,
      onMethodNotAllowed: (context, methods) => {
        const allow = methods.sort().join(', ')
        const detail = `${context.req.method} ${context.req.path}: expected one of ${allow}`
        return problemResponse(problemOf(httpError(405, detail)), { allow })
      },
    }),
  )
  mountAlive(app)
  // Before the token is asked for: a browser's first page cannot send one, and the routes are no secret.
  const document = openApiDocument([...ROUTES, ...foreign], VERSION)
  app.get('/openapi.json', (context) => {
    context.set('route', '/openapi.json')
    return context.json(document)
  })
  mountDocs(app)
  mountPages(app)
  app.use(async (context, next) => {
    const host = context.req.header('host') ?? new URL(context.req.url).host
    access.checkPeer(host, context.req.header('origin'))
    await next()
  })
  for (const route of foreign.filter(({ open }) => open)) mount(app, edge, route)
  app.use(async (context, next) => {
    // No socket is behind a request of a test.
    const { incoming } = (context.env ?? {}) as Partial<HttpBindings>
    context.set('roles', access.identify(authorizationOf(context.req), incoming?.socket))
    await next()
  })
  mountReadiness(app, edge)
  mountMetrics(app, edge)
  for (const route of [...ROUTES, ...foreign.filter(({ open }) => !open)]) mount(app, edge, route)
  app.get('/v1/stream', (context) => {
    context.set('route', '/v1/stream')
    const detail = 'GET /v1/stream: expected a WebSocket upgrade, as docs/streaming.md describes'
    return problemResponse(problemOf(httpError(426, detail)), { upgrade: 'websocket' })
  })

  app.notFound((context) => {
    const { method, path } = context.req
    const detail = `${method} ${path}: no such route; /openapi.json lists all of them`
    return problemResponse(problemOf(new PaddockError('not_found', detail)))
  })
  app.onError((error, context) => {
    const problem = problemOf(error)
    const isBound = error instanceof PaddockError && error.code === 'queue_full'
    context.set('refusal', isBound ? error.bound : problem.code)
    // A client that goes away in the middle of its body is no fault of ours.
    const gone = context.req.raw.signal.aborted
    if (isFault(problem) && !gone) options.onFault?.(error, context.get('route'))
    return problemResponse(problem)
  })
  return app
}

/** Polar's client has a header of its own for its token. */
function authorizationOf(request: {
  header(name: string): string | undefined
}): string | undefined {
  const token = request.header('x-polar-control-token')
  return request.header('authorization') ?? (token && `Bearer ${token}`)
}
