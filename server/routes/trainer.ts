// What a trainer tells: the policy version that a backend serves, and that it is alive.
import { z } from 'zod'
import { idSchema } from '../../protocol/ids.ts'
import { objectSchema } from './answers.ts'
import { route } from './route.ts'

const policyRequestSchema = z
  .strictObject({
    backend: idSchema.default('main'),
    version: z.int().min(0).optional(),
    /** A training that starts again: `version` may be any, and groups begun before are never leased. */
    new_epoch: z.boolean().optional(),
    pause: z.boolean().optional(),
  })
  .refine((request) => request.version !== undefined || request.pause !== undefined, {
    message: 'give version, pause, or both',
  })
  .refine((request) => !request.new_epoch || request.version !== undefined, {
    message: 'new_epoch goes with the version that the new training starts at',
    path: ['new_epoch'],
  })
  .meta({ id: 'PolicyRequest' })

const heartbeatSchema = z
  .strictObject({
    step: z.int().min(0),
    checkpoint_step: z
      .int()
      .min(0)
      .optional()
      .describe(
        'Of the newest durable checkpoint; without it none is known, or the one that was told before.',
      ),
  })
  .meta({ id: 'Heartbeat' })

const policy = route({
  method: 'post',
  path: '/v1/policy',
  tag: 'trainer',
  summary: 'Announce a policy version, or pause a backend for a weight update',
  roles: ['submit'],
  query: z.strictObject({}),
  body: policyRequestSchema,
  example: { backend: 'main', version: 42, pause: false },
  answers: {
    200: {
      description: 'What the server now knows of the backend',
      content: { 'application/json': objectSchema },
    },
  },
  handle: async ({ context, body }, { service }) =>
    context.json(await service.announcePolicy(body)),
})

const heartbeat = route({
  method: 'post',
  path: '/v1/heartbeat',
  tag: 'trainer',
  summary: 'Say that the trainer is alive, and at which step',
  roles: ['submit', 'lease'],
  query: z.strictObject({}),
  body: heartbeatSchema,
  example: { step: 41, checkpoint_step: 40 },
  answers: {
    200: {
      description: 'What was understood',
      content: { 'application/json': objectSchema },
    },
  },
  handle: ({ context, body }, { service }) => context.json(service.heartbeat(body)),
})

export const trainerRoutes = [policy, heartbeat]
