// The lease reducer: at least once, acknowledged once, late is late, and never for ever.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  type LeaseEvent,
  type LeaseState,
  leaseReducer,
  MAX_DELIVERIES,
  readyLease,
} from './lease.ts'

const run = (...events: LeaseEvent[]) => {
  let state = readyLease()
  const results = events.map((event) => {
    const change = leaseReducer(state, event)
    state = change.state
    return change.result
  })
  return { state, results }
}
const lease = (id: string, until = 10): LeaseEvent => ({ type: 'lease', id, until })

test('a leased group that is acknowledged in time is settled once; a second ack is a duplicate', () => {
  const { state, results } = run(lease('a'), { type: 'ack', id: 'a' }, { type: 'ack', id: 'a' })
  expect(state).toMatchObject({ phase: 'settled', settlement: 'acked', delivery: 1 })
  expect(results).toEqual([null, 'acked', 'duplicate'])
})

test('a lease that runs out makes the group ready again, and its ack is late', () => {
  const { state, results } = run(
    lease('a', 10),
    { type: 'tick', now: 9.9 },
    { type: 'tick', now: 10 },
    { type: 'ack', id: 'a' },
    lease('b', 20),
    { type: 'ack', id: 'a' },
    { type: 'ack', id: 'b' },
  )
  expect(results).toEqual([null, null, null, 'late', null, 'late', 'acked'])
  expect(state).toMatchObject({ settlement: 'acked', delivery: 2 })
})

test('a nack hands the group back at once; an ack with a lease that never was is unknown', () => {
  const { state, results } = run(lease('a'), { type: 'nack', id: 'a' }, { type: 'ack', id: 'z' })
  expect(state.phase).toBe('ready')
  expect(results).toEqual([null, 'nacked', 'unknown'])
})

test('a lease that reached nobody is taken back and does not count, however often', () => {
  const events = Array.from({ length: 3 * MAX_DELIVERIES }, (_, k): LeaseEvent[] => [
    lease(`${k}`),
    { type: 'takeBack', id: `${k}` },
  ]).flat()
  const { state } = run(...events)
  expect(state).toEqual(readyLease())
  expect(leaseReducer(state, { type: 'ack', id: '0' }).result).toBe('unknown')
})

test('the last delivery can be taken back too; what was handed out before stays counted', () => {
  const handedOut = Array.from({ length: MAX_DELIVERIES - 1 }, (_, k): LeaseEvent[] => [
    lease(`${k}`),
    { type: 'nack', id: `${k}` },
  ]).flat()
  const before = run(...handedOut).state
  const after = run(...handedOut, lease('last'), { type: 'takeBack', id: 'last' }).state
  expect(after).toEqual(before)
})

test('only the lease that is out can be taken back', () => {
  expect(run(lease('a'), { type: 'takeBack', id: 'z' }).state.phase).toBe('leased')
  const { state } = run(lease('a'), { type: 'ack', id: 'a' }, { type: 'takeBack', id: 'a' })
  expect(state.settlement).toBe('acked')
})

test('a group that is never acknowledged is given up after its last delivery', () => {
  const events = Array.from({ length: MAX_DELIVERIES }, (_, k): LeaseEvent[] => [
    lease(`${k}`, k),
    { type: 'tick', now: k },
  ]).flat()
  expect(run(...events).state).toMatchObject({ phase: 'settled', settlement: 'undeliverable' })
})

test('a stale group is settled where it waits, and left alone where it is leased', () => {
  expect(run({ type: 'stale' }).state).toMatchObject({ phase: 'settled', settlement: 'stale' })
  expect(run(lease('a'), { type: 'stale' }).state.phase).toBe('leased')
})

test('a renewed lease runs anew; one that is over cannot be renewed', () => {
  const { state, results } = run(
    lease('a', 10),
    { type: 'renew', id: 'a', until: 30 },
    { type: 'tick', now: 20 },
    { type: 'tick', now: 30 },
    { type: 'renew', id: 'a', until: 90 },
    { type: 'ack', id: 'a' },
  )
  expect(state.phase).toBe('ready')
  expect(results.at(-1)).toBe('late')
})

test('a group whose bytes are lost is undeliverable, unless it has left before', () => {
  expect(run({ type: 'lost' }).state.settlement).toBe('undeliverable')
  const acked = run(lease('a'), { type: 'ack', id: 'a' }, { type: 'lost' })
  expect(acked.state.settlement).toBe('acked')
})

test('after any events the group is in one phase, and at most one ack ever counted', () => {
  const id = fc.constantFrom('a', 'b', 'c')
  const event: fc.Arbitrary<LeaseEvent> = fc.oneof(
    fc.record({ type: fc.constantFrom('lease' as const, 'renew' as const), id, until: fc.nat(20) }),
    fc.record({ type: fc.constantFrom('ack' as const, 'nack' as const, 'takeBack' as const), id }),
    fc.record({ type: fc.constant('tick' as const), now: fc.nat(20) }),
    fc.record({ type: fc.constantFrom('stale' as const, 'lost' as const) }),
  )
  fc.assert(
    fc.property(fc.array(event, { maxLength: 60 }), (events) => {
      let state: LeaseState = readyLease()
      let acked = 0
      for (const one of events) {
        const change = leaseReducer(state, one)
        if (state.phase === 'settled') expect(change.state).toEqual(state)
        state = change.state
        if (change.result === 'acked') acked++
        expect(state.lease !== null).toBe(state.phase === 'leased')
        expect(state.settlement !== null).toBe(state.phase === 'settled')
        expect(state.delivery).toBeLessThanOrEqual(MAX_DELIVERIES)
        expect(state.delivery).toBeGreaterThanOrEqual(state.phase === 'leased' ? 1 : 0)
      }
      expect(acked).toBe(state.settlement === 'acked' ? 1 : 0)
    }),
  )
})
