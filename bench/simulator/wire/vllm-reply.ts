// vLLM's replies: a completion as chat and as text completion, field by field.
import { randomUUID } from 'node:crypto'
import type { Ask, Generation, SampledToken } from '../policy/completion.ts'
import type { Model } from '../policy/model.ts'
import type { VllmForm } from './vllm.ts'

/** The whole reply, as JSON. */
export function writeReply(
  model: Model,
  form: VllmForm,
  ask: Ask,
  generation: Generation,
): unknown {
  const created = Math.floor(Date.now() / 1000)
  const usage = {
    prompt_tokens: generation.usage.prompt,
    total_tokens: generation.usage.prompt + generation.usage.completion,
    completion_tokens: generation.usage.completion,
    prompt_tokens_details: null,
  }
  if (form.kind === 'tokens') return writeTokens(model, form, generation, { created, usage })
  const isChat = form.kind === 'chat'
  const choice = isChat
    ? chatChoice(model, form, generation)
    : { ...completionChoice(model, form, generation), ...promptIdsOf(form, ask, generation) }
  return {
    id: form.id,
    object: isChat ? 'chat.completion' : 'text_completion',
    created,
    model: form.model,
    choices: generation.empty ? [] : [choice],
    service_tier: null,
    system_fingerprint: null,
    usage,
    ...(isChat && { prompt_logprobs: null, ...promptIdsOf(form, ask, generation) }),
    kv_transfer_params: null,
    ...(generation.echoed && { sampling_params: generation.echoed }),
  }
}

/** Ids alone: no text, no prompt. */
function writeTokens(
  model: Model,
  form: VllmForm,
  generation: Generation,
  head: { created: number; usage: object },
): unknown {
  const choice = {
    index: 0,
    logprobs: chatLogprobs(model, form, generation.tokens),
    finish_reason: generation.finish,
    token_ids: generation.ids,
    routed_experts: null,
  }
  return {
    id: form.id,
    model: form.model,
    ...head,
    choices: generation.empty ? [] : [choice],
    prompt_logprobs: null,
    kv_transfer_params: null,
  }
}

function promptIdsOf(form: VllmForm, ask: Ask, generation: Generation) {
  return { prompt_token_ids: form.tokenIds && generation.ids ? ask.promptIds : null }
}

function chatChoice(model: Model, form: VllmForm, generation: Generation) {
  const hasCalls = generation.toolCalls.length > 0
  return {
    index: 0,
    message: {
      role: 'assistant',
      content: hasCalls ? null : generation.text,
      refusal: null,
      annotations: null,
      audio: null,
      function_call: null,
      tool_calls: generation.toolCalls.map(toolCall),
      reasoning_content: generation.reasoning,
    },
    logprobs: chatLogprobs(model, form, generation.tokens),
    finish_reason: generation.finish,
    stop_reason: stopReason(model, generation),
    token_ids: form.tokenIds ? generation.ids : null,
  }
}

function toolCall(call: { name: string; arguments: string }) {
  return {
    id: `chatcmpl-tool-${randomUUID().replaceAll('-', '')}`,
    type: 'function',
    function: call,
  }
}

/** vLLM names a stop string or a stop id of the request; the end of turn is no reason worth a name. */
function stopReason(model: Model, { matched }: Generation): string | number | null {
  return matched === model.endId ? null : matched
}

function chatLogprobs(model: Model, form: VllmForm, tokens: SampledToken[] | null) {
  const count = form.topLogprobs
  if (count === null || tokens === null) return null
  const entry = (id: number, logprob: number | null) => {
    const token = tokenText(model, form, id)
    return { token, logprob, bytes: [...Buffer.from(token)] }
  }
  return {
    content: tokens.map((token) => ({
      ...entry(token.id, token.logprob),
      top_logprobs: token.top.slice(0, count).map(({ id, logprob }) => entry(id, logprob)),
    })),
  }
}

function tokenText(model: Model, form: VllmForm, id: number): string {
  return form.tokensAsIds ? `token_id:${id}` : model.bytes(id).toString()
}

function completionChoice(model: Model, form: VllmForm, generation: Generation) {
  return {
    index: 0,
    text: generation.text,
    logprobs: completionLogprobs(model, form, generation.tokens),
    finish_reason: generation.finish,
    stop_reason: stopReason(model, generation),
    token_ids: form.tokenIds ? generation.ids : null,
    prompt_logprobs: null,
  }
}

function completionLogprobs(model: Model, form: VllmForm, tokens: SampledToken[] | null) {
  const count = form.topLogprobs
  if (count === null || tokens === null) return null
  const texts = tokens.map(({ id }) => tokenText(model, form, id))
  let offset = 0
  const offsets = texts.map((text) => {
    const start = offset
    offset += text.length
    return start
  })
  // The sampled token is always among them, so that 0 alternatives still shows one.
  const tops = tokens.map(({ top }) =>
    Object.fromEntries(
      top
        .slice(0, Math.max(1, count))
        .map(({ id, logprob }) => [tokenText(model, form, id), logprob]),
    ),
  )
  return {
    text_offset: offsets,
    token_logprobs: tokens.map(({ logprob }) => logprob),
    tokens: texts,
    top_logprobs: tops,
  }
}
