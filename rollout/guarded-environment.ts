// An environment behind a guard: whatever it throws, or returns in a wrong shape, is one named fault of the environment.

import type { Environment } from '../envs/environment.ts'
import { PaddockError } from '../protocol/errors.ts'
import { isPlainObject } from '../protocol/json.ts'

/** What each function must give back, checked since a user's module may be written without types. */
const CHECKS: { [K in keyof Environment]?: (result: unknown) => string | null } = {
  open: (messages) =>
    Array.isArray(messages) && messages.every((message) => typeof message?.content === 'string')
      ? null
      : 'a list of messages with string content',
  tools: (tools) =>
    Array.isArray(tools) && tools.every((tool) => typeof tool?.function?.name === 'string')
      ? null
      : 'a list of tools, each with function.name',
  step: (step) =>
    isPlainObject(step) &&
    isPlainObject(step.observation) &&
    typeof step.observation.content === 'string' &&
    isPlainObject(step.audit)
      ? null
      : '{state, observation: {content: string, is_error}, audit}',
  reply: (turn) =>
    isPlainObject(turn) && (typeof turn.say === 'string') !== (typeof turn.end === 'string')
      ? null
      : '{state, say} or {state, end}',
  grade: (grade) =>
    isPlainObject(grade) &&
    ((grade.status === 'scored' && isPlainObject(grade.rewards)) ||
      (grade.status === 'unavailable' && typeof grade.reason === 'string'))
      ? null
      : '{status: "scored", rewards, evidence} or {status: "unavailable", reason, evidence}',
  anchor: (anchor) => (typeof anchor === 'string' && anchor !== '' ? null : 'a non-empty string'),
}

const GUARDED = ['reset', 'open', 'tools', 'step', 'hear', 'reply', 'grade', 'anchor'] as const

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
    const original = environment[method] as (...args: unknown[]) => unknown
    const check = CHECKS[method]
    const call = (...args: unknown[]) => {
      let result: unknown
      try {
        result = original.apply(environment, args)
      } catch (cause) {
        throw fault(
          `${name}.${method} threw: ${cause instanceof Error ? cause.message : cause}`,
          cause,
        )
      }
      const expected = check?.(result)
      if (expected) throw fault(`${name}.${method} must return ${expected}`)
      return result
    }
    Object.assign(guarded, { [method]: call })
  }
  return guarded
}

/** True for an error that `guardedEnvironment` made. */
export function isEnvironmentFault(error: unknown): error is PaddockError {
  return error instanceof PaddockError && error.code === 'environment_fault'
}

function fault(message: string, cause?: unknown): PaddockError {
  return new PaddockError('environment_fault', message, { cause })
}
