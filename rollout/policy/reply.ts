// Reading a backend's reply: from bytes to checked values, every doubt a fault that names its field.
import { isPlainObject } from '../../protocol/json.ts'
import { MAX_REPLY_BYTES } from '../../protocol/limits.ts'
import type { VersionRun } from '../chat/tape.ts'
import type { Completion, Expectation, ReplyFault } from './dialect.ts'

/** Carries a fault out of nested readers to `readReply`, which alone catches it. */
class Refusal extends Error {
  readonly fault: ReplyFault

  constructor(fault: ReplyFault) {
    super(fault.message)
    this.fault = fault
  }
}

export function refuse(
  kind: ReplyFault['kind'],
  field: string,
  message: string,
  problem?: ReplyFault['problem'],
): never {
  throw new Refusal({ kind, field, message, ...(problem && { problem }) })
}

type JsonRecord = Record<string, unknown>

/**
 * Opens a reply and hands its JSON object to `read`; the text of a stream that was asked for becomes one by
 * `joinStream`. Whatever is neither under status 2xx is the machinery's fault, but for a 400 that says the prompt leaves
 * no room. Never throws for what came in.
 */
export function readReply<Read>(
  status: number,
  headers: Record<string, string>,
  body: Uint8Array,
  { stream }: Pick<Expectation, 'stream'>,
  read: (reply: JsonRecord) => Read,
  joinStream: ((text: string) => JsonRecord) | null = null,
): Read | ReplyFault {
  try {
    checkStatus(status, body)
    const text = openText(headers, body, stream === true && joinStream !== null)
    const reply = text.isStream && joinStream ? joinStream(text.text) : openJson(text.text)
    return read(reply)
  } catch (error) {
    if (error instanceof Refusal) return error.fault
    throw error
  }
}

/** How engines word it: vLLM "maximum context length is", "maximum model length of"; SGLang "context length (…)". */
const CONTEXT_LENGTH =
  /context[ _-]?(length|window)|(maximum|max)[ _]model[ _]len(gth)?|longer than the model/i

export function isContextLength(text: string): boolean {
  return CONTEXT_LENGTH.test(text)
}

/** Bytes of a problem text that are looked at: its message stands at the beginning. */
const PROBLEM_BYTES = 16_384
const PROBLEM_CHARACTERS = 200

function checkStatus(status: number, body: Uint8Array): void {
  if (status >= 200 && status < 300) return
  const text = new TextDecoder().decode(body.subarray(0, PROBLEM_BYTES)).replace(/\s+/g, ' ').trim()
  const said = text.slice(0, PROBLEM_CHARACTERS).toWellFormed()
  if (status === 400 && isContextLength(text)) refuse('context_length', '', said)
  refuse('infra_backend', '', `status ${status} from the backend: ${said || 'empty body'}`)
}

function openText(
  headers: Record<string, string>,
  body: Uint8Array,
  mayStream: boolean,
): { text: string; isStream: boolean } {
  const type = contentType(headers)
  const isStream = mayStream && type !== null && /^text\/event-stream\b/i.test(type)
  if (!isStream && type !== null && !/^application\/([\w.-]+\+)?json\b/i.test(type))
    refuse('infra_backend', 'content-type', `expected application/json, got ${type.slice(0, 100)}`)
  if (body.byteLength > MAX_REPLY_BYTES)
    refuse('infra_backend', '', `${body.byteLength} bytes: at most ${MAX_REPLY_BYTES} are read`)
  try {
    return { text: decoder.decode(body), isStream }
  } catch {
    return refuse('infra_backend', '', 'the reply is no UTF-8')
  }
}

function openJson(text: string): JsonRecord {
  const value = parseJson(text)
  if (!isPlainObject(value)) refuse('infra_backend', '', 'expected a JSON object as the reply')
  return value
}

function contentType(headers: Record<string, string>): string | null {
  const entry = Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type')
  return entry === undefined ? null : String(entry[1]).trim()
}

const decoder = new TextDecoder('utf-8', { fatal: true })

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error)
    const said = cause.slice(0, PROBLEM_CHARACTERS).toWellFormed()
    return refuse('infra_backend', '', `the reply is no complete JSON: ${said}`)
  }
}

export function readObject(value: unknown, field: string): JsonRecord {
  if (isPlainObject(value)) return value
  return refuse('contract_violation', field, `expected an object, got ${describe(value)}`)
}

/** Text, or empty text for null or nothing. */
export function readText(value: unknown, field: string): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'string') return value
  return refuse('contract_violation', field, `expected text or null, got ${describe(value)}`)
}

/** A whole number of tokens, or null where there is none. */
export function readCount(value: unknown, field: string): number | null {
  if (value === undefined || value === null) return null
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number
  return refuse('contract_violation', field, `expected a whole number, got ${describe(value)}`)
}

export function readArray(value: unknown, field: string, hint: string): unknown[] {
  if (Array.isArray(value)) return value
  const came = `expected an array, got ${describe(value)}. ${hint}`
  return refuse('contract_violation', field, came, 'absent')
}

const MAX_ID = 2 ** 31 - 1

export function readIds(values: readonly unknown[], field: string): Int32Array {
  const bad = values.findIndex(
    (id) => !Number.isInteger(id) || (id as number) < 0 || (id as number) > MAX_ID,
  )
  if (bad < 0) return new Int32Array(values as number[])
  const what = describe(values[bad])
  return refuse('contract_violation', field, `expected a token id at ${bad}, got ${what}`)
}

