// Batches: submit, watch, cancel; lease finished groups, acknowledge them or hand them back; follow the events.
import { accepts } from 'hono/accepts'
import { z } from 'zod'
import { batchAcceptedSchema, batchRequestSchema } from '../../protocol/batch.ts'
import { PaddockError } from '../../protocol/errors.ts'
import { ackRequestSchema, leaseRequestSchema } from '../../protocol/group.ts'
import { evaluationSettingsSchema } from '../../reward/evaluation.ts'
import { checkResume, eventStream } from '../sse.ts'
import {
  ackAnswerSchema,
  batchesSchema,
  groupPageSchema,
  leaseAnswerSchema,
  objectSchema,
  progressSchema,
} from './answers.ts'
import { type Answer, route } from './route.ts'

const tag = 'batches'
const READ = ['submit', 'lease'] as const
const noQuery = z.strictObject({})
const json = (description: string, schema: z.ZodType): Answer => ({
  description,
  content: { 'application/json': schema },
})

const submit = route({
  method: 'post',
  path: '/v1/batches',
  tag,
  summary: 'Submit a batch',
  description:
    'Idempotent by id: the same id with the same body is the same batch, with another body a conflict.',
  roles: ['submit'],
  query: noQuery,
  body: batchRequestSchema,
  largeBody: true,
  example: {
    id: 'step-41',
    tasks: [{ task: 'office/dev-01-overdue-premium-invoices', seed: 7 }],
    group_size: 8,
    policy: { backend: 'main', sampling: { temperature: 1, max_tokens: 1024 } },
    reward: { reads: ['score'] },
  },
  answers: { 202: json('The batch is admitted', batchAcceptedSchema) },
  async handle({ context, body }, { service }) {
    return context.json(await service.submit(body), 202)
  },
})

const list = route({
  method: 'get',
  path: '/v1/batches',
  tag,
  summary: 'List batches with their progress',
  roles: READ,
  query: noQuery,
  answers: { 200: json('Every batch that the server knows', batchesSchema) },
  handle: ({ context }, { service }) => context.json({ batches: service.batches() }),
})

const progress = route({
  method: 'get',
  path: '/v1/batches/:id',
  tag,
  summary: 'Progress of a batch',
  roles: READ,
  query: noQuery,
  answers: { 200: json('Episodes by outcome, groups by verdict, tokens, seconds', progressSchema) },
  handle: ({ context, params }, { service }) => context.json(service.progress(params.id!)),
})

const groups = route({
  method: 'get',
  path: '/v1/batches/:id/groups',
  tag,
  summary: 'List the groups of a batch',
  description: 'How each stands, and what its members came to; those that run too.',
  roles: READ,
  query: z.strictObject({
    offset: z.coerce.number().pipe(z.int().min(0)).default(0),
    limit: z.coerce.number().pipe(z.int().min(1).max(200)).default(50),
  }),
  answers: { 200: json('Up to limit groups from place offset on', groupPageSchema) },
  handle: async ({ context, params, query }, { service }) =>
    context.json(await service.groups(params.id!, query)),
})

const cancel = route({
  method: 'delete',
  path: '/v1/batches/:id',
  tag,
  summary: 'Cancel a batch',
  roles: ['submit'],
  query: noQuery,
  answers: { 200: json('Its progress after the cancellation', progressSchema) },
  handle: async ({ context, params }, { service }) =>
    context.json(await service.cancel(params.id!)),
})

const resume = route({
  method: 'post',
  path: '/v1/batches/:id/resume',
  tag,
  summary: 'Let a paused batch go on',
  description:
    'A batch pauses when its first group breaks the contract or cannot be graded, and when too few of its groups are worth their cost; its progress says why. The next group is checked again.',
  roles: ['submit'],
  query: noQuery,
  answers: { 200: json('Its progress after that', progressSchema) },
  handle: async ({ context, params }, { service }) =>
    context.json(await service.resume(params.id!)),
})

const numbers = z
  .string()
  .regex(/^\d{1,4}(,\d{1,4})*$/, 'expected numbers with commas between, as 1,8')
  .transform((text) => text.split(',').map(Number))

