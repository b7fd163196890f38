// One turn as a pure function: `begin` and `advance` take a state and a reply, and give the next request or the end.

import type { Environment } from '../envs/environment.ts'
import type { Message } from '../protocol/conversation.ts'
import type { EpisodeOutcome } from '../protocol/outcomes.ts'
import type { SealedEpisode } from '../protocol/sealed.ts'
import { answered, applyTurn } from './apply-turn.ts'
import { type AskStep, startAsking, takeReply } from './asking/asking.ts'
import { type ControlTokens, QWEN_CONTROL_TOKENS } from './chat/control-tokens.ts'
import { emptyTape } from './chat/tape.ts'
import { afterAsking, concluded, sealed, unscored } from './conclude.ts'
import type { Engine, EpisodePlan, EpisodeState, TurnRecord } from './episode.ts'
import { limitReached, tokenLimitReached, tokensLeft } from './episode-limits.ts'
import { guardedEnvironment, isEnvironmentFault } from './guarded-environment.ts'
import { parseTurn } from './parse-turn.ts'
import type { Completion } from './policy/dialect.ts'
import { missingTools } from './policy/missing-tools.ts'
import {
  awaitsPrompt,
  firstPrompt,
  policyRequest,
  readPolicyReply,
  readPrompt,
} from './policy-turn.ts'
import { paidForProgress } from './progress.ts'
import type { EpisodeRequest, HttpReply } from './request.ts'
import { requestSeed } from './request-seed.ts'
import { spokenControlToken } from './spoken-tokens.ts'
import { stateHash } from './state-hash.ts'
import { bridged, joinPartial, onTape, textDiffers, withSampledIds } from './taped-turn.ts'
import { type TurnEvent, turnEvents } from './turn-events.ts'

/** What comes of a turn: the next question, or the sealed episode. `events` tell what happened, in order. */
export type TurnResult =
  | { kind: 'request'; state: EpisodeState; request: EpisodeRequest; events: TurnEvent[] }
  | { kind: 'end'; sealed: SealedEpisode; events: TurnEvent[] }

/** How often a backend may break off one turn before that counts as its failure. */
const MAX_ABORTS = 64

/** Resets the environment and asks the first question. */
export function begin(plan: EpisodePlan, engine: Engine): TurnResult {
  const fresh = emptyState(plan)
  return ended(fresh, () => {
    const environment = environmentOf(plan, engine)
    const env = environment.reset(plan.task, plan.seed)
    const messages = environment.open(env)
    const opened = { ...fresh, plan: withoutSpec(plan), env, resetHash: stateHash(env), messages }
    return ask(opened, engine, [])
  })
}

/** Takes the reply to the request that is out, whoever was asked, and asks on or grades and seals. */
export function advance(state: EpisodeState, reply: HttpReply, engine: Engine): TurnResult {
  const { asking } = state
  return ended(state, () =>
    asking ? afterReply(takeReply(state, asking, reply), engine) : takePolicy(state, reply, engine),
  )
}

/** Reads the policy's reply and plays what it says. */
function takePolicy(state: EpisodeState, reply: HttpReply, engine: Engine): TurnResult {
  const prompts = awaitsPrompt(state)
  const read = prompts ? readPrompt(state, reply, engine) : readPolicyReply(state, reply, engine)
  if (read.kind === 'prompt') {
    const tools = environmentOf(state.plan, engine).tools(state.env)
    const pending = { ...state.pending, promptIds: read.ids }
    return request({ ...state, pending }, tools, engine, [])
  }
  if (read.kind === 'context_length' && state.turns.length > 0)
    return conclude(state, 'ok_truncated', `context_length: ${read.message}`, engine)
  if (read.kind !== 'completion') {
    const outcome = read.kind === 'context_length' ? 'infra_backend' : read.kind
    const reason = read.field ? `${read.field}: ${read.message}` : read.message
    return conclude(state, outcome, reason, engine)
  }
  return read.finish === 'abort'
    ? resume(state, read, engine)
    : finishTurn(state, joinPartial(state, read), engine)
}

