// slime's rollout buffer over HTTP: the three paths of its own server, with its answers. No error stops its poll.
import { z } from 'zod'
import { PaddockError } from '../../protocol/errors.ts'
import { objectSchema } from '../routes/answers.ts'
import { type Route, route } from '../routes/route.ts'
import { handOver, jsonBody } from './last-byte.ts'
import type { SlimeBuffer } from './slime-buffer.ts'
import { startRequestSchema } from './slime-start.ts'

/** slime's client tries a refused start again at once and for ever: the pause spares both sides. */
const REFUSED_PAUSE_MS = 1000

const tag = 'slime'
const query = z.object({})
const json = (description: string) => ({
  description,
  content: { 'application/json': objectSchema },
})

export function slimeRoutes(buffer: SlimeBuffer, open: boolean): Route[] {
  const start = route({
    method: 'post',
    path: '/start_rollout',
    tag,
    summary: 'slime: begin a rollout, or go on with one after a restart',
    roles: ['submit'],
    open,
    query,
    body: startRequestSchema,
    example: {
      task_type: 'arithmetic',
      num_repeat_per_sample: '8',
      num_epoch: '3',
      remote_engine_url: 'http://127.0.0.1:30000',
      sampling_params: { max_tokens: 1024, temperature: 1, top_p: 1 },
      skip_instance_ids: [],
    },
    largeBody: true,
    answers: { 200: json('The rollout is under way') },
    async handle({ context, body }) {
      try {
        return context.json(await buffer.start(body))
      } catch (error) {
        await new Promise((resolve) => setTimeout(resolve, REFUSED_PAUSE_MS))
        throw error
      }
    },
  })

  const poll = route({
    method: 'post',
    path: '/get_rollout_data',
    tag,
    summary: 'slime: the groups that are ready',
    description: 'The next poll acknowledges what this one answered, if its last byte went out.',
    roles: ['lease'],
    open,
    query,
    answers: { 200: json('Items of whole groups; success is false where none is ready') },
    async handle({ context }) {
      const { body, handover } = await buffer.poll()
      return handover ? handOver(context, body, handover) : jsonBody(context, body)
    },
  })

  const write = route({
    method: 'post',
    path: '/buffer/write',
    tag,
    summary: 'slime: an item of a worker of the trainer’s own',
    roles: ['submit'],
    open,
    query,
    body: z.unknown(),
    example: {
      uid: 'w-1',
      instance_id: 'mine-1',
      messages: [{ role: 'assistant', content: '4' }],
      reward: 1,
      extra_info: {},
    },
    largeBody: true,
    answers: { 200: json('The item, as it was taken'), 500: json('Why it was not') },
    async handle({ context, body }) {
      try {
        await buffer.write(body)
      } catch (error) {
        if (!(error instanceof PaddockError)) throw error
        const where = error.path && `${error.path}: `
        return context.json({ detail: `Write failed: ${where}${error.message}` }, 500)
      }
      const message = 'Data has been successfully written to buffer'
      const data = { data: [body as object], meta_info: 'write to buffer' }
      return context.json({ success: true, message, data })
    },
  })

  return [start, poll, write]
}