const evaluation = route({
  method: 'get',
  path: '/v1/batches/:id/evaluation',
  tag,
  summary: 'What an evaluation came to',
  description:
    'Over the groups of a batch in mode eval that are over: pass@k, the three numbers called pass^k, mean rewards by family and task, standard errors clustered by task and bootstrap intervals (both null where there is one task, or no two of a family differ); episodes without reward apart. `k` is a list as 1,8 (default: 1 and the group size).',
  roles: READ,
  query: z.strictObject({
    k: numbers.pipe(evaluationSettingsSchema.shape.k).optional(),
    threshold: z.coerce.number().pipe(z.number()).optional(),
    seed: z.coerce.number().pipe(z.int().min(0)).optional(),
    resamples: z.coerce.number().pipe(z.int().min(100).max(10_000)).optional(),
    level: z.coerce.number().pipe(z.number().gt(0).lt(1)).optional(),
  }),
  answers: { 200: json('Rates, means and intervals', objectSchema) },
  handle: async ({ context, params, query }, { service }) => {
    const { k, ...given } = query
    const settings = evaluationSettingsSchema.omit({ k: true }).parse(given)
    return context.json(await service.evaluation(params.id!, { ...settings, ...(k && { k }) }))
  },
})

const MSGPACK = 'application/msgpack'

const lease = route({
  method: 'post',
  path: '/v1/batches/:id/lease',
  tag,
  summary: 'Lease finished groups',
  description:
    'Waits up to wait_s for a first group. With `Accept: application/msgpack` the same map comes as MessagePack, token arrays as little-endian bin.',
  roles: ['lease'],
  query: noQuery,
  body: leaseRequestSchema,
  example: { max: 4, lease_s: 60, wait_s: 20 },
  answers: {
    200: {
      description: 'Up to max groups; done when nothing runs, is ready or is leased any more',
      content: { 'application/json': leaseAnswerSchema, [MSGPACK]: null },
    },
  },
  async handle({ context, params, body, signal }, { service }) {
    const type = accepts(context, {
      header: 'Accept',
      supports: ['application/json', MSGPACK],
      default: 'application/json',
    })
    const encoding = type === MSGPACK ? 'msgpack' : 'json'
    const answer = await service.lease(params.id!, body, encoding, signal)
    return context.body(answer.body as Uint8Array<ArrayBuffer>, 200, { 'content-type': type })
  },
})

const ack = route({
  method: 'post',
  path: '/v1/batches/:id/ack',
  tag,
  summary: 'Acknowledge leased groups',
  roles: ['lease'],
  query: noQuery,
  body: ackRequestSchema,
  example: { groups: [{ id: 'step-41.g0', lease: 'the id of its lease' }] },
  answers: { 200: json('What it came to, group by group', ackAnswerSchema) },
  handle: async ({ context, params, body }, { service }) =>
    context.json({ groups: await service.ack(params.id!, body) }),
})

const nack = route({
  method: 'post',
  path: '/v1/batches/:id/nack',
  tag,
  summary: 'Hand leased groups back',
  roles: ['lease'],
  query: noQuery,
  body: ackRequestSchema,
  example: {
    groups: [{ id: 'step-41.g0', lease: 'the id of its lease' }],
    reason: 'out of memory',
  },
  answers: { 200: json('What it came to, group by group', ackAnswerSchema) },
  handle: async ({ context, params, body }, { service }) =>
    context.json({ groups: await service.nack(params.id!, body) }),
})

const events = route({
  method: 'get',
  path: '/v1/batches/:id/events',
  tag,
  summary: 'Follow the events of a batch',
  description:
    'Server-sent events from number `after` (or the Last-Event-ID header, which wins) on; 0 begins with the oldest that is kept. The stream ends when the batch is done.',
  roles: READ,
  query: z.strictObject({
    after: z
      .string()
      .regex(/^\d{1,15}$/, 'expected the number of an event')
      .default('0'),
  }),
  answers: {
    200: { description: 'The events', content: { 'text/event-stream': z.string() } },
    204: { description: 'Nothing is left and nothing will come: an EventSource stops here' },
    410: { description: 'The next event is no longer kept' },
  },
  handle({ context, params, query }, { service, closing, config }) {
    const log = service.events(params.id!)
    const after = Number(lastEventId(context.req.header('last-event-id')) ?? query.after)
    checkResume(log, after)
    if (log.ended && after === log.newest && after > 0) return context.body(null, 204)
    return context.body(eventStream(log, after, closing, 1000 * config.server.heartbeat_s), 200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      // Tells nginx not to hold events back.
      'x-accel-buffering': 'no',
    })
  },
})

function lastEventId(header: string | undefined): string | undefined {
  if (header === undefined || header === '' || /^\d{1,15}$/.test(header)) return header || undefined
  throw new PaddockError(
    'invalid_request',
    `Last-Event-ID: expected the number of an event, found ${JSON.stringify(header.slice(0, 80))}`,
  )
}

export const batchRoutes = [
  submit,
  list,
  progress,
  groups,
  cancel,
  resume,
  evaluation,
  lease,
  ack,
  nack,
  events,
]
