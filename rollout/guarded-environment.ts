// An environment behind a guard: whatever it throws, or returns in a wrong shape, is one named fault of the environment.

import type { Environment } from '../envs/environment.ts'
import { PaddockError } from '../protocol/errors.ts'
import { isPlainObject } from '../protocol/json.ts'
import { boundedText, outsideText } from './outside-text.ts'
import { NotJson, plainJson } from './plain-json.ts'

/** A result of a wrong shape; `expected` completes "must return". */
class WrongShape extends Error {
  constructor(expected: string) {
    super(`must return ${expected}`)
  }
}

/**
 * An observation as text that may go on record; `replaced` where what was no text became U+FFFD, `truncated` where it was too
 * long to be shown whole.
 */
export interface GuardedObservation {
  content: string
  is_error: boolean
  replaced?: true
  truncated?: true
}

type Read = (result: unknown) => unknown

/**
 * What each function must give back, read since a user's module may be written without types. What goes on record is
 * copied: a getter that throws later, or an object that changes, would be a fault of the thread.
 */
const READERS: { [K in keyof Environment]?: Read } = {
  reset: (state) => stateOf('reset', { state }, 'a state'),
  hear: (state) => stateOf('hear', { state }, 'the state'),
  open(messages) {
    const copied = plainJson(messages, 'messages')
    if (isMessages(copied) && copied.every(({ role }) => ROLES.has(role))) return copied
    throw new WrongShape(
      'a list of at least one message, each with role system, user, assistant or tool and string content',
    )
  },
  tools(tools) {
    if (!Array.isArray(tools) || !tools.every((tool) => typeof tool?.function?.name === 'string'))
      throw new WrongShape('a list of tools, each with function.name')
    for (const [index, tool] of tools.entries()) checkTool(tool, `tools[${index}]`)
    return tools
  },
  step(step) {
    const form =
      '{state, observation: {content: string or Uint8Array, is_error: boolean}, audit: {…}, end?: non-empty string}'
    if (!isPlainObject(step) || !isPlainObject(step.observation)) throw new WrongShape(form)
    const { observation, audit, end } = step
    const { content, is_error } = observation
    const isText = typeof content === 'string' || content instanceof Uint8Array
    const seen = isText && typeof is_error === 'boolean'
    if (!seen || !isPlainObject(audit) || (end !== undefined && !isWord(end)))
      throw new WrongShape(form)
    const { text: whole, replaced } = outsideText(content)
    const { text, truncated } = boundedText(whole)
    const seenText: GuardedObservation = {
      content: text,
      is_error,
      ...(replaced && { replaced }),
      ...(truncated && { truncated }),
    }
    return {
      state: stateOf('step', step, form),
      observation: seenText,
      audit: plainJson(audit, 'audit'),
      ...(end !== undefined && { end }),
    }
  },
  reply(turn) {
    const form =
      '{state, say: string}, {state, end: non-empty string} or {state, ask: {kind: "user", messages}} with at least one message'
    if (!isPlainObject(turn)) throw new WrongShape(form)
    const { say, end, ask } = turn
    const state = stateOf('reply', turn, form)
    if (ask !== undefined && say === undefined && end === undefined) {
      if (!isUserAsk(ask)) throw new WrongShape(form)
      return { state, ask: plainJson(ask, 'ask') }
    }
    if (typeof say === 'string' && end === undefined) return { state, say }
    if (isWord(end) && say === undefined) return { state, end }
    throw new WrongShape(form)
  },
  /** Evidence may be left out: a grade without any is a grade. */
  grade(grade) {
    const form =
      '{status: "scored", rewards: {…}, evidence: {…}}, {status: "unavailable", reason: string, evidence: {…}} or {status: "asks", asks: […]}'
    if (!isPlainObject(grade)) throw new WrongShape(form)
    const copied = { ...plainJson(grade, 'grade') }
    const { status, rewards, reason, asks, evidence = {} } = copied
    if (status === 'asks' && isAsks(asks)) return { status, asks }
    const graded = status === 'scored' && isPlainObject(rewards)
    const excused = status === 'unavailable' && typeof reason === 'string'
    if (isPlainObject(evidence) && (graded || excused)) return { ...copied, evidence }
    throw new WrongShape(form)
  },
  weights: finiteNumbers,
  progress: finiteNumbers,
  anchor(anchor) {
    if (isWord(anchor)) return anchor
    throw new WrongShape('a non-empty string')
  },
}

function finiteNumbers(given: unknown): unknown {
  if (isPlainObject(given) && Object.values(given).every(Number.isFinite)) return { ...given }
  throw new WrongShape('an object of finite numbers')
}

/** Whom the templates of models know. */
const ROLES = new Set<unknown>(['system', 'user', 'assistant', 'tool'])

