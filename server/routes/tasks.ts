// What can be played and what was played: tasks as the model sees them, and the trajectories of episodes.
import { z } from 'zod'
import { idSchema } from '../../protocol/ids.ts'
import { objectSchema, tasksSchema, tokensSchema } from './answers.ts'
import { route } from './route.ts'

const READ = ['submit', 'lease'] as const

const tasks = route({
  method: 'get',
  path: '/v1/tasks',
  tag: 'tasks',
  summary: 'List the tasks of the loaded packs',
  roles: READ,
  query: z.strictObject({ pack: idSchema.optional() }),
  answers: {
    200: { description: 'All of them, not paged', content: { 'application/json': tasksSchema } },
  },
  handle: ({ context, query }, { service }) => context.json({ tasks: service.tasks(query.pack) }),
})

const task = route({
  method: 'get',
  path: '/v1/tasks/:pack/:task',
  tag: 'tasks',
  summary: 'What the model is shown of a task, its services and limits',
  roles: READ,
  query: z.strictObject({}),
  answers: {
    200: {
      description: 'Never grading, hidden strings or transcripts',
      content: { 'application/json': objectSchema },
    },
  },
  handle: async ({ context, params }, { service }) =>
    context.json(await service.task(`${params.pack}/${params.task}`)),
})

const episode = route({
  method: 'get',
  path: '/v1/episodes/:id',
  tag: 'tasks',
  summary: 'The trajectory of a finished episode',
  roles: READ,
  query: z.strictObject({}),
  answers: {
    200: {
      description: 'Messages, calls, observations, rewards, tokens',
      content: { 'application/json': objectSchema },
    },
  },
  async handle({ context, params }, { service }) {
    const bytes = await service.episode(params.id!)
    return context.body(bytes as Uint8Array<ArrayBuffer>, 200, {
      'content-type': 'application/json',
    })
  },
})

const tokens = route({
  method: 'get',
  path: '/v1/episodes/:id/tokens',
  tag: 'tasks',
  summary: 'The token chains of a finished episode',
  roles: READ,
  query: z.strictObject({}),
  answers: {
    200: {
      description: 'Ids, their texts, mask, log-probabilities and policy versions, chain by chain',
      content: { 'application/json': tokensSchema },
    },
  },
  async handle({ context, params }, { service }) {
    const bytes = await service.tokens(params.id!)
    return context.body(bytes as Uint8Array<ArrayBuffer>, 200, {
      'content-type': 'application/json',
    })
  },
})

const explain = route({
  method: 'get',
  path: '/v1/groups/:id/explain',
  tag: 'tasks',
  summary: 'Why each advantage of a finished group is what it is',
  roles: READ,
  query: z.strictObject({}),
  answers: {
    200: {
      description:
        'Votes, excluded members with their reason, mean, std, components, anchor groups and their sizes; a sentence for each member',
      content: { 'application/json': objectSchema },
    },
  },
  handle: async ({ context, params }, { service }) =>
    context.json(await service.explain(params.id!)),
})

export const taskRoutes = [tasks, task, episode, tokens, explain]
