// vLLM's OpenAI-compatible server: chat completions (it renders), or completions of token ids (Paddock does).
import { isPlainObject } from '../../protocol/json.ts'
import type { Completion, Dialect, Expectation, PolicyFinish, PromptTurn } from './dialect.ts'
import { refuseNoCalls, refuseParsed, refuseWithheld } from './engine-parsers.ts'
import { JsonList, jsonRequest } from './json-request.ts'
import { onlyChoice, readFinish, streamBody, wireMessages } from './openai-form.ts'
import {
  approximateRun,
  checkCompletion,
  type FieldNames,
  readArray,
  readCount,
  readIds,
  readLogprobs,
  readObject,
  readReply,
  readText,
  readVersion,
} from './reply.ts'
import { refuseOtherSampling } from './sampling-echo.ts'
import { joinVllm } from './vllm-stream.ts'

type JsonRecord = Record<string, unknown>

/**
 * `chat`: POST /v1/chat/completions; `tokens`: POST /v1/completions. Ids are the truth (`return_token_ids`, vLLM 0.10.2
 * and later); special tokens are kept in the text, so that it can be compared with them. docs.vllm.ai, "OpenAI-Compatible Server".
 */
export const vllm: Dialect = {
  modes: ['chat', 'tokens'],
  request: (turn) =>
    turn.promptIds === null
      ? jsonRequest('/v1/chat/completions', chatBody(turn))
      : jsonRequest('/v1/completions', completionsBody(turn, turn.promptIds)),
  read: (status, headers, body, expect) =>
    readReply(
      status,
      headers,
      body,
      expect,
      (reply) =>
        expect.promptIds === null ? readChat(reply, expect) : readCompletions(reply, expect),
      joinVllm,
    ),
}

/** `top_logprobs: 0` gives the sampled token's value alone; without it vLLM leaves log-probabilities out. */
function chatBody(turn: PromptTurn): JsonRecord {
  const { tools, chatTemplateKwargs } = turn
  return {
    model: turn.model,
    messages: wireMessages(turn.messages),
    // `none` keeps the engine's own tool parser away; the template still lists the tools.
    ...(tools.length > 0 && { tools: new JsonList(tools), tool_choice: 'none' }),
    ...samplingBody(turn),
    logprobs: true,
    top_logprobs: 0,
    ...(Object.keys(chatTemplateKwargs).length > 0 && { chat_template_kwargs: chatTemplateKwargs }),
  }
}

function completionsBody(turn: PromptTurn, promptIds: Int32Array): JsonRecord {
  return { model: turn.model, prompt: [...promptIds], ...samplingBody(turn), logprobs: 0 }
}

function samplingBody({ sampling, stopTokenIds, stream }: PromptTurn): JsonRecord {
  return {
    max_tokens: sampling.max_tokens,
    temperature: sampling.temperature,
    top_p: sampling.top_p,
    seed: sampling.seed,
    ...(stopTokenIds.length > 0 && { stop_token_ids: stopTokenIds }),
    return_token_ids: true,
    skip_special_tokens: false,
    spaces_between_special_tokens: false,
    ...streamBody(stream),
  }
}

export const CHAT_FIELDS: FieldNames = {
  promptIds: 'prompt_token_ids',
  ids: 'token_ids',
  logprobs: 'logprobs.content',
  promptTokens: 'usage.prompt_tokens',
  completionTokens: 'usage.completion_tokens',
}

function readChat(reply: JsonRecord, expect: Expectation): Completion {
  refuseOtherSampling(reply, expect)
  const choice = onlyChoice(reply)
  const message = readObject(choice.message, 'message')
  const finish = readFinish(choice.finish_reason)
  refuseNoCalls(choice.finish_reason, message)
  if (!expect.tokens) refuseParsed(message)
  const content = isPlainObject(choice.logprobs) ? choice.logprobs.content : choice.logprobs
  const tokens = (): unknown[] => readArray(content, CHAT_FIELDS.logprobs, 'logprobs was asked for')
  const completion = settle(reply, choice, expect, CHAT_FIELDS, {
    finish,
    content: readText(message.content, 'content'),
    promptIds: () => readIdArray(reply.prompt_token_ids, CHAT_FIELDS.promptIds),
    logprobs: () =>
      readLogprobs(
        tokens().map((token) => (isPlainObject(token) ? token.logprob : token)),
        CHAT_FIELDS.logprobs,
      ),
  })
  if (!expect.tokens) refuseWithheld(message.content, completion)
  return completion
}

const COMPLETIONS_FIELDS: FieldNames = { ...CHAT_FIELDS, logprobs: 'logprobs.token_logprobs' }

function readCompletions(reply: JsonRecord, expect: Expectation): Completion {
  refuseOtherSampling(reply, expect)
  const choice = onlyChoice(reply)
  const { promptIds, logprobs: field } = COMPLETIONS_FIELDS
  const values = isPlainObject(choice.logprobs) ? choice.logprobs.token_logprobs : choice.logprobs
  return settle(reply, choice, expect, COMPLETIONS_FIELDS, {
    finish: readFinish(choice.finish_reason),
    content: readText(choice.text, 'text'),
    // Older releases do not return the prompt that they were given as ids.
    promptIds: () =>
      Array.isArray(choice.prompt_token_ids)
        ? readIdArray(choice.prompt_token_ids, promptIds)
        : (expect.promptIds ?? new Int32Array(0)),
    logprobs: () => readLogprobs(readArray(values, field, 'logprobs was asked for'), field),
  })
}

/** What both endpoints share: ids beside the choice, usage, version. */
export function settle(
  reply: JsonRecord,
  choice: JsonRecord,
  expect: Expectation,
  names: FieldNames,
  parts: {
    finish: PolicyFinish
    content: string | null
    promptIds: () => Int32Array
    logprobs: () => Float32Array
  },
): Completion {
  const usage = isPlainObject(reply.usage) ? reply.usage : {}
  const version = readVersion(reply.weight_version)
  const completionTokens = readCount(usage.completion_tokens, names.completionTokens)
  // A request that was aborted before its first token may carry no list at all.
  const untouched = parts.finish === 'abort' && completionTokens === 0
  const listed = untouched ? (choice.token_ids ?? []) : choice.token_ids
  const ids = expect.tokens ? readIdArray(listed, names.ids) : null
  const logprobs = () => (untouched && ids?.length === 0 ? new Float32Array(0) : parts.logprobs())
  const draft = {
    finish: parts.finish,
    content: parts.content,
    promptIds: expect.tokens ? parts.promptIds() : null,
    ids,
    logprobs: expect.tokens ? logprobs() : null,
    usage: {
      promptTokens: readCount(usage.prompt_tokens, names.promptTokens),
      completionTokens,
    },
    version,
    versions: ids === null ? [] : [approximateRun(reply.weight_version, ids.length)],
  }
  return checkCompletion(draft, expect, names)
}

function readIdArray(value: unknown, field: string): Int32Array {
  const hint = 'return_token_ids was asked for: vLLM 0.10.2 or later has it'
  return readIds(readArray(value, field, hint), field)
}
