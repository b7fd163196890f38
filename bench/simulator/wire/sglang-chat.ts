// SGLang's chat endpoint: as OpenAI's, with the prompt's ids and meta_info beside the answer where they are asked for.
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { Ask, Generation } from '../policy/completion.ts'
import type { Model } from '../policy/model.ts'
import { parse, RefusedRequest } from './refused.ts'
import { finishReason, type SglangForm, writeGenerate } from './sglang.ts'
import { askOf, chatOf, chatSchema, renderChat, type Served } from './vllm.ts'

const sglangChatSchema = chatSchema.extend({
  return_meta_info: z.boolean().default(false),
  return_prompt_token_ids: z.boolean().default(false),
  no_stop_trim: z.boolean().default(false),
})

/** Whether a chat request asks for what only SGLang has. */
export function isSglangChat(body: unknown): boolean {
  const request = body as { return_meta_info?: unknown; return_prompt_token_ids?: unknown } | null
  return request?.return_meta_info === true || request?.return_prompt_token_ids === true
}

/** With `tool_choice: none` the tools are left out of the prompt, and nothing of this can be streamed. */
export function readSglangChat(
  body: unknown,
  served: Served,
  withTools: boolean,
): { form: SglangForm; ask: Ask } {
  const request = parse(sglangChatSchema, body)
  if (request.stream)
    throw new RefusedRequest('return_prompt_token_ids is not supported with streaming.')
  const chat = chatOf(request, withTools && request.tool_choice !== 'none')
  const promptText = renderChat(served.model, chat)
  const prompt = { promptText, promptIds: served.model.encode(promptText) }
  const maxTokens = request.max_completion_tokens ?? request.max_tokens ?? null
  return {
    form: {
      kind: 'sglang-chat',
      id: randomUUID().replaceAll('-', ''),
      model: served.name,
      stream: false,
      logprobs: request.logprobs === true,
      logprobText: true,
      topLogprobs: request.top_logprobs ?? 0,
    },
    ask: { ...askOf(request, prompt, maxTokens, served), keepStop: request.no_stop_trim },
  }
}

export function writeSglangChat(
  model: Model,
  form: SglangForm,
  ask: Ask,
  generation: Generation,
  times: { cached: number; seconds: number },
): unknown {
  const { usage, ids, toolCalls } = generation
  const generated = writeGenerate(model, form, generation, times) as { meta_info: object }
  const calls = toolCalls.map((call) => ({
    id: `call_${randomUUID()}`,
    type: 'function',
    function: call,
  }))
  const choice = {
    index: 0,
    message: {
      role: 'assistant',
      content: calls.length > 0 ? null : generation.text,
      reasoning_content: generation.reasoning,
      tool_calls: calls.length > 0 ? calls : null,
    },
    logprobs: null,
    finish_reason: generation.finish,
    matched_stop: generation.matched,
    // The parser renames the reason in the choice alone.
    meta_info: { ...generated.meta_info, finish_reason: nativeReason(generation) },
    ...(ids && { prompt_token_ids: ask.promptIds }),
  }
  return {
    id: form.id,
    object: 'chat.completion',
    created: Math.floor(Date.now() / 1000),
    model: form.model,
    choices: generation.empty ? [] : [choice],
    usage: {
      prompt_tokens: usage.prompt,
      total_tokens: usage.prompt + usage.completion,
      completion_tokens: usage.completion,
    },
    metadata: { weight_version: generation.version },
  }
}

function nativeReason(generation: Generation) {
  return finishReason(
    generation.finish === 'tool_calls' ? { ...generation, finish: 'stop' } : generation,
  )
}
