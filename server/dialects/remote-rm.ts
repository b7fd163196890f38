// slime's `--rm-type remote_rm`: a response and a label in, the bare reward out; what cannot be graded is an error.
import { z } from 'zod'
import { PaddockError } from '../../protocol/errors.ts'
import { isScored } from '../../protocol/outcomes.ts'
import { type Route, route } from '../routes/route.ts'
import type { SlimeSettings } from './settings.ts'

/** A sample's response may still end in the token that ended it. */
const END_OF_TURN = /(<\|im_end\|>|<\|endoftext\|>)\s*$/

/** slime's prompt is text, or a list of messages. */
const promptSchema = z.union([
  z.string(),
  z.array(z.looseObject({ role: z.string(), content: z.unknown() })),
])

/** slime/rollout/rm_hub: the three keys, others ignored. */
const requestSchema = z
  .object({
    prompt: promptSchema.nullish(),
    response: z.string(),
    label: z.union([z.string().min(1), z.int().transform(String)]),
  })
  .meta({ id: 'RemoteRm' })

export function remoteRmRoute({ open, batch: { policy } }: SlimeSettings): Route {
  return route({
    method: 'post',
    path: '/v1/compat/slime',
    tag: 'slime',
    summary: 'slime: the reward of a response (--rm-type remote_rm)',
    description:
      'The label is the id of a task of the pack (which may be left out where the id names it), or the reference answer to the prompt. The response is played as an episode of one turn, its calls too. An answer is a number: what could not be graded is 422, or 503 where another try may help.',
    roles: ['submit'],
    open,
    query: z.object({ pack: z.string().min(1).optional() }),
    body: requestSchema,
    largeBody: true,
    example: { prompt: 'How many?', response: 'There are 42 left.', label: 'arithmetic/sum-0' },
    answers: {
      200: { description: 'The reward', content: { 'application/json': z.number() } },
    },
    async handle({ context, query, body }, { service }) {
      const graded = await service.grade({
        pack: query.pack ?? packOf(body.label),
        label: body.label,
        prompt: textOf(body.prompt),
        response: body.response.replace(END_OF_TURN, ''),
        reading: {
          toolFormat: policy.tool_format ?? 'hermes',
          thinking: policy.thinking ?? 'none',
          leniencies: policy.leniencies,
          controlTokens: policy.control_tokens,
        },
      })
      const { outcome, reason, reward } = graded
      if (isScored(outcome) && reward !== null) return context.json(reward)
      const again = outcome.startsWith('infra') || outcome === 'timeout' || outcome === 'aborted'
      throw new PaddockError(
        again ? 'not_graded' : 'invalid_task',
        `${outcome}: ${reason ?? 'the response was not graded'}`,
      )
    },
  })
}

function packOf(label: string): string {
  if (label.includes('/')) return label.slice(0, label.indexOf('/'))
  const sentence = 'expected ?pack=NAME, or a label that names the pack, as arithmetic/sum-0'
  throw new PaddockError('invalid_request', sentence, { path: 'pack' })
}

/** The last that was said to the policy. */
function textOf(prompt: z.output<typeof promptSchema> | null | undefined): string {
  if (typeof prompt === 'string') return prompt
  const last = prompt?.at(-1)?.content
  return typeof last === 'string' ? last : ''
}
