// A policy for tests: answers request bytes of both dialects in wire form, with Qwen3 ids, as a pure function of them.
import { createHash } from 'node:crypto'
import type { Message, ToolDefinition } from '../protocol/conversation.ts'
import type { ChatModel } from './chat/chat-model.ts'
import type { EpisodeRequest, HttpReply, PolicyRequest } from './request.ts'

/** What to say, given how many assistant turns there were and the request's seed. */
export type Speaker = (
  turn: number,
  seed: number,
) => { text: string; finish?: 'stop' | 'length' | 'abort' }

const END_OF_TURN = 151645

export function scriptedPolicy(
  model: ChatModel,
  speak: Speaker,
): (request: EpisodeRequest) => HttpReply {
  return (asked) => {
    const request = policyRequest(asked)
    const body = JSON.parse(new TextDecoder().decode(request.body))
    const answer =
      request.path === '/generate' ? generate(model, speak, body) : chat(model, speak, body)
    const bytes = new TextEncoder().encode(JSON.stringify(answer))
    return { status: 200, headers: { 'content-type': 'application/json' }, body: bytes }
  }
}

/** The request where it is one to the policy. */
export function policyRequest(request: EpisodeRequest): PolicyRequest {
  if (request.kind === 'policy') return request
  throw new Error(`expected a request to the policy, got one to ${request.kind}`)
}

interface Sampled {
  ids: number[]
  logprobs: number[]
  finish: 'stop' | 'length' | 'abort'
  text: string
}

function sample(model: ChatModel, speak: Speaker, turn: number, seed: number): Sampled {
  const { text, finish = 'stop' } = speak(turn, seed)
  const ids = [...model.encode(text), ...(finish === 'stop' ? [END_OF_TURN] : [])]
  return { ids, logprobs: ids.map((id, k) => -logprobOf(seed, id, k)), finish, text }
}

/** In [0, 2), from seed, id and place; a float32 value, so that it survives the tape as it is. */
function logprobOf(seed: number, id: number, place: number): number {
  const hash = createHash('sha256').update(`${seed}:${id}:${place}`).digest()
  return Math.fround(hash.readUInt16LE(0) / 32768)
}

interface ChatBody {
  model: string
  messages: Message[]
  tools?: ToolDefinition[]
  seed: number
}

function chat(model: ChatModel, speak: Speaker, body: ChatBody): unknown {
  const turn = body.messages.filter(({ role }) => role === 'assistant').length
  const { ids, logprobs, finish, text } = sample(model, speak, turn, body.seed)
  const prompt = model.encode(
    model.render(body.messages, body.tools ?? [], { addGenerationPrompt: true, kwargs: {} }),
  )
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    model: body.model,
    prompt_token_ids: [...prompt],
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: text },
        finish_reason: finish,
        token_ids: ids,
        logprobs: {
          content: ids.map((id, k) => ({
            token: `${id}`,
            logprob: logprobs[k],
            bytes: null,
            top_logprobs: [],
          })),
        },
      },
    ],
    usage: {
      prompt_tokens: prompt.length,
      completion_tokens: ids.length,
      total_tokens: prompt.length + ids.length,
    },
  }
}

interface GenerateBody {
  input_ids: number[]
  sampling_params: { sampling_seed: number }
}

function generate(model: ChatModel, speak: Speaker, body: GenerateBody): unknown {
  const turn = model.decode(body.input_ids).split('<|im_start|>assistant').length - 2
  const { ids, logprobs, finish, text } = sample(
    model,
    speak,
    turn,
    body.sampling_params.sampling_seed,
  )
  return {
    text,
    output_ids: ids,
    meta_info: {
      id: 'r1',
      finish_reason: { type: finish },
      prompt_tokens: body.input_ids.length,
      completion_tokens: ids.length,
      weight_version: '7',
      output_token_logprobs: ids.map((id, k) => [logprobs[k], id, null]),
    },
  }
}
