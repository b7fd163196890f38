// What can go wrong at a policy endpoint: the kinds, whom they hit, and how they bend a completion.
import { z } from 'zod'
import type { Generation } from './policy/completion.ts'
import type { Conversation } from './policy/conversation.ts'
import { takeApart } from './policy/conversation.ts'
import type { Model } from './policy/model.ts'
import { draw } from './policy/seeded.ts'
import { pythonJson } from './policy/wording.ts'

/** Answered instead of a completion, or on its way out: see wire/transport.ts. */
const TRANSPORT = {
  '500': 'status 500',
  '502': 'status 502 with a page',
  '503': 'status 503',
  '429': 'status 429 with Retry-After: 1',
  context: 'status 400, the context length is exceeded',
  redirect: 'status 307',
  hang: 'no answer',
  reset: 'the connection is reset before any header',
  trickle: 'a byte every 50 ms, without end',
  stall: 'half of the body, then nothing more',
  cut: 'the body breaks off, short of its length or in mid-chunk',
  html: 'a page with status 200',
  badjson: 'JSON that breaks off, as if whole',
  noend: 'a clean end too early: an empty body, or a stream without finish and [DONE]',
}

/** A completion that is sampled under other conditions than were asked for. */
const SAMPLING = {
  dropstools: 'the tools are left out of the rendered prompt',
  greedy: 'the temperature is ignored and taken as 0',
  seedless: 'the seed is ignored and taken as 0',
  spelled: '</tool_call> is sampled as several ids',
}

/** A reply of good form that says something wrong, or not enough. */
const REPLY = {
  empty: 'no choices; nothing sampled in /generate',
  nologprobs: 'no log-probabilities',
  notokens: 'no token ids',
  misaligned: 'one log-probability less than ids',
  nan: 'one log-probability is null',
  nofinish: 'no finish reason',
  usage: 'the completion tokens are counted wrongly',
  abort: 'finish abort in mid-turn',
  toolcalls: "chat: the engine's tool parser took the calls out of the text",
  eaten: 'the same, and the ids of the markup are lost',
  reasoning: "chat: the engine's reasoning parser took the thought out of the text",
  noversion: 'no weight version',
  echo: 'a whole reply echoes temperature 0, whatever was asked for',
  clock: 'the Date header is an hour behind',
}

/** Every kind of fault, with what it does. */
export const FAULTS = { ...TRANSPORT, ...SAMPLING, ...REPLY }
export type FaultKind = keyof typeof FAULTS
export type TransportFault = keyof typeof TRANSPORT

const FAULT_KINDS = Object.keys(FAULTS) as FaultKind[]
export const TRANSPORT_FAULTS = Object.keys(TRANSPORT) as TransportFault[]

export const faultRuleSchema = z.strictObject({
  kind: z.enum(FAULT_KINDS),
  /** Share of the arrivals that the rest of the rule leaves; with `times`, of the requests, however often each comes. */
  rate: z.number().min(0).max(1).default(1),
  /** Only conversations that contain this text. */
  match: z.string().optional(),
  /** Only these turns of an episode; the first is 1. */
  turns: z.array(z.int().min(1)).optional(),
  /** Sampled tokens before an `abort`, body bytes before a `cut` or a `stall` or in a `trickle`; default: drawn. */
  after: z.int().min(0).optional(),
  /** Hits the first so many requests of the same seed and turn, so that a repeated one gets through. */
  times: z.int().min(1).optional(),
})
export type FaultRule = z.output<typeof faultRuleSchema>

/** A request as the draw sees it. `key` is its seed, or a hash of its body where it has none. */
interface FaultTarget {
  key: string
  conversation: Conversation
}

export interface FaultPlan {
  /** The rules that hit a request, by kind. */
  drawFor(target: FaultTarget): Map<FaultKind, FaultRule>
  rules: readonly FaultRule[]
}

/**
 * Draws are a function of the simulator's seed, the request and how often it came before: one that is asked again meets
 * a share of faults anew, as at a backend that fails now and then.
 */
export function createFaultPlan(rules: readonly FaultRule[], seed: number): FaultPlan {
  const arrivals = new Map<string, number>()
  const isHit = (rule: FaultRule, index: number, { key, conversation }: FaultTarget) => {
    const turn = conversation.turns.length + 1
    if (rule.turns && !rule.turns.includes(turn)) return false
    if (rule.match && !conversation.text.includes(rule.match.normalize('NFC'))) return false
    if (rule.rate === 1 && rule.times === undefined) return true
    const about = `${index} ${key} ${turn}`
    const before = arrivals.get(about) ?? 0
    arrivals.set(about, before + 1)
    const again = rule.times === undefined && before > 0 ? [before] : []
    if (draw(seed, 'fault', rule.kind, key, turn, ...again) >= rule.rate) return false
    return rule.times === undefined || before < rule.times
  }
  return {
    rules,
    drawFor: (target) =>
      new Map(
        rules
          .filter((rule, index) => isHit(rule, index, target))
          .map((rule) => [rule.kind, rule] as const),
      ),
  }
}

