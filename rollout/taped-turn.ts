// A turn's ids in the episode's state: what an abort left, the tape, and the prompt that comes next.
import type { Message } from '../protocol/conversation.ts'
import type { ChatModel } from './chat/chat-model.ts'
import { extendTape, type VersionRun } from './chat/tape.ts'
import type { EpisodeState } from './episode.ts'
import type { Completion } from './policy/dialect.ts'

/** The whole turn's completion: what an abort left, then what came now. */
export function joinPartial({ pending }: EpisodeState, read: Completion): Completion {
  const { partial } = pending
  if (!partial || !read.ids || !read.logprobs) return read
  const ids = concat(partial.ids, read.ids)
  const logprobs = new Float32Array(ids.length)
  logprobs.set(partial.logprobs)
  logprobs.set(read.logprobs, partial.logprobs.length)
  const usage = { promptTokens: pending.promptIds?.length ?? 0, completionTokens: ids.length }
  const content = read.content === null ? null : (partial.content ?? '') + read.content
  const versions = [...partial.versions, ...read.versions]
  return { ...read, content, ids, logprobs, usage, versions }
}

/**
 * Whether the backend's text is another than that of the sampled ids: with or without the end of turn, and a character
 * that was cut apart is no difference, since engines hold its bytes back or write U+FFFD.
 */
export function textDiffers({ ids, content }: Completion, model: ChatModel): boolean {
  if (!ids || content === null) return false
  const ended = model.stopTokenIds.includes(ids.at(-1) ?? -1)
  const texts = [model.decode(ids), ...(ended ? [model.decode(ids.subarray(0, -1))] : [])]
  const whole = (text: string) => text.replaceAll('\uFFFD', '')
  return !texts.some((text) => text === content || whole(text) === whole(content))
}

/** The state with the sampled ids on its tape and the turn's header behind the others. */
export function onTape(
  state: EpisodeState,
  completion: Completion,
  model: ChatModel | null,
): EpisodeState {
  const { anchor } = state.pending
  const promptIds = state.pending.promptIds ?? completion.promptIds
  if (!model || !promptIds || !completion.ids || !completion.logprobs)
    return {
      ...state,
      headers: [...state.headers, { sample: null, start: 0, end: 0, anchor, reward: 0 }],
    }
  const { tape, turn, cut } = extendTape(
    state.tape,
    {
      promptIds,
      ids: completion.ids,
      logprobs: completion.logprobs,
      versions: completion.versions.map((run) => orAsked(run, state.plan.policy.version)),
    },
    (ids) => model.decode(ids),
  )
  const drift = cut ? { ...state.drift, [cut]: (state.drift[cut] ?? 0) + 1 } : state.drift
  return { ...state, tape, drift, headers: [...state.headers, { ...turn, anchor, reward: 0 }] }
}

/** In tokens mode the next prompt begins with this one and the sampled ids. */
export function withSampledIds(state: EpisodeState, { ids }: Completion): EpisodeState {
  const { promptIds } = state.pending
  if (!promptIds || !ids) return state
  return { ...state, pending: { ...state.pending, promptIds: concat(promptIds, ids) } }
}

/** Where the backend tells no version, the one that the trainer said it asks. */
function orAsked(run: VersionRun, asked: number | null): VersionRun {
  if (run.version !== null || asked === null) return run
  return { ...run, version: asked, approximate: true }
}

/** Behind the sampled ids comes the bridge to the new messages. */
export function bridged(
  state: EpisodeState,
  messages: readonly Message[],
  model: ChatModel | null,
): EpisodeState {
  const { promptIds } = state.pending
  if (!promptIds || !model) return state
  const bridge = model.bridge(
    promptIds.at(-1) ?? null,
    messages,
    state.plan.policy.chatTemplateKwargs,
  )
  return { ...state, pending: { ...state.pending, promptIds: concat(promptIds, bridge) } }
}

/** The prompt that went out: in tokens mode what an abort left stands behind it. */
export function sentIds({ promptIds, partial }: EpisodeState['pending']): Int32Array | null {
  return promptIds && partial ? concat(promptIds, partial.ids) : promptIds
}

function concat(...parts: readonly Int32Array[]): Int32Array {
  const joined = new Int32Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    joined.set(part, at)
    at += part.length
  }
  return joined
}
