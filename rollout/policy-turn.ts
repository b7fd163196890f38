// What a turn asks its policy, and how the answer is read: the one place where an episode's state meets a dialect.
import type { ToolDefinition } from '../protocol/conversation.ts'
import type { Engine, EpisodeState } from './episode.ts'
import { tokensLeft } from './episode-limits.ts'
import type { Completion, HttpRequest, PolicyReply, PromptTurn } from './policy/dialect.ts'
import { dialects } from './policy/dialects.ts'
import { approximateRun, readVersion } from './policy/reply.ts'
import { readTokenized, tokenizeRequest } from './policy/tokenize.ts'
import type { HttpReply, PolicyRequest } from './request.ts'
import { requestSeed } from './request-seed.ts'
import { sentIds } from './taped-turn.ts'

/**
 * The ids of an episode's first prompt: null in mode `chat`, where the backend renders every prompt, and where it is
 * asked for the first one.
 */
export function firstPrompt(
  state: EpisodeState,
  tools: readonly ToolDefinition[],
  engine: Engine,
): Int32Array | null {
  const { policy } = state.plan
  if (policy.mode === 'chat' || policy.firstPrompt === 'tokenize') return null
  const model = engine.chatModel(policy.backend)
  if (!model) throw new Error(`mode tokens needs model_dir of backend ${policy.backend}`)
  const kwargs = policy.chatTemplateKwargs
  return model.encode(model.render(state.messages, tools, { addGenerationPrompt: true, kwargs }))
}

/** Whether the request that is out asks how the first prompt is rendered. */
export function awaitsPrompt({ plan, pending }: EpisodeState): boolean {
  return plan.policy.mode === 'tokens' && pending.promptIds === null
}

/** The request of the pending turn; after an abort it carries what was sampled already. */
export function policyRequest(
  state: EpisodeState,
  tools: readonly ToolDefinition[],
  engine: Engine,
): PolicyRequest {
  const { plan, pending } = state
  const { policy } = plan
  return {
    ...bytesOf(state, tools, engine),
    kind: 'policy',
    backend: policy.backend,
    ...(policy.url !== undefined && { url: policy.url }),
    turn: state.turns.length,
    aborts: pending.aborts,
  }
}

function bytesOf(
  state: EpisodeState,
  tools: readonly ToolDefinition[],
  engine: Engine,
): HttpRequest {
  const { messages, pending, plan } = state
  const { model, chatTemplateKwargs, stream = false, dialect, backend } = plan.policy
  if (awaitsPrompt(state)) return tokenizeRequest({ model, messages, tools, chatTemplateKwargs })
  return dialects[dialect].request({
    model,
    messages,
    tools,
    promptIds: sentIds(pending),
    sampling: askedSampling(state),
    chatTemplateKwargs,
    stopTokenIds: engine.chatModel(backend)?.stopTokenIds ?? [],
    stream,
  })
}

export function readPolicyReply(
  state: EpisodeState,
  { status, headers, body, weightVersion }: HttpReply,
  engine: Engine,
): PolicyReply {
  const { policy } = state.plan
  const model = engine.chatModel(policy.backend)
  const read = dialects[policy.dialect].read(status, headers, body, {
    tokens: model !== null,
    promptIds: sentIds(state.pending),
    maxTokens: tokensLeft(state),
    knowsId: model?.knowsId ?? null,
    stream: policy.stream ?? false,
    sampling: askedSampling(state),
  })
  return read.kind === 'completion' && weightVersion !== undefined
    ? versioned(read, weightVersion)
    : read
}

/** What the reply does not name is as of the version that was told around it. */
function versioned(read: Completion, told: string): Completion {
  const versions = read.versions.map((run) =>
    run.version === null ? approximateRun(told, run.count) : run,
  )
  return { ...read, version: read.version ?? readVersion(told), versions }
}

export function readPrompt(
  { plan }: EpisodeState,
  { status, headers, body }: HttpReply,
  engine: Engine,
): ReturnType<typeof readTokenized> {
  const knowsId = engine.chatModel(plan.policy.backend)?.knowsId ?? null
  return readTokenized(status, headers, body, knowsId)
}

/** A continued turn asks for what is left of its budget. */
function askedSampling(state: EpisodeState): PromptTurn['sampling'] {
  const { plan, turns } = state
  const seed = requestSeed(plan, turns.length)
  return { ...plan.policy.sampling, max_tokens: tokensLeft(state), seed }
}
