// For tests of the turn: an arithmetic episode's plan, a policy's lines, and an episode played from first to last.
import { deserialize, serialize } from 'node:v8'
import { arithmetic } from '../envs/arithmetic/arithmetic.ts'
import type { Environment } from '../envs/environment.ts'
import { unpack } from '../protocol/msgpack.ts'
import type { SealedEpisode } from '../protocol/sealed.ts'
import type { ChatModel } from './chat/chat-model.ts'
import type { Engine, EpisodePlan, EpisodeState } from './episode.ts'
import type { HttpReply } from './request.ts'
import { type Speaker, scriptedPolicy } from './scripted-policy.testkit.ts'
import { advance, begin, type TurnResult } from './turn.ts'

export const SPEC = {
  id: 'sum',
  request: 'How many boxes are left? Use the calculator.',
  answer: '42',
}

export function plan(
  some: Partial<EpisodePlan> = {},
  mode: 'chat' | 'tokens' = 'chat',
): EpisodePlan {
  return {
    episode: 'b.g0.e0',
    batch: 'b',
    group: 'b.g0',
    groupIndex: 0,
    index: 0,
    attempt: 1,
    task: { id: 'arithmetic/sum', environment: 'arithmetic', spec: SPEC },
    seed: 1,
    policy: {
      dialect: mode === 'chat' ? 'vllm' : 'sglang',
      backend: 'main',
      model: 'm',
      mode,
      toolFormat: 'hermes',
      thinking: 'none',
      leniencies: [],
      sampling: { temperature: 1, top_p: 1, max_tokens: 64 },
      version: null,
      seedBase: 'b',
      chatTemplateKwargs: {},
      controlTokens: 'refuse',
    },
    contract: arithmetic.contract,
    limits: { maxTurns: 6, maxTokens: 1000 },
    onParseError: 'feedback',
    ...some,
  }
}

/** An engine of one environment and one chat model. */
export function engineOf(
  chatModel: ChatModel | null,
  environment: Partial<Record<keyof Environment, unknown>> = {},
): Engine {
  const world = { ...arithmetic, ...environment } as unknown as Environment
  return { environment: () => world, chatModel: () => chatModel }
}

export const call = (expression: string) =>
  `<tool_call>\n{"name": "calculator", "arguments": {"expression": "${expression}"}}\n</tool_call>`

/** Says the lines in order; the last one again for ever. */
export const says =
  (...lines: string[]): Speaker =>
  (turn) => ({ text: lines[Math.min(turn, lines.length - 1)] as string })

/** As between threads: the state as bytes. */
export const crossed = (state: EpisodeState) => deserialize(serialize(state)) as EpisodeState

/** Plays an episode with a scripted policy, whose replies `change` may bend. */
export function playEpisode(
  episode: EpisodePlan,
  engine: Engine,
  model: ChatModel,
  speak: Speaker,
  change: (reply: HttpReply) => HttpReply = (r) => r,
) {
  const policy = scriptedPolicy(model, speak)
  let result: TurnResult = begin(episode, engine)
  let requests = 0
  while (result.kind === 'request') {
    requests++
    result = advance(crossed(result.state), change(policy(result.request)), engine)
  }
  return { ...read(result.sealed), requests }
}

/** The reply with its JSON body changed in place. */
export const bent =
  <Body>(change: (body: Body) => unknown) =>
  (given: HttpReply): HttpReply => {
    const body = JSON.parse(new TextDecoder().decode(given.body))
    change(body)
    return { ...given, body: new TextEncoder().encode(JSON.stringify(body)) }
  }

interface Row {
  grade: unknown
  samples: {
    ids: Uint8Array
    mask: Uint8Array
    logprobs: Uint8Array
    prompt_length: number
    versions: { version: number | null; start: number; end: number; approximate?: boolean }[]
  }[]
}

/** A sealed episode with its arrays as numbers and its trajectory as an object. */
export function read({ header, blob }: SealedEpisode) {
  const row = unpack(blob.slice(0, header.row_bytes)) as Row
  const samples = row.samples.map(({ ids, mask, logprobs, ...rest }) => ({
    ...rest,
    ids: [...new Int32Array(Uint8Array.from(ids).buffer)],
    mask: [...mask],
    logprobs: [...new Float32Array(Uint8Array.from(logprobs).buffer)],
  }))
  const trajectory = JSON.parse(new TextDecoder().decode(blob.subarray(header.row_bytes)))
  return { header, blob, samples, trajectory }
}
