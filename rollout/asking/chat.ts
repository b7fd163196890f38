// Models beside the policy, over OpenAI's chat form, which vLLM and SGLang both speak: request bytes, and the text of a reply.
import { z } from 'zod'
import type { Message } from '../../protocol/conversation.ts'
import type { JsonObject } from '../../protocol/json.ts'
import { parseJsonBody } from '../../protocol/json-body.ts'
import type { HttpRequest } from '../policy/dialect.ts'
import { jsonRequest } from '../policy/json-request.ts'
import type { HttpReply } from '../request.ts'

/** Who plays the user or judges, and how it is sampled; recorded with what it says. */
export interface ChatPlan {
  backend: string
  model: string
  sampling: { temperature: number; top_p: number; max_tokens: number }
  /** Requests for one answer at most: a reply that cannot be used is asked for again under another seed. */
  attempts: number
  timeoutMs: number
}

export function chatRequest(
  { model, sampling }: ChatPlan,
  messages: readonly Message[],
  seed: number,
  more: JsonObject = {},
): HttpRequest {
  return jsonRequest('/v1/chat/completions', { model, messages, ...sampling, seed, ...more })
}

/** Foreign servers may say more. */
const replySchema = z.looseObject({
  choices: z
    .array(
      z.looseObject({
        message: z.looseObject({ content: z.string() }),
        finish_reason: z.string(),
      }),
    )
    .min(1),
  usage: z
    .looseObject({ prompt_tokens: z.int().min(0), completion_tokens: z.int().min(0) })
    .optional(),
})

export interface ChatUsage {
  prompt_tokens: number
  completion_tokens: number
}

const NO_USAGE: ChatUsage = { prompt_tokens: 0, completion_tokens: 0 }
/** Characters of a refusal that are told. */
const TOLD_CHARACTERS = 200

/** The whole text of a finished answer, or why there is none. Usage is what the backend counted, 0 where it did not. */
export function readChat({ status, body }: HttpReply): {
  text: string | null
  reason: string
  usage: ChatUsage
} {
  const none = (reason: string, usage = NO_USAGE) => ({ text: null, reason, usage })
  if (status === 0) return none(textOf(body))
  if (status < 200 || status > 299) return none(`status ${status}: ${textOf(body) || 'empty body'}`)
  let json: unknown
  try {
    json = parseJsonBody(body)
  } catch (error) {
    return none((error as Error).message)
  }
  const read = replySchema.safeParse(json)
  if (!read.success) {
    const [issue] = read.error.issues
    return none(`${issue?.path.join('.') || 'the reply'}: ${issue?.message}`)
  }
  const { choices, usage = NO_USAGE } = read.data
  const { message, finish_reason } = choices[0]!
  const counted = {
    prompt_tokens: usage.prompt_tokens,
    completion_tokens: usage.completion_tokens,
  }
  if (finish_reason !== 'stop')
    return none(`the answer did not end by itself: finish_reason ${finish_reason}`, counted)
  if (message.content.trim() === '') return none('the answer is empty', counted)
  return { text: message.content, reason: '', usage: counted }
}

/** The beginning of a body as one line. */
export function textOf(body: Uint8Array): string {
  const text = new TextDecoder().decode(body.subarray(0, 4 * TOLD_CHARACTERS))
  return text.replace(/\s+/g, ' ').trim().slice(0, TOLD_CHARACTERS).toWellFormed()
}
