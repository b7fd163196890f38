// vLLM's requests as they come over the wire: chat and token completions, tokenize, models.
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { type Ask, readPromptForm } from '../policy/completion.ts'
import type { Chat, Model } from '../policy/model.ts'
import { parse, RefusedRequest } from './refused.ts'

const chatPartSchema = z.looseObject({
  messages: z.array(z.looseObject({ role: z.string() })).min(1),
  tools: z.array(z.unknown()).nullish(),
  tool_choice: z.unknown().optional(),
  add_generation_prompt: z.boolean().default(true),
  continue_final_message: z.boolean().default(false),
  chat_template_kwargs: z.record(z.string(), z.unknown()).nullish(),
})

const samplingPartSchema = z.looseObject({
  model: z.string().nullish(),
  seed: z.int().nullish(),
  temperature: z.number().min(0).nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  max_tokens: z.int().min(1).nullish(),
  n: z.literal(1).nullish(),
  stop: z.union([z.string(), z.array(z.string())]).nullish(),
  stop_token_ids: z.array(z.int()).nullish(),
  skip_special_tokens: z.boolean().default(true),
  include_stop_str_in_output: z.boolean().default(false),
  return_token_ids: z.boolean().nullish(),
  return_tokens_as_token_ids: z.boolean().nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  request_id: z.string().nullish(),
})

export const chatSchema = samplingPartSchema.extend({
  ...chatPartSchema.shape,
  max_completion_tokens: z.int().min(1).nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.int().min(0).max(20).nullish(),
})

const completionSchema = samplingPartSchema.extend({
  prompt: z.union([z.string(), z.array(z.int()), z.array(z.array(z.int())).length(1)]),
  logprobs: z.int().min(0).max(20).nullish(),
})

const tokensSchema = z.looseObject({
  model: z.string().nullish(),
  request_id: z.string().nullish(),
  token_ids: z.array(z.int()).min(1),
  sampling_params: samplingPartSchema.extend({ logprobs: z.int().min(0).max(20).nullish() }),
  stream: samplingPartSchema.shape.stream,
  stream_options: samplingPartSchema.shape.stream_options,
})

/** How the reply is to be written; `kind` says the endpoint, `tokens` being /inference/v1/generate. */
export interface VllmForm {
  kind: 'chat' | 'completions' | 'tokens'
  id: string
  model: string
  /** How many alternatives each place shows; null where no log-probabilities are asked for. */
  topLogprobs: number | null
  tokenIds: boolean
  tokensAsIds: boolean
  stream: boolean
  streamUsage: boolean
}

/** The model behind the endpoints, under the name they know it by. */
export interface Served {
  model: Model
  name: string
  maxModelLen: number
}

/** `POST /v1/chat/completions`. `withTools` false renders as an engine does that forgets the tools. */
export function readChat(body: unknown, served: Served, withTools: boolean) {
  const request = parse(chatSchema, body)
  refuseToolChoice(request.tools, request.tool_choice)
  const promptText = renderChat(served.model, chatOf(request, withTools))
  const prompt = { promptText, promptIds: served.model.encode(promptText) }
  const form = formOf('chat', request, served, {
    topLogprobs: request.logprobs ? (request.top_logprobs ?? 0) : null,
  })
  const maxTokens = request.max_completion_tokens ?? request.max_tokens ?? null
  return { form, ask: askOf(request, prompt, maxTokens, served) }
}

/** `POST /v1/completions`, one prompt as text or token ids. */
export function readCompletion(body: unknown, served: Served) {
  const request = parse(completionSchema, body)
  const given = typeof request.prompt === 'string' ? request.prompt : request.prompt.flat()
  const prompt = readPromptForm(served.model, given)
  const form = formOf('completions', request, served, { topLogprobs: request.logprobs ?? null })
  // 16 is the completions API's own default.
  return { form, ask: askOf(request, prompt, request.max_tokens ?? 16, served) }
}

/** `POST /inference/v1/generate`: sampling parameters stand apart, and log-probabilities name their tokens by id. */
export function readTokens(body: unknown, served: Served) {
  const { sampling_params, token_ids, ...request } = parse(tokensSchema, body)
  const prompt = readPromptForm(served.model, token_ids)
  const asked = { ...sampling_params, ...request, return_token_ids: true }
  const topLogprobs = sampling_params.logprobs ?? null
  const form = formOf('tokens', asked, served, { topLogprobs })
  const ask = askOf(asked, prompt, sampling_params.max_tokens ?? null, served)
  return { form: { ...form, tokensAsIds: true }, ask }
}