/** The completion as the faults of `hit` leave it. `share` in [0, 1) places what is drawn. */
export function bend(
  generation: Generation,
  hit: ReadonlyMap<FaultKind, FaultRule>,
  model: Model,
  share: number,
): Generation {
  let bent = generation
  const abort = hit.get('abort')
  if (abort) bent = abortAfter(bent, model, abort.after ?? share * (bent.ids?.length ?? 0))
  if (hit.has('toolcalls') || hit.has('eaten')) bent = parseCalls(bent)
  if (hit.has('eaten')) bent = eatMarkup(bent, model)
  if (hit.has('reasoning')) bent = splitReasoning(bent)
  if (hit.has('usage'))
    bent = { ...bent, usage: { ...bent.usage, completion: bent.usage.completion + USAGE_OFF } }
  if (hit.has('misaligned')) bent = { ...bent, tokens: bent.tokens?.slice(0, -1) ?? null }
  if (hit.has('nan')) bent = { ...bent, tokens: withoutNumber(bent.tokens, share) }
  if (hit.has('nologprobs')) bent = { ...bent, tokens: null }
  if (hit.has('notokens')) bent = { ...bent, ids: null }
  if (hit.has('nofinish')) bent = { ...bent, finish: null }
  if (hit.has('noversion')) bent = { ...bent, version: null }
  if (hit.has('echo')) bent = { ...bent, echoed: { temperature: 0 } }
  if (hit.has('empty')) bent = emptied(bent)
  return bent
}

/** No choice in vLLM's form; where there are none, as in /generate, a completion of nothing. */
function emptied(generation: Generation): Generation {
  const usage = { ...generation.usage, completion: 0 }
  const nothing = { ids: [], tokens: [], text: '', matched: null, versions: [] }
  return { ...generation, ...nothing, usage, empty: true }
}

/** Tokens that a wrong usage counts too many. */
const USAGE_OFF = 7

/** What a completion comes to that is aborted after `count` tokens: at least one, and never its end of turn. */
export function abortAfter(generation: Generation, model: Model, count: number): Generation {
  const sampled = generation.ids ?? []
  const said = sampled.at(-1) === model.endId ? sampled.length - 1 : sampled.length
  const length = Math.max(1, Math.min(Math.floor(count), said))
  const ids = sampled.slice(0, length)
  return {
    ...generation,
    ids,
    tokens: generation.tokens?.slice(0, length) ?? null,
    text: model.decode(ids, { skipSpecial: true }),
    finish: 'abort',
    matched: null,
    usage: { ...generation.usage, completion: length },
    versions: clipSpans(generation.versions, length),
  }
}

function clipSpans(spans: Generation['versions'], length: number): Generation['versions'] {
  return spans
    .map((span) => ({ ...span, end: Math.min(span.end, length) }))
    .filter(({ start, end }) => end > start)
}

/** An engine with its own tool parser: calls leave the text. A turn without calls stays as it is. */
function parseCalls(generation: Generation): Generation {
  const { calls } = takeApart(generation.text)
  if (calls.length === 0) return generation
  const toolCalls = calls.map((call) => ({
    name: call.name,
    arguments: pythonJson(call.arguments),
  }))
  return { ...generation, toolCalls, finish: 'tool_calls' }
}

/** The same engine where steps that show no text are dropped with their ids, though usage counts them. */
function eatMarkup(generation: Generation, model: Model): Generation {
  const opening = model.encode('<tool_call>')[0]
  const at = generation.ids?.indexOf(opening ?? -1) ?? -1
  if (at < 0 || generation.toolCalls.length === 0) return generation
  return {
    ...generation,
    ids: generation.ids?.slice(0, at) ?? null,
    tokens: generation.tokens?.slice(0, at) ?? null,
  }
}

/** An engine with a reasoning parser: the thought, or else all before the first call, leaves the text. */
function splitReasoning(generation: Generation): Generation {
  const { text } = generation
  const thought = /^(?:<think>)?\n?([\s\S]*?)\n?<\/think>\n*/.exec(text)
  if (thought)
    return { ...generation, reasoning: thought[1] ?? '', text: text.slice(thought[0].length) }
  const call = text.indexOf('<tool_call>')
  const border = call < 0 ? text.length : call
  return { ...generation, reasoning: text.slice(0, border), text: text.slice(border) }
}

function withoutNumber(tokens: Generation['tokens'], share: number): Generation['tokens'] {
  const at = Math.floor(share * (tokens?.length ?? 0))
  return tokens?.map((token, index) => (index === at ? { ...token, logprob: null } : token)) ?? null
}

/** The same turn with each `</tool_call>` spelled out in several ids, as models sometimes do. */
export function spellClosingTags(ids: readonly number[], model: Model): number[] {
  const closing = model.encode('</tool_call>')[0]
  const spelled = [...model.encode('</tool'), ...model.encode('_call>')]
  return ids.flatMap((id) => (id === closing ? spelled : [id]))
}
