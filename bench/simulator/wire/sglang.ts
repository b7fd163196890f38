// SGLang's wire form: /generate and the weight version.
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { type Ask, type Generation, readPromptForm } from '../policy/completion.ts'
import type { Model } from '../policy/model.ts'
import { parse, RefusedRequest } from './refused.ts'
import type { Served } from './vllm.ts'

const stringsSchema = z.union([z.string(), z.array(z.string())])

const generateSchema = z.looseObject({
  rid: z.string().nullish(),
  text: z.string().nullish(),
  input_ids: z.array(z.int()).nullish(),
  sampling_params: z
    .looseObject({
      max_new_tokens: z.int().min(1).default(128),
      temperature: z.number().min(0).default(1),
      top_p: z.number().gt(0).max(1).default(1),
      stop: stringsSchema.nullish(),
      stop_token_ids: z.array(z.int()).nullish(),
      skip_special_tokens: z.boolean().default(true),
      no_stop_trim: z.boolean().default(false),
      sampling_seed: z.int().nullish(),
    })
    .prefault({}),
  return_logprob: z.boolean().default(false),
  return_text_in_logprobs: z.boolean().default(false),
  top_logprobs_num: z.int().min(0).default(0),
  stream: z.boolean().default(false),
})

/** How the reply is to be written. */
export interface SglangForm {
  kind: 'generate' | 'sglang-chat'
  id: string
  /** Name under which the model is served, for the chat form. */
  model: string
  stream: boolean
  logprobs: boolean
  logprobText: boolean
  topLogprobs: number
}

/** `POST /generate` of one prompt. */
export function readGenerate(
  body: unknown,
  { model, name, maxModelLen }: Served,
): { form: SglangForm; ask: Ask } {
  const request = parse(generateSchema, body)
  const params = request.sampling_params
  const prompt = readPromptForm(model, request.input_ids ?? request.text ?? '')
  const length = prompt.promptIds.length
  if (length === 0) throw new RefusedRequest('expected text or input_ids, got neither')
  refuseLength(length, params.max_new_tokens, maxModelLen)
  return {
    form: {
      kind: 'generate',
      id: request.rid ?? randomUUID().replaceAll('-', ''),
      model: name,
      stream: request.stream,
      logprobs: request.return_logprob,
      logprobText: request.return_text_in_logprobs,
      topLogprobs: request.top_logprobs_num,
    },
    ask: {
      ...prompt,
      seed: params.sampling_seed ?? null,
      temperature: params.temperature,
      topP: params.top_p,
      maxTokens: params.max_new_tokens,
      stop: typeof params.stop === 'string' ? [params.stop] : (params.stop ?? []),
      stopTokenIds: params.stop_token_ids ?? [],
      keepStop: params.no_stop_trim,
      skipSpecial: params.skip_special_tokens,
    },
  }
}

function refuseLength(prompt: number, completion: number, maxModelLen: number): void {
  if (prompt + completion <= maxModelLen) return
  throw new RefusedRequest(
    `Requested token count exceeds the model's maximum context length of ${maxModelLen} tokens. You requested a total of ${prompt + completion} tokens: ${prompt} tokens from the input messages and ${completion} tokens for the completion.`,
  )
}

/** The whole reply, as JSON. `cached` prompt tokens and the seconds it took are for its meta_info. */
export function writeGenerate(
  model: Model,
  form: SglangForm,
  generation: Generation,
  { cached, seconds }: { cached: number; seconds: number },
): unknown {
  const { ids, version, versions } = generation
  return {
    text: generation.text,
    ...(ids && { output_ids: ids }),
    meta_info: {
      id: form.id,
      finish_reason: finishReason(generation),
      prompt_tokens: generation.usage.prompt,
      ...(version !== null && { weight_version: version, weight_versions: versions }),
      completion_tokens: generation.usage.completion,
      cached_tokens: cached,
      ...(form.logprobs && generation.tokens && logprobs(model, form, generation)),
      e2e_latency: seconds,
      ...(generation.echoed && { sampling_params: generation.echoed }),
    },
  }
}

/** Server-sent events, each with all that was sampled so far. What was bent into no tokens comes in one. */
export function writeGenerateStream(
  model: Model,
  form: SglangForm,
  generation: Generation,
  times: { cached: number; seconds: number },
): string {
  const { ids, tokens } = generation
  const whole = ids?.length ?? 0
  const told = tokens !== null && tokens.length === whole && generation.usage.completion === whole
  const parts = told ? ids!.slice(1).map((_, index) => upTo(model, generation, index + 1)) : []
  return [...parts, generation]
    .map((part) => JSON.stringify(writeGenerate(model, form, part, times)))
    .concat('[DONE]')
    .map((data) => `data: ${data}\n\n`)
    .join('')
}

/** The first `count` tokens of it, on their way. */
function upTo(model: Model, generation: Generation, count: number): Generation {
  const ids = generation.ids?.slice(0, count) ?? []
  return {
    ...generation,
    ids,
    tokens: generation.tokens?.slice(0, count) ?? null,
    text: model.decode(ids, { skipSpecial: true }),
    finish: null,
    usage: { ...generation.usage, completion: count },
    versions: [],
  }
}

export function finishReason({ finish, matched, ids }: Generation) {
  if (finish === null) return null
  if (finish === 'length') return { type: 'length', length: ids?.length ?? 0 }
  if (finish === 'abort') return { type: 'abort', message: 'Abort before prefill or mid-decode' }
  return { type: 'stop', matched }
}

function logprobs(model: Model, form: SglangForm, { tokens, ids }: Generation) {
  const textOf = (id: number) => (form.logprobText ? model.bytes(id).toString() : null)
  const entry = ({ id, logprob }: { id: number; logprob: number | null }) => [
    logprob,
    ids ? id : null,
    textOf(id),
  ]
  return {
    input_token_logprobs: [],
    output_token_logprobs: tokens?.map(entry),
    ...(form.topLogprobs > 0 && {
      output_top_logprobs: tokens?.map(({ top }) => top.slice(0, form.topLogprobs).map(entry)),
    }),
  }
}
