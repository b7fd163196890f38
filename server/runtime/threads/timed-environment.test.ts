// What a job spends in its environment is measured, and nothing else of it changes.
import { expect, test } from 'vitest'
import type { Environment } from '../../../envs/environment.ts'
import { createEnvironmentClock } from './timed-environment.ts'

const seen = (content: string, is_error = true) => ({
  state: null,
  observation: { content, is_error },
  audit: {},
})

/** Each function takes as long as its name says. */
function environment(clock: { ms: number }): Environment {
  const take = <T>(ms: number, result: T) => {
    clock.ms += ms
    return result
  }
  return {
    tools: () => take(1, [{ type: 'function', function: { name: 'look' } }]),
    step: (_: unknown, { name }: { name: string }) => {
      if (name === 'break') throw new Error('broken')
      return take(
        250,
        name === 'look' ? seen('{}', false) : seen('{"error":{"code":"UNKNOWN_TOOL"}}'),
      )
    },
    grade: () => take(500, { status: 'scored', rewards: {}, evidence: {} }),
  } as unknown as Environment
}

const call = (name: string) => ({ id: '1', name, arguments: {}, arguments_json: '{}' })

test('calls, grade and the whole are told once, with names that were offered only', () => {
  const time = { ms: 0 }
  const clock = createEnvironmentClock(() => time.ms)
  const timed = clock.timed('lab', environment(time))
  expect(clock.take()).toBeNull()
  timed.tools(null)
  expect(timed.step(null, call('look'), 0).observation.is_error).toBe(false)
  timed.step(null, call('invented'), 0)
  expect(() => timed.step(null, call('break'), 0)).toThrow('broken')
  timed.grade(null)
  expect(clock.take()).toEqual({
    env: 'lab',
    calls: [
      { tool: 'look', outcome: 'ok', seconds: 0.25 },
      { tool: null, outcome: 'bad_args', seconds: 0.25 },
      { tool: null, outcome: 'infra', seconds: 0 },
    ],
    graded: 0.5,
    seconds: 1.001,
  })
  expect(clock.take()).toBeNull()
})
