// SGLang's chat endpoint, which renders the conversation: prompt ids and meta_info come with the choice (0.5.13 and later).
import type { Completion, Expectation, PromptTurn } from './dialect.ts'
import { refuseNoCalls, refuseParsed, refuseWithheld } from './engine-parsers.ts'
import { JsonList } from './json-request.ts'
import { onlyChoice, wireMessages } from './openai-form.ts'
import { readArray, readIds, readObject, readText } from './reply.ts'
import { refuseOtherSampling } from './sampling-echo.ts'
import { readSampled } from './sglang-meta.ts'

type JsonRecord = Record<string, unknown>

/**
 * No `tool_choice`: with `none` SGLang leaves the tools out of the prompt. A stop token stays in the ids and leaves the
 * text. Keys as of ChatCompletionRequest (sglang: python/sglang/srt/entrypoints/openai/protocol.py).
 */
export function chatBody(turn: PromptTurn): JsonRecord {
  const { tools, chatTemplateKwargs, sampling, stopTokenIds } = turn
  return {
    model: turn.model,
    messages: wireMessages(turn.messages),
    ...(tools.length > 0 && { tools: new JsonList(tools) }),
    max_tokens: sampling.max_tokens,
    temperature: sampling.temperature,
    top_p: sampling.top_p,
    seed: sampling.seed,
    ...(stopTokenIds.length > 0 && { stop_token_ids: stopTokenIds }),
    skip_special_tokens: false,
    no_stop_trim: false,
    logprobs: true,
    return_meta_info: true,
    return_prompt_token_ids: true,
    ...(Object.keys(chatTemplateKwargs).length > 0 && { chat_template_kwargs: chatTemplateKwargs }),
    stream: false,
  }
}

const PROMPT_IDS = 'prompt_token_ids'

export function readChat(reply: JsonRecord, expect: Expectation): Completion {
  const choice = onlyChoice(reply)
  // It stands with the choice here, beside the text in /generate.
  refuseOtherSampling({ ...reply, meta_info: choice.meta_info }, expect)
  const message = readObject(choice.message, 'message')
  refuseNoCalls(choice.finish_reason, message)
  if (!expect.tokens) refuseParsed(message)
  const meta = readObject(choice.meta_info, 'meta_info')
  const parts = {
    text: readText(message.content, 'content'),
    outputIds: null,
    promptIds: expect.tokens ? readPromptIds(choice, reply) : null,
  }
  const completion = readSampled(meta, parts, expect)
  if (expect.tokens) return completion
  refuseWithheld(message.content, completion)
  return { ...completion, ids: null, logprobs: null, versions: [] }
}

/** Beside the choice in the engine, beside the choices where a gateway moved them. */
function readPromptIds(choice: JsonRecord, reply: JsonRecord): Int32Array {
  const hint = 'return_prompt_token_ids was asked for: SGLang 0.5.13 or later has it'
  const listed = choice[PROMPT_IDS] ?? reply[PROMPT_IDS]
  return readIds(readArray(listed, PROMPT_IDS, hint), PROMPT_IDS)
}
