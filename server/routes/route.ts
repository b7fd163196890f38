// What a route is: one definition from which its handler, its checks and its part of the OpenAPI document are made.
import type { Context, Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import type { z } from 'zod'
import type { Bound, ErrorCode } from '../../protocol/errors.ts'
import { parseJsonBody } from '../../protocol/json-body.ts'
import { requireRole } from '../access.ts'
import type { CallbackSender } from '../callback-sender.ts'
import type { Config } from '../config.ts'
import type { Board } from '../dash/board.ts'
import { httpError, invalidRequest } from '../problems.ts'
import { checkSchema } from '../schema-issues.ts'
import type { Service } from '../service.ts'
import type { Role } from '../settings.ts'

/** What every handler works with. */
export interface Edge {
  service: Service
  config: Config
  /** Aborts when the server closes: streams end. */
  closing: AbortSignal
  callbacks: CallbackSender
  board: Board | null
  /** Told of a callback that was not taken, or may not be made. */
  onCallbackFailure(batch: string, reason: string): void
}

/** `roles`: what the caller's token may; for metrics `route`, the path pattern that matched, and `refusal`. */
export type App = Hono<{
  Variables: { roles: readonly Role[]; route: string; refusal?: ErrorCode | Bound }
}>

export interface Answer {
  description: string
  /** Media type to schema; null where the bytes have none. */
  content?: Record<string, z.ZodType | null>
}

export interface Route<
  Query extends z.ZodObject = z.ZodObject,
  Body extends z.ZodType = z.ZodType,
> {
  method: 'get' | 'post' | 'delete'
  /** As Hono writes it: `/v1/batches/:id`. */
  path: string
  tag: string
  summary: string
  description?: string
  /** One of them is needed; `admin` always may. */
  roles: readonly Role[]
  /** True where the settings let everyone in: a dialect whose client sends no token. */
  open?: boolean
  query: Query
  body?: Body
  /** A body that works, for the documentation. */
  example?: unknown
  /** True for a body that holds what models and tools wrote: see parseJsonBody. */
  anyKeys?: boolean
  /** True where a body may be as large as limits.max_body_bytes; else 1 MB. */
  largeBody?: boolean
  answers: Record<number, Answer>
  handle(call: Call<z.output<Query>, z.output<Body>>, edge: Edge): Response | Promise<Response>
}

interface Call<Query, Body> {
  context: Context
  query: Query
  body: Body
  params: Record<string, string>
  /** Aborts when the client is gone. */
  signal: AbortSignal
}

const SMALL_BODY_BYTES = 1024 * 1024

/** Gives a definition its types, so that its handler knows its query and body. */
export function route<Query extends z.ZodObject, Body extends z.ZodType>(
  definition: Route<Query, Body>,
): Route {
  return definition as unknown as Route
}

/** Puts a route into the app: role, then size and type of the body, then schema, then the handler. */
export function mount(app: App, edge: Edge, definition: Route): void {
  const { max_body_bytes } = edge.config.limits
  const maxSize = definition.largeBody ? max_body_bytes : Math.min(SMALL_BODY_BYTES, max_body_bytes)
  app.on(
    definition.method.toUpperCase(),
    definition.path,
    async (context, next) => {
      context.set('route', definition.path)
      if (!definition.open) requireRole(context.get('roles'), definition.roles)
      if (definition.body) checkBodyHeaders(context)
      await next()
    },
    bodyLimit({
      maxSize,
      onError: () => {
        throw httpError(413, `expected a body of at most ${maxSize} bytes`)
      },
    }),
    async (context) => {
      const query = accept(definition.query, context.req.query())
      const body = definition.body
        ? accept(
            definition.body,
            parseJsonBody(new Uint8Array(await context.req.arrayBuffer()), definition),
          )
        : undefined
      const params = context.req.param() as Record<string, string>
      const call = { context, query, body, params, signal: context.req.raw.signal }
      return definition.handle(call, edge)
    },
  )
}

function accept<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const checked = checkSchema(schema, value)
  if (!checked.ok) throw invalidRequest(checked.issues)
  return checked.value
}

/** Any other type than JSON would spare a browser's foreign page the preflight that stops it. */
function checkBodyHeaders(context: Context): void {
  const type = context.req.header('content-type')
  if (!/^application\/json\s*(;|$)/i.test(type ?? ''))
    throw httpError(415, `expected Content-Type: application/json, found ${type ?? 'none'}`)
  const encoding = context.req.header('content-encoding')
  if (encoding !== undefined && encoding !== 'identity')
    throw httpError(415, `expected a body without Content-Encoding, found ${encoding}`)
}
