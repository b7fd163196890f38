// SGLang: its native /generate for token ids, its chat endpoint where it renders the conversation itself.
import type { Completion, Dialect, Expectation, PromptTurn } from './dialect.ts'
import { jsonRequest } from './json-request.ts'
import { readObject, readReply, readText } from './reply.ts'
import { refuseOtherSampling } from './sampling-echo.ts'
import { chatBody, readChat } from './sglang-chat.ts'
import { readSampled } from './sglang-meta.ts'
import { joinSglang } from './sglang-stream.ts'

type JsonRecord = Record<string, unknown>

/**
 * `tokens`: POST /generate, keys as of GenerateReqInput (sglang: python/sglang/srt/managers/io_struct.py); `chat`: POST
 * /v1/chat/completions. Only the first can be streamed: SGLang gives no ids and log-probabilities in a chat stream.
 */
export const sglang: Dialect = {
  modes: ['chat', 'tokens'],
  request: (turn) =>
    turn.promptIds === null
      ? jsonRequest('/v1/chat/completions', chatBody(turn))
      : jsonRequest('/generate', generateBody(turn, turn.promptIds)),
  read: (status, headers, body, expect) =>
    expect.promptIds === null
      ? readReply(status, headers, body, expect, (reply) => readChat(reply, expect))
      : readReply(
          status,
          headers,
          body,
          expect,
          (reply) => readGenerated(reply, expect),
          joinSglang,
        ),
}

function generateBody(
  { sampling, stopTokenIds, stream = false }: PromptTurn,
  promptIds: Int32Array,
): JsonRecord {
  return {
    input_ids: [...promptIds],
    sampling_params: {
      max_new_tokens: sampling.max_tokens,
      temperature: sampling.temperature,
      top_p: sampling.top_p,
      sampling_seed: sampling.seed,
      stop_token_ids: stopTokenIds,
      skip_special_tokens: false,
      spaces_between_special_tokens: false,
      no_stop_trim: true,
    },
    return_logprob: true,
    // Log-probabilities of the sampled tokens only.
    logprob_start_len: -1,
    stream,
  }
}

function readGenerated(reply: JsonRecord, expect: Expectation): Completion {
  refuseOtherSampling(reply, expect)
  const meta = readObject(reply.meta_info, 'meta_info')
  const text = readText(reply.text, 'text')
  return readSampled(
    meta,
    { text, outputIds: reply.output_ids, promptIds: expect.promptIds },
    expect,
  )
}
