// Polar's rollout server as slime_bridge calls it: submit, status, delete, pause, and what dashboards read.
import { z } from 'zod'
import type { Config } from '../config.ts'
import { type Answer, type Route, route } from '../routes/route.ts'
import type { Service } from '../service.ts'
import { eventStream } from '../sse.ts'
import { foreignBackend } from './foreign-batch.ts'
import type { PolarTasks } from './polar-tasks.ts'

const tag = 'polar'
const noQuery = z.object({})
const JSON_TYPE = { 'content-type': 'application/json' }

/** A body of Polar's own form, which WIRE.md lists; ours are documented at the schemas. */
const foreign = (description: string): Answer => ({
  description,
  content: { 'application/json': z.looseObject({}) },
})

/** The spellings of three generations of clients: of the gateway's engine, of the gateway, and through the rollout server. */
const PAUSE_PATHS = ['/admin/sglang', '/admin/inference', '/rollout/admin/inference']

export function polarRoutes(service: Service, config: Config, tasks: PolarTasks): Route[] {
  const { open } = config.dialects.polar
  const polled = { tag, open: open !== false, query: noQuery }

  const submit = route({
    method: 'post',
    path: '/rollout/task/submit',
    tag,
    open: open === true,
    summary: "Submit a task of Polar's: one group",
    roles: ['submit'],
    query: noQuery,
    body: z.looseObject({}),
    largeBody: true,
    example: {
      task_id: 'polar-slime-0-0',
      instruction: '',
      num_samples: 8,
      agent: { harness: 'paddock', settings: { task: 'office/dev-04-interview-slot' } },
    },
    answers: { 200: foreign('task_id and status'), 422: foreign('What does not fit, by its path') },
    handle: async ({ context, body }) => context.json(await tasks.submit(body)),
  })

  const status = route({
    ...polled,
    method: 'get',
    path: '/rollout/task/:id',
    summary: 'How a task stands, and its results once it is completed',
    roles: ['submit', 'lease'],
    answers: { 200: foreign('A TaskStatus') },
    handle: async ({ context, params }) =>
      context.body(bytes(await tasks.status(params.id!)), 200, JSON_TYPE),
  })

  const cancel = route({
    ...polled,
    method: 'delete',
    path: '/rollout/task/:id',
    summary: 'Cancel a task',
    roles: ['submit'],
    query: z.object({ register_if_missing: z.string().optional() }),
    answers: { 200: foreign('A TaskStatus') },
    handle: async ({ context, params, query }) => {
      const register = /^(1|true)$/i.test(query.register_if_missing ?? '')
      return context.body(bytes(await tasks.cancel(params.id!, register)), 200, JSON_TYPE)
    },
  })

  const pauses = PAUSE_PATHS.flatMap((path) =>
    [true, false].map((paused) =>
      route({
        ...polled,
        method: 'post',
        path: `${path}/${paused ? 'pause' : 'resume'}`,
        summary: paused ? 'Start no new groups' : 'Start groups again',
        roles: ['submit'],
        query: z.object({ timeout_seconds: z.string().optional() }),
        answers: { 200: foreign('Whether it is paused') },
        handle: async ({ context }) => {
          await service.announcePolicy({
            backend: foreignBackend(config.dialects.polar.batch, config.backends),
            pause: paused,
          })
          return context.json({ status: paused ? 'paused' : 'running', paused, all_paused: paused })
        },
      }),
    ),
  )

  const overview = route({
    ...polled,
    method: 'get',
    path: '/rollout/status',
    summary: 'How many tasks run',
    roles: ['submit', 'lease'],
    answers: { 200: foreign('Counts') },
    handle({ context }) {
      const all = tasks.list()
      const running = all.filter(({ status }) => status === 'running').length
      return context.json({ status: 'ok', running, completed: all.length - running, nodes: [] })
    },
  })

  const list = route({
    ...polled,
    method: 'get',
    path: '/tasks',
    summary: 'The tasks that are kept, newest first',
    roles: ['submit', 'lease'],
    query: z.object({
      status: z.string().optional(),
      limit: z.coerce.number().int().min(1).max(1000).default(200),
    }),
    answers: { 200: foreign('tasks') },
    handle({ context, query }) {
      const wanted = tasks.list().filter(({ status }) => status === (query.status ?? status))
      return context.json({ tasks: wanted.toReversed().slice(0, query.limit) })
    },
  })

  const sessions = route({
    ...polled,
    method: 'get',
    path: '/tasks/:id/sessions',
    summary: 'The sessions of a task',
    roles: ['submit', 'lease'],
    answers: { 200: foreign('sessions') },
    handle: ({ context, params }) =>
      context.json({ task_id: params.id!, sessions: tasks.sessions(params.id!) }),
  })

  const events = route({
    ...polled,
    method: 'get',
    path: '/events',
    summary: 'What happens to tasks, from now on',
    roles: ['submit', 'lease'],
    answers: {
      200: { description: 'The events', content: { 'text/event-stream': z.string() } },
    },
    handle: ({ context }, { closing, config }) =>
      context.body(
        eventStream(tasks.events, tasks.events.newest, closing, 1000 * config.server.heartbeat_s),
        200,
        {
          'content-type': 'text/event-stream',
          'cache-control': 'no-store',
        },
      ),
  })

  return [submit, status, cancel, ...pauses, overview, list, sessions, events]
}

function bytes(body: Uint8Array): Uint8Array<ArrayBuffer> {
  return body as Uint8Array<ArrayBuffer>
}
