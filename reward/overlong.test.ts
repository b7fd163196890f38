import { expect, test } from 'vitest'
import { overlongPenalty, overlongSchema } from './overlong.ts'

// DAPO, eq. 13 with L_max 100 and L_cache 20; beyond: TRL stays at -1, verl falls on.
test.each([
  [60, 0, 0],
  [80, 0, 0],
  [90, -0.5, -0.5],
  [100, -1, -1],
  [120, -1, -2],
])('a length of %i costs %f clamped and %f linear', (length, clamped, linear) => {
  const shaping = { max_length: 100, buffer: 20, penalty_factor: 1 }
  expect(overlongPenalty(length, { ...shaping, beyond: 'clamp' })).toBe(clamped)
  expect(overlongPenalty(length, { ...shaping, beyond: 'linear' })).toBe(linear)
})

test('the factor scales the penalty, and without buffer it falls at once', () => {
  const half = overlongSchema.parse({ max_length: 100, buffer: 20, penalty_factor: 0.5 })
  expect(overlongPenalty(90, half)).toBe(-0.25)
  const sharp = overlongSchema.parse({ max_length: 100, buffer: 0 })
  expect(overlongPenalty(100, sharp)).toBe(0)
  expect(overlongPenalty(101, sharp)).toBe(-1)
})