/** A model that is asked with no message at all refuses, and would be blamed for it. */
function isMessages(messages: unknown): messages is { role: unknown; content: string }[] {
  if (!Array.isArray(messages) || messages.length === 0) return false
  return messages.every((one) => typeof one?.content === 'string')
}

function isUserAsk(ask: unknown): boolean {
  return isPlainObject(ask) && ask.kind === 'user' && isMessages(ask.messages)
}

/** At least one ask, each with an id of its own. */
function isAsks(asks: unknown): boolean {
  if (!Array.isArray(asks) || asks.length === 0 || !asks.every(isAsk)) return false
  return new Set(asks.map(({ id }) => id)).size === asks.length
}

function isAsk(ask: unknown): boolean {
  if (!isPlainObject(ask) || !isWord(ask.id)) return false
  if (ask.kind === 'grade') return isWord(ask.grader) && isPlainObject(ask.input)
  const { kind, rubric, transcript } = ask
  return kind === 'judge' && isWord(rubric) && Array.isArray(transcript)
}

const GUARDED = [
  'reset',
  'open',
  'tools',
  'step',
  'hear',
  'reply',
  'grade',
  'anchor',
  'weights',
  'progress',
  'generate',
  'question',
] as const

/** Guards by what they guard: one is asked for several times a turn. */
const guards = new WeakMap<Environment, Map<string, Environment>>()

/** The same environment; every fault of it is a PaddockError `environment_fault` that names the function. */
export function guardedEnvironment(name: string, environment: Environment): Environment {
  const known = guards.get(environment) ?? new Map<string, Environment>()
  const guarded = known.get(name) ?? guard(name, environment)
  guards.set(environment, known.set(name, guarded))
  return guarded
}

function guard(name: string, environment: Environment): Environment {
  const guarded: Environment = { ...environment }
  for (const method of GUARDED) {
    const original = environment[method] as ((...args: unknown[]) => unknown) | undefined
    if (!original) continue
    const read = READERS[method]
    const call = (...args: unknown[]) => {
      try {
        const result = original.apply(environment, args)
        refusePromises(result)
        return read ? read(result) : result
      } catch (cause) {
        throw fault(`${name}.${method} ${sentenceOf(cause)}`, cause)
      }
    }
    Object.assign(guarded, { [method]: call })
  }
  return guarded
}

/** True for an error that `guardedEnvironment` made. */
export function isEnvironmentFault(error: unknown): error is PaddockError {
  return error instanceof PaddockError && error.code === 'environment_fault'
}

/** Which function made a state, for a fault that shows only when the state crosses to another thread. */
const makers = new WeakMap<object, string>()

/** The fault of a state that cannot cross: `cause` is what the copying threw. */
export function stateFault(name: string, state: unknown, cause: unknown): PaddockError {
  const maker = isObject(state) ? makers.get(state) : undefined
  const what = `must return a state of plain data, which can be copied to another thread: ${textOf(cause)}`
  return fault(`${name}.${maker ?? '(reset, step, hear or reply)'} ${what}`, cause)
}

function stateOf(method: string, holder: { state?: unknown }, form: string): unknown {
  const { state } = holder
  if (state === undefined) throw new WrongShape(form)
  if (isObject(state)) makers.set(state, method)
  return state
}

/** An answer that comes later would be read as if it were there. Its rejection, which nobody awaits, ends no thread. */
function refusePromises(result: unknown): void {
  if (!isObject(result) || Array.isArray(result)) return
  let found = false
  for (const one of [result, ...Object.values(result)]) {
    if (!isThenable(one)) continue
    Promise.resolve(one).catch(() => {})
    found = true
  }
  if (found) throw new WrongShape('at once, and no promise')
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return isObject(value) && typeof (value as { then?: unknown }).then === 'function'
}

/** Tools that were found to be JSON: most environments give the same objects in every turn. */
const checkedTools = new WeakSet<object>()

function checkTool(tool: object, path: string): void {
  if (checkedTools.has(tool)) return
  plainJson(tool, path)
  checkedTools.add(tool)
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

function isWord(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** Characters of a thrown text that are told. */
const MOST_CHARACTERS = 1000

/** What a function did wrong. Even to ask what was thrown may throw, where it is a proxy. */
function sentenceOf(thrown: unknown): string {
  try {
    if (thrown instanceof WrongShape || thrown instanceof NotJson) return thrown.message
  } catch {}
  return `threw: ${textOf(thrown)}`
}

/** The text of whatever was thrown: a symbol, or an object whose getters throw, has none of its own. */
/** What was thrown, in words, whatever it is. */
export function textOf(thrown: unknown): string {
  try {
    const text = thrown instanceof Error ? String(thrown.message) : String(thrown)
    return text.slice(0, MOST_CHARACTERS).toWellFormed()
  } catch {
    return 'something that cannot be written as text'
  }
}

function fault(message: string, cause?: unknown): PaddockError {
  return new PaddockError('environment_fault', message, { cause })
}
