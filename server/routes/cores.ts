// The pure cores over HTTP: the tool-call parser and the advantage estimators, with the lines of `paddock parse` and `advantages`.
import { z } from 'zod'
import { isPlainObject, type JsonObject } from '../../protocol/json.ts'
import { objectSchema } from './answers.ts'
import { route } from './route.ts'

const ANY = ['submit', 'lease'] as const

/** Passed on as it came: the cores check it themselves, and a copy would lose a key `__proto__`. */
const lineSchema = z
  .custom<JsonObject>(isPlainObject, 'expected an object')
  .meta({ type: 'object' })

const parse = route({
  method: 'post',
  path: '/v1/parse',
  tag: 'cores',
  summary: "Parse the tool calls of a model's text",
  roles: ANY,
  query: z.strictObject({}),
  body: lineSchema,
  anyKeys: true,
  largeBody: true,
  example: {
    id: '1',
    format: 'hermes',
    tools: [],
    text: '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>',
  },
  answers: {
    200: {
      description: 'reasoning, content, calls, errors, flags',
      content: { 'application/json': objectSchema },
    },
  },
  handle: async ({ context, body }, { service }) => context.json(await service.parse(body)),
})

const advantages = route({
  method: 'post',
  path: '/v1/advantages',
  tag: 'cores',
  summary: 'Compute advantages of groups of rewards',
  roles: ANY,
  query: z.strictObject({}),
  body: lineSchema,
  largeBody: true,
  example: {
    name: 'one group',
    estimator: 'grpo',
    settings: {},
    input: { rewards: [1, 0, 0, 1], groups: ['a', 'a', 'a', 'a'] },
  },
  answers: {
    200: {
      description: 'The advantages, with the figures behind them',
      content: { 'application/json': objectSchema },
    },
  },
  handle: async ({ context, body }, { service }) => context.json(await service.advantages(body)),
})

export const coreRoutes = [parse, advantages]
