// vLLM's /inference/v1/generate, token ids in and token ids out: of a server with --tokens-only or --enable-scale-out.
import { PaddockError } from '../../protocol/errors.ts'
import { isPlainObject } from '../../protocol/json.ts'
import type { Completion, Dialect, Expectation, PromptTurn } from './dialect.ts'
import { jsonRequest } from './json-request.ts'
import { onlyChoice, readFinish, streamBody } from './openai-form.ts'
import { readArray, readLogprobs, readReply, refuse } from './reply.ts'
import { refuseOtherSampling } from './sampling-echo.ts'
import { CHAT_FIELDS, settle } from './vllm.ts'
import { joinVllm } from './vllm-stream.ts'

type JsonRecord = Record<string, unknown>

/** `tokens` only. Keys as of GenerateRequest (vllm: vllm/entrypoints/serve/disagg/protocol.py). */
export const vllmGenerate: Dialect = {
  modes: ['tokens'],
  request(turn) {
    if (turn.promptIds === null) {
      throw new PaddockError(
        'invalid_config',
        'the vllm-generate dialect serves policy.mode tokens only: set it and give the backend a model_dir',
        { path: 'policy.mode' },
      )
    }
    return jsonRequest('/inference/v1/generate', generateBody(turn, turn.promptIds))
  },
  read: (status, headers, body, expect) =>
    readReply(status, headers, body, expect, (reply) => readGenerated(reply, expect), joinVllm),
}

function generateBody(turn: PromptTurn, promptIds: Int32Array): JsonRecord {
  const { sampling, stopTokenIds } = turn
  return {
    model: turn.model,
    token_ids: [...promptIds],
    sampling_params: {
      max_tokens: sampling.max_tokens,
      temperature: sampling.temperature,
      top_p: sampling.top_p,
      seed: sampling.seed,
      ...(stopTokenIds.length > 0 && { stop_token_ids: stopTokenIds }),
      // The sampled token's value alone.
      logprobs: 0,
      skip_special_tokens: false,
      spaces_between_special_tokens: false,
    },
    ...streamBody(turn.stream),
  }
}

/** The reply has no text and no prompt ids; early releases leave out the usage as well. */
function readGenerated(reply: JsonRecord, expect: Expectation): Completion {
  refuseOtherSampling(reply, expect)
  const choice = onlyChoice(reply)
  const { logprobs: field } = CHAT_FIELDS
  const content = isPlainObject(choice.logprobs) ? choice.logprobs.content : choice.logprobs
  const tokens = () => readArray(content, field, 'logprobs was asked for').filter(isPlainObject)
  return settle(reply, choice, expect, CHAT_FIELDS, {
    finish: readFinish(choice.finish_reason),
    content: null,
    promptIds: () => expect.promptIds ?? new Int32Array(0),
    logprobs() {
      refuseOtherTokens(tokens(), choice.token_ids)
      return readLogprobs(
        tokens().map(({ logprob }) => logprob),
        field,
      )
    },
  })
}

/** Each log-probability names its token as `token_id:9707`: one of another token than was sampled is refused. */
function refuseOtherTokens(tokens: readonly JsonRecord[], ids: unknown): void {
  if (!Array.isArray(ids)) return
  for (const [index, { token }] of tokens.entries()) {
    const [, named] = /^token_id:(\d+)$/.exec(String(token)) ?? []
    if (named === undefined || index >= ids.length || Number(named) === ids[index]) continue
    refuse(
      'contract_violation',
      CHAT_FIELDS.logprobs,
      `id ${ids[index]} at ${index}, but its log-probability is of ${named}`,
    )
  }
}