/** What was asked beside the policy: it is for a grade, or it is what the user says. */
function afterReply(step: AskStep, engine: Engine): TurnResult {
  const environment = environmentOf(step.state.plan, engine)
  if (step.kind !== 'answered' || step.asking.purpose.kind === 'grade')
    return afterAsking(step, environment)
  const { state, asking } = step
  const { message } = step.asking.purpose
  const turn = state.turns.length - 1
  const {
    env,
    messages,
    end,
    ask: more,
  } = answered(state.env, message, turn, environment, asking.said ?? '')
  const turns = state.turns.map((record, index) =>
    index === turn ? { ...record, user: asking.said ?? '', state_hash: stateHash(env) } : record,
  )
  const next = { ...state, env, turns, messages: [...state.messages, ...messages] }
  if (more)
    return conclude(next, 'infra_env', 'reply asked again for what was said already', engine)
  if (end) return conclude(next, end.outcome, end.reason, engine)
  return ask(bridged(next, messages, engine.chatModel(state.plan.policy.backend)), engine, [])
}

/** Ends an episode for a reason from outside the turn: a deadline, a dead backend, a caller who cancels. */
export function conclude(
  state: EpisodeState,
  outcome: EpisodeOutcome,
  reason: string,
  engine: Engine,
): TurnResult {
  return concluded(state, outcome, reason, environmentOf(state.plan, engine))
}

/** The state of an episode of which nothing has happened yet; `conclude` can seal it as it is. */
export function emptyState(plan: EpisodePlan): EpisodeState {
  return {
    plan,
    env: null,
    resetHash: null,
    messages: [],
    tape: emptyTape(),
    turns: [],
    headers: [],
    pending: { promptIds: null, anchor: '', partial: null, aborts: 0 },
    asking: null,
    asked: {},
    best: new Map(),
    droppedTokens: 0,
    drift: {},
  }
}

/** The environment has read the spec, and what only its author needs must not cross threads with every turn. */
function withoutSpec(plan: EpisodePlan): EpisodePlan {
  return { ...plan, task: { ...plan.task, spec: {} } }
}

/** A fault of the environment is an outcome; anything else that is thrown is a bug of ours and goes up. */
function ended(state: EpisodeState, play: () => TurnResult): TurnResult {
  try {
    return play()
  } catch (error) {
    if (!isEnvironmentFault(error)) throw error
    return sealed(state, unscored('infra_env', error.message))
  }
}

function environmentOf(plan: EpisodePlan, engine: Engine): Environment {
  return guardedEnvironment(plan.task.environment, engine.environment(plan.task.environment))
}

function controlTokensOf({ policy }: EpisodePlan, engine: Engine): ControlTokens {
  return engine.chatModel(policy.backend)?.controlTokens ?? QWEN_CONTROL_TOKENS
}

/** Asks the policy about the conversation as it stands. */
function ask(state: EpisodeState, engine: Engine, events: TurnEvent[]): TurnResult {
  const { plan } = state
  const environment = environmentOf(plan, engine)
  const tools = environment.tools(state.env)
  const spelled = spokenControlToken(state, tools, controlTokensOf(plan, engine))
  if (spelled) {
    const closing = conclude(state, 'infra_env', spelled, engine)
    return { ...closing, events: [...events, ...closing.events] }
  }
  const promptIds = state.pending.promptIds ?? firstPrompt(state, tools, engine)
  const asked: EpisodeState = {
    ...state,
    pending: { promptIds, anchor: environment.anchor(state.env), partial: null, aborts: 0 },
  }
  return request(asked, tools, engine, events)
}

function request(
  state: EpisodeState,
  tools: ReturnType<Environment['tools']>,
  engine: Engine,
  events: TurnEvent[],
): TurnResult {
  return { kind: 'request', state, request: policyRequest(state, tools, engine), events }
}