const tokenizeSchema = z.union([
  chatPartSchema,
  z.looseObject({ prompt: z.string(), messages: z.undefined().optional() }),
])

/** `POST /tokenize` of a prompt or of a conversation. */
export function tokenize(body: unknown, { model, maxModelLen }: Served) {
  const request = parse(tokenizeSchema, body)
  const text =
    request.messages === undefined
      ? (request.prompt as string)
      : renderChat(model, chatOf(request as z.output<typeof chatPartSchema>, true))
  const tokens = model.encode(text)
  return { count: tokens.length, max_model_len: maxModelLen, tokens, token_strs: null }
}

/** `POST /detokenize`. */
export function detokenize(body: unknown, { model }: Served) {
  const { tokens } = parse(z.looseObject({ tokens: z.array(z.int()) }), body)
  return { prompt: model.decode(tokens) }
}

/** `GET /v1/models`. */
export function listModels({ name, maxModelLen }: Served) {
  const created = Math.floor(Date.now() / 1000)
  const card = { id: name, object: 'model', created, owned_by: 'vllm', root: name, parent: null }
  return { object: 'list', data: [{ ...card, max_model_len: maxModelLen, permission: [] }] }
}

/** Without a tool parser vLLM refuses to choose; `none`, or no word on it, leaves the calls in the text. */
function refuseToolChoice(tools: unknown, choice: unknown): void {
  if (!Array.isArray(tools) || choice === undefined || choice === null || choice === 'none') return
  const wanted = typeof choice === 'string' ? choice : 'named'
  throw new RefusedRequest(
    `"${wanted}" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set`,
  )
}

export function chatOf(request: z.output<typeof chatPartSchema>, withTools: boolean): Chat {
  return {
    messages: request.messages,
    tools: withTools ? (request.tools ?? null) : null,
    addGenerationPrompt: request.add_generation_prompt && !request.continue_final_message,
    continueFinalMessage: request.continue_final_message,
    kwargs: request.chat_template_kwargs ?? {},
  }
}

export function renderChat(model: Model, chat: Chat): string {
  try {
    return model.render(chat)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new RefusedRequest(`the chat template failed: ${reason}`)
  }
}

export function askOf(
  request: z.output<typeof samplingPartSchema>,
  prompt: Pick<Ask, 'promptIds' | 'promptText'>,
  maxTokens: number | null,
  { name, maxModelLen }: Served,
): Ask {
  if (request.model && request.model !== name)
    throw new RefusedRequest(`The model \`${request.model}\` does not exist.`, 404, 'NotFoundError')
  const length = prompt.promptIds.length
  const room = maxModelLen - length
  if (room < (maxTokens ?? 1)) refuseLength(length, maxTokens ?? 1, maxModelLen)
  return {
    ...prompt,
    seed: request.seed ?? null,
    temperature: request.temperature ?? 1,
    topP: request.top_p ?? 1,
    maxTokens: maxTokens ?? room,
    stop: typeof request.stop === 'string' ? [request.stop] : (request.stop ?? []),
    stopTokenIds: request.stop_token_ids ?? [],
    keepStop: request.include_stop_str_in_output,
    skipSpecial: request.skip_special_tokens,
  }
}

/** vLLM's sentence for a prompt that leaves no room for what was asked. */
function refuseLength(prompt: number, completion: number, maxModelLen: number): never {
  throw new RefusedRequest(
    `This model's maximum context length is ${maxModelLen} tokens. However, you requested ${prompt + completion} tokens (${prompt} in the messages, ${completion} in the completion). Please reduce the length of the messages or completion.`,
  )
}

function formOf(
  kind: VllmForm['kind'],
  request: z.output<typeof samplingPartSchema>,
  { name }: Served,
  { topLogprobs }: { topLogprobs: number | null },
): VllmForm {
  const prefix = { chat: 'chatcmpl', completions: 'cmpl', tokens: 'generate-tokens' }[kind]
  return {
    kind,
    id: `${prefix}-${request.request_id ?? randomUUID().replaceAll('-', '')}`,
    model: name,
    topLogprobs,
    tokenIds: request.return_token_ids === true,
    tokensAsIds: request.return_tokens_as_token_ids === true,
    stream: request.stream === true,
    streamUsage: request.stream_options?.include_usage === true,
  }
}
