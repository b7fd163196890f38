// The fingerprint of a state: equal for equal states, null for what is no JSON.
import { expect, test } from 'vitest'
import { stateHash } from './state-hash.ts'

test('is the SHA-256 of the JSON text', () => {
  // printf '{"a":1}' | sha256sum
  expect(stateHash({ a: 1 })).toBe(
    '015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862',
  )
})

test('is the same for a copy, and another for another state', () => {
  const state = { rows: [{ id: 'A-1', tags: ['x'] }], calls: 3 }
  expect(stateHash(structuredClone(state))).toBe(stateHash(state))
  expect(stateHash({ ...state, calls: 4 })).not.toBe(stateHash(state))
})

test('is null where the state is no JSON', () => {
  const circle: Record<string, unknown> = {}
  circle.self = circle
  for (const state of [circle, { n: 1n }, undefined]) expect(stateHash(state)).toBeNull()
})