/** The backend broke the turn off: go on from what was sampled (tokens), or ask again (chat). */
function resume(state: EpisodeState, read: Completion, engine: Engine): TurnResult {
  const { plan, pending } = state
  if (pending.aborts >= MAX_ABORTS)
    return conclude(
      state,
      'infra_backend',
      `the backend aborted turn ${state.turns.length} ${MAX_ABORTS} times`,
      engine,
    )
  const tools = environmentOf(plan, engine).tools(state.env)
  const model = engine.chatModel(plan.policy.backend)
  const aborts = pending.aborts + 1
  if (plan.policy.mode === 'chat' || !read.ids || !read.logprobs) {
    const droppedTokens = state.droppedTokens + (read.ids?.length ?? read.usage.completionTokens)
    const next = { ...state, droppedTokens, pending: { ...pending, aborts } }
    const end = tokenLimitReached(next)
    return end ? conclude(next, end.outcome, end.reason, engine) : request(next, tools, engine, [])
  }
  const joined = joinPartial(state, read)
  const { content, ids, logprobs, versions } = joined
  // Broken off behind the token that ends the turn: there is nothing left to go on with.
  if (model?.stopTokenIds.includes(ids?.at(-1) ?? -1))
    return finishTurn(state, { ...joined, finish: 'stop' }, engine)
  if (!ids || !logprobs) return finishTurn(state, { ...joined, finish: 'length' }, engine)
  const next = {
    ...state,
    pending: { ...pending, partial: { content, ids, logprobs, versions }, aborts },
  }
  return tokensLeft(next) <= 0
    ? finishTurn(state, { ...joined, finish: 'length' }, engine)
    : request(next, tools, engine, [])
}

/** Puts the completion on the tape, parses it, and lets the environment answer. */
function finishTurn(state: EpisodeState, completion: Completion, engine: Engine): TurnResult {
  const { plan } = state
  const environment = environmentOf(plan, engine)
  const model = engine.chatModel(plan.policy.backend)
  const tools = environment.tools(state.env)
  if (model && completion.promptIds && state.turns.length === 0) {
    const missing = missingTools(model.decode(completion.promptIds), tools, state.messages)
    if (missing.length > 0)
      return conclude(
        state,
        'contract_violation',
        `tools: the backend's prompt lacks ${missing.join(', ')}`,
        engine,
      )
  }
  const text =
    model && completion.ids
      ? model.decode(withoutStop(completion.ids, model.stopTokenIds))
      : (completion.content ?? '')
  const finish = completion.finish === 'length' ? 'length' : 'stop'
  const parsed = parseTurn(text, finish, tools, plan.policy)
  const record: TurnRecord = {
    turn: state.turns.length,
    seed: requestSeed(plan, state.turns.length),
    finish,
    text,
    text_differs: model ? textDiffers(completion, model) : false,
    reasoning: parsed.reasoning,
    content: parsed.content,
    calls: [],
    errors: parsed.errors,
    flags: parsed.flags,
    leniencies: parsed.leniencies,
    observations: [],
    audit: [],
    state_hash: null,
    prompt_tokens: completion.usage.promptTokens,
    completion_tokens: completion.ids?.length ?? completion.usage.completionTokens,
    version: completion.version ?? plan.policy.version,
  }
  const taped = onTape(state, completion, model)
  const applied = applyTurn(taped.env, record, parsed, {
    environment,
    onParseError: plan.onParseError,
    controlTokens: controlTokensOf(plan, engine),
    showsControlTokens: plan.policy.controlTokens === 'plain',
  })
  const messages: Message[] = [
    ...taped.messages,
    { role: 'assistant', content: text },
    ...applied.messages,
  ]
  const played: EpisodeState = {
    ...taped,
    env: applied.env,
    messages,
    turns: [...taped.turns, { ...applied.record, state_hash: stateHash(applied.env) }],
  }
  const next = plan.progress ? paidForProgress(played, environment) : played
  const events = turnEvents(plan, applied.record)
  const cut = finish === 'length' ? tokenLimitReached(next) : null
  const refused = applied.end?.outcome === 'parse_error'
  const end = refused ? applied.end : (cut ?? applied.end ?? limitReached(next))
  if (end) {
    const closing = conclude(next, end.outcome, end.reason, engine)
    return { ...closing, events: [...events, ...closing.events] }
  }
  const sampled = withSampledIds(next, completion)
  if (!applied.ask) return ask(bridged(sampled, applied.messages, model), engine, events)
  const purpose = { kind: 'reply' as const, message: parsed.content ?? '' }
  const asked = afterReply(startAsking(sampled, [applied.ask], {}, purpose), engine)
  return { ...asked, events: [...events, ...asked.events] }
}

function withoutStop(ids: Int32Array, stop: readonly number[]): Int32Array {
  return stop.includes(ids.at(-1) ?? -1) ? ids.subarray(0, -1) : ids
}