/** What rounding may bring a log-probability above 0: sums in bfloat16 come to some 1e-5. */
const LOGPROB_NOISE = 1e-4

/** vLLM writes it where it has no value, and for the logarithm of 0: what was sampled had neither. */
const NO_LOGPROB = -9999

/** Log-probabilities as float32. JSON has no NaN, so engines write null where the logits were no numbers. */
export function readLogprobs(values: readonly unknown[], field: string): Float32Array {
  const bad = values.findIndex(
    (value) =>
      typeof value !== 'number' ||
      !Number.isFinite(Math.fround(value)) ||
      value > LOGPROB_NOISE ||
      value <= NO_LOGPROB,
  )
  if (bad < 0) return new Float32Array(values as number[])
  const what = describe(values[bad])
  return refuse(
    'contract_violation',
    field,
    `the log-probability of token ${bad} must be finite, above ${NO_LOGPROB} and at most 0, got ${what}`,
  )
}

/** A policy version: a whole number or its decimal text; null for none and for a label. */
export function readVersion(value: unknown): number | null {
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value
  return Number.isSafeInteger(number) && (number as number) >= 0 ? (number as number) : null
}

/** All ids as of a version that the backend told of the whole reply: the weights may have changed in between. */
export function approximateRun(told: unknown, count: number): VersionRun {
  const version = readVersion(told)
  return version === null ? { version, count } : { version, count, approximate: true }
}

/** Names under which a dialect sends what `checkCompletion` compares. */
export interface FieldNames {
  promptIds: string
  ids: string
  logprobs: string
  promptTokens: string
  completionTokens: string
}

/** A completion with what the backend did not send as null. */
export type Draft = Omit<Completion, 'kind' | 'usage'> & {
  usage: { promptTokens: number | null; completionTokens: number | null }
}

/**
 * Holds a draft against what was asked and against itself: no id without log-probability or outside the vocabulary, no
 * count that disagrees, no completion of nothing (but for an abort, which may come before the first token).
 */
export function checkCompletion(draft: Draft, expect: Expectation, names: FieldNames): Completion {
  const { promptIds, ids, logprobs, usage } = draft
  const promptTokens = usage.promptTokens ?? promptIds?.length
  const completionTokens = usage.completionTokens ?? ids?.length
  if (promptTokens === undefined) return missing(names.promptTokens)
  if (completionTokens === undefined) return missing(names.completionTokens)
  if (expect.tokens) {
    if (promptIds === null) return missing(names.promptIds)
    if (ids === null) return missing(names.ids)
    if (logprobs === null) return missing(names.logprobs)
    const disagrees = (field: string, counted: number, said: number, as: string): void => {
      if (counted !== said)
        refuse(
          'contract_violation',
          field,
          `${counted} came, but ${said} ${as} were told`,
          'length',
        )
    }
    disagrees(names.ids, ids.length, completionTokens, `(${names.completionTokens})`)
    disagrees(names.logprobs, logprobs.length, ids.length, names.ids)
    disagrees(names.promptTokens, promptTokens, promptIds.length, names.promptIds)
    if (expect.promptIds !== null && !sameIds(promptIds, expect.promptIds))
      refuse('contract_violation', names.promptIds, 'these are not the ids that were sent')
    if (expect.promptIds === null) refuseUnknownIds(promptIds, names.promptIds, expect.knowsId)
    refuseUnknownIds(ids, names.ids, expect.knowsId)
  }
  if (completionTokens === 0 && draft.finish !== 'abort') {
    const field = ids === null ? names.completionTokens : names.ids
    const least = 'a completion has at least the token that ended it'
    refuse(
      'contract_violation',
      field,
      `no token was sampled, yet it ended by ${draft.finish}: ${least}`,
    )
  }
  if (completionTokens > expect.maxTokens) {
    const field = ids === null ? names.completionTokens : names.ids
    const most = `at most ${expect.maxTokens} were asked for`
    refuse('contract_violation', field, `${completionTokens} tokens were sampled, ${most}`)
  }
  return { kind: 'completion', ...draft, usage: { promptTokens, completionTokens } }
}

function missing(field: string): never {
  return refuse(
    'contract_violation',
    field,
    `the reply has no ${field}: use an engine release that returns it`,
    'absent',
  )
}

/** An id that the tokenizer lacks has no text: what was sampled would be graded as if it were not there. */
export function refuseUnknownIds(
  ids: Int32Array,
  field: string,
  knowsId: Expectation['knowsId'],
): void {
  if (knowsId === null) return
  const bad = ids.findIndex((id) => !knowsId(id))
  if (bad < 0) return
  const hint = 'does model_dir hold the files of the model that is served?'
  refuse('contract_violation', field, `the tokenizer has no id ${ids[bad]} (at ${bad}): ${hint}`)
}

function sameIds(a: Int32Array, b: Int32Array): boolean {
  return a.length === b.length && a.every((id, index) => id === b[index])
}

/** A value in an error message: scalars shortly, containers by their kind (they may be nested absurdly deep). */
export function describe(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (typeof value === 'object' && value !== null)
    return Array.isArray(value) ? 'an array' : 'an object'
  return (JSON.stringify(value) ?? String(value)).slice(0, 80)
}
