// One completion between the wire forms: what was asked, and what was sampled for it.
import type { VersionSpan } from '../versions.ts'
import type { Model } from './model.ts'
import { hashIds, mix } from './seeded.ts'

/** What a request asks for, whichever its wire form. */
export interface Ask {
  promptIds: number[]
  promptText: string
  /** Null where the request says nothing. */
  seed: number | null
  temperature: number
  topP: number
  maxTokens: number
  stop: readonly string[]
  stopTokenIds: readonly number[]
  /** Keep the stop string or token in the text. */
  keepStop: boolean
  skipSpecial: boolean
}

export interface SampledToken {
  id: number
  /** Null stands for a value that is no number. */
  logprob: number | null
  /** The most likely tokens in its place, the best first. */
  top: { id: number; logprob: number }[]
}

/** What was sampled. Null fields are left out of the reply. */
export interface Generation {
  ids: number[] | null
  tokens: SampledToken[] | null
  text: string
  finish: 'stop' | 'length' | 'abort' | 'tool_calls' | null
  /** The stop string or id that ended it. */
  matched: string | number | null
  usage: { prompt: number; completion: number }
  /** The weight version at the end, and which of `ids` each was sampled by; null where nothing is said of it. */
  version: string | null
  versions: VersionSpan[]
  reasoning: string | null
  toolCalls: { name: string; arguments: string }[]
  /** What is echoed of the sampling parameters; engines mostly echo nothing. */
  echoed: { temperature: number } | null
  /** Answer with no choices at all. */
  empty: boolean
}

/** A prompt given as text or as ids, in both forms. */
export function readPromptForm(
  model: Model,
  given: string | number[],
): Pick<Ask, 'promptIds' | 'promptText'> {
  return typeof given === 'string'
    ? { promptText: given, promptIds: model.encode(given) }
    : { promptText: model.decode(given), promptIds: given }
}

/** `raw`: of the untempered distribution (vLLM's default); `processed`: of the one that was sampled from. */
export type LogprobsMode = 'raw' | 'processed'

/**
 * Turns text into ids and cuts them as an engine does: at a stop id or string, else at `maxTokens` with finish
 * `length`. The id that stopped it is the last of `ids`, and is counted.
 */
export function sample(
  model: Model,
  turn: { ids: number[]; runOn: string | null },
  ask: Ask,
  mode: LogprobsMode,
): Generation {
  const wanted =
    turn.runOn === null
      ? [...turn.ids, model.endId]
      : fill(turn.ids, model.encode(turn.runOn), ask.maxTokens + 1)
  const end = findEnd(model, wanted, ask)
  const ids = wanted.slice(0, end.length)
  return {
    ids,
    tokens: logprobsOf(ids, ask, mode),
    text: textOf(model, ids, end, ask),
    finish: end.finish,
    matched: end.matched,
    usage: { prompt: ask.promptIds.length, completion: ids.length },
    version: null,
    versions: [],
    reasoning: null,
    toolCalls: [],
    echoed: null,
    empty: false,
  }
}

function fill(ids: number[], again: readonly number[], length: number): number[] {
  const filled = ids.slice()
  while (filled.length < length) filled.push(...again)
  return filled
}

interface End {
  length: number
  finish: 'stop' | 'length'
  matched: string | number | null
}

function findEnd(model: Model, ids: readonly number[], ask: Ask): End {
  const stopIds = new Set([model.endId, ...ask.stopTokenIds])
  const atString = firstStopString(model, ids, ask.stop)
  for (let i = 0; i < Math.min(ids.length, ask.maxTokens); i++) {
    const id = ids[i] as number
    if (stopIds.has(id)) return { length: i + 1, finish: 'stop', matched: id }
    if (atString && i + 1 === atString.length)
      return { length: i + 1, finish: 'stop', matched: atString.stop }
  }
  return { length: Math.min(ids.length, ask.maxTokens), finish: 'length', matched: null }
}

/** The number of ids after which the text first holds one of the stop strings. */
function firstStopString(model: Model, ids: readonly number[], stops: readonly string[]) {
  // Compared as bytes: a token may hold half a character.
  const wanted = stops.map((stop) => ({ stop, bytes: Buffer.from(stop).toString('latin1') }))
  const longest = Math.max(0, ...wanted.map(({ bytes }) => bytes.length))
  if (longest === 0) return null
  let tail = ''
  for (const [index, id] of ids.entries()) {
    const piece = model.bytes(id).toString('latin1')
    tail = (tail + piece).slice(-(longest + piece.length))
    const found = wanted.find(({ bytes }) => bytes !== '' && tail.includes(bytes))
    if (found) return { length: index + 1, stop: found.stop }
  }
  return null
}

function textOf(model: Model, ids: readonly number[], end: End, ask: Ask): string {
  const atToken = typeof end.matched === 'number'
  const spoken = atToken && !ask.keepStop ? ids.slice(0, -1) : ids
  const text = model.decode(spoken, { skipSpecial: ask.skipSpecial })
  if (typeof end.matched !== 'string' || ask.keepStop) return text
  return text.slice(0, text.indexOf(end.matched))
}

/** Alternatives per place; with the sampled token they are the simulated distribution. */
const ALTERNATIVES = 3
/** Ids below this are ordinary tokens in every Qwen vocabulary. */
const ORDINARY_IDS = 150_000

/**
 * Log-probabilities that hang together: a token has the same untempered probability wherever it follows the same ids,
 * whatever the seed; temperature reshapes that distribution; at 0 it stands for the untempered one. All are finite and
 * below zero.
 */
function logprobsOf(ids: readonly number[], ask: Ask, mode: LogprobsMode): SampledToken[] {
  const temperature = mode === 'raw' || ask.temperature <= 0 ? 1 : ask.temperature
  let context = hashIds(ask.promptIds)
  return ids.map((id) => {
    context = mix(context, id)
    return tokenAt(context, id, temperature)
  })
}

function tokenAt(context: number, id: number, temperature: number): SampledToken {
  const missing = 1e-4 + 0.5 * unit(mix(context, 1)) ** 3
  const others = Array.from({ length: ALTERNATIVES }, (_, rank) => ({
    id: mix(context, 2 + rank) % ORDINARY_IDS,
    probability: (missing * 2 ** (ALTERNATIVES - rank - 1)) / (2 ** ALTERNATIVES - 1),
  }))
  const weights = [{ id, probability: 1 - missing }, ...others].map((token) => ({
    id: token.id,
    weight: token.probability ** (1 / temperature),
  }))
  const total = weights.reduce((sum, { weight }) => sum + weight, 0)
  const top = weights.map((token) => ({ id: token.id, logprob: finiteLog(token.weight / total) }))
  return { id, logprob: top[0]?.logprob ?? null, top }
}

/** At low temperatures a probability rounds to 0 or 1; engines write -9999 for the logarithm of 0. */
function finiteLog(probability: number): number {
  return Math.min(Math.max(Math.log(probability), -9999), -1e-7)
}

function unit(word: number): number {
  return word / 0x100000000
}
