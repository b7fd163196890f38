// The circuit breaker: when it opens, for how long, and that one probe decides whether the endpoint is back.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  admits,
  type Breaker,
  type BreakerEvent,
  breakerReducer,
  closedBreaker,
} from './breaker.ts'

const result = (type: 'ok' | 'failed' | 'answered' | 'withdrawn', at: number, probe = false) =>
  ({ type, at, probe }) as const
const after = (events: readonly BreakerEvent[], from = closedBreaker): Breaker =>
  events.reduce(breakerReducer, from)
const failures = (count: number, at = 0) =>
  Array.from({ length: count }, () => result('failed', at))

describe('it opens', () => {
  test('at the tenth failure in a row', () => {
    expect(after(failures(9)).phase).toBe('closed')
    expect(after(failures(10)).phase).toBe('open')
    expect(after([...failures(9), result('ok', 1), ...failures(9, 2)]).phase).toBe('closed')
  })

  test('where half of at least 20 results of 30 s are failures', () => {
    const mixed = Array.from({ length: 10 }, (_, n) => [
      result('ok', n),
      result('failed', n),
    ]).flat()
    expect(after(mixed.slice(0, -1)).phase).toBe('closed')
    expect(after(mixed).phase).toBe('open')
    const older = mixed.slice(0, -2)
    expect(after([...older, result('ok', 31_000), result('failed', 31_001)]).phase).toBe('closed')
  })

  test('for as long as a 429 asks', () => {
    const limited = after([{ type: 'limited', at: 100, probe: false, ms: 2000 }])
    expect(admits(limited, 2099)).toBe('no')
    expect(admits(limited, 2100)).toBe('probe')
  })

  test('never for refusals of single requests, or for what nobody waits for', () => {
    const refused = Array.from({ length: 100 }, (_, n) =>
      result(n % 2 ? 'answered' : 'withdrawn', n),
    )
    expect(after(refused)).toEqual(closedBreaker)
  })
})

describe('when it is open', () => {
  const open = after(failures(10))
  const probing = breakerReducer(open, { type: 'probe', at: 15_000 })

  test('nothing goes out for 15 s, then one probe', () => {
    expect(admits(open, 14_999)).toBe('no')
    expect(admits(open, 15_000)).toBe('probe')
    expect(admits(probing, 15_000)).toBe('no')
  })

  test.each(['ok', 'answered'] as const)('a probe that is %s closes it, as new', (type) => {
    expect(breakerReducer(probing, result(type, 15_100, true))).toEqual(closedBreaker)
  })

  test('each failed probe doubles the time, up to 120 s', () => {
    let state = open
    const lengths: number[] = []
    for (let at = 15_000; lengths.length < 5; at = state.openUntil) {
      state = after([{ type: 'probe', at }, result('failed', at, true)], state)
      lengths.push(state.openUntil - at)
    }
    expect(lengths).toEqual([30_000, 60_000, 120_000, 120_000, 120_000])
  })

  test('a probe that is withdrawn lets the next request be one', () => {
    expect(admits(breakerReducer(probing, result('withdrawn', 15_100, true)), 15_100)).toBe('probe')
  })

  test('what went out before does not count any more', () => {
    for (const type of ['ok', 'failed'] as const) {
      expect(breakerReducer(open, result(type, 10))).toEqual(open)
      expect(breakerReducer(probing, result(type, 15_010))).toEqual(probing)
    }
  })
})

test('over any history at most one probe is out, and an open breaker always lets one out in time', () => {
  const kinds = fc.constantFrom('ok', 'failed', 'answered', 'withdrawn', 'limited')
  const step = fc.record({ ms: fc.nat(20_000), kind: kinds, late: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 150 }), (steps) => {
      let state = closedBreaker
      let at = 0
      let probeOut = false
      for (const { ms, kind, late } of steps) {
        at += ms
        if (admits(state, at) === 'probe' && !late) {
          expect(probeOut).toBe(false)
          state = breakerReducer(state, { type: 'probe', at })
          probeOut = true
        }
        const probe = probeOut && !late
        const event: BreakerEvent =
          kind === 'limited' ? { type: kind, at, probe, ms: 500 } : { type: kind, at, probe }
        state = breakerReducer(state, event)
        if (probe) probeOut = false
        expect(state.phase === 'probing').toBe(probeOut)
        if (state.phase === 'open') {
          expect(state.openUntil - at).toBeLessThanOrEqual(120_000)
          expect(admits(state, state.openUntil)).toBe('probe')
        }
      }
    }),
  )
})
