// Which endpoint a request goes to: the attempt's own, else the least loaded of those that may be asked.
import { expect, test } from 'vitest'
import { type Breaker, breakerReducer, closedBreaker } from './breaker.ts'
import { chooseEndpoint, opensAt } from './endpoints.ts'

const fails = (state: Breaker): Breaker =>
  breakerReducer(state, { type: 'failed', at: 0, probe: false })
const openBreaker = Array.from({ length: 10 }).reduce<Breaker>(fails, closedBreaker)
const endpoint = (some: { inFlight?: number; breaker?: Breaker; blamedAt?: number } = {}) => ({
  inFlight: 0,
  sent: 0,
  breaker: closedBreaker,
  blamedAt: Number.NEGATIVE_INFINITY,
  ...some,
})
const nobody = { own: null, avoid: null }

test('the least loaded is asked first, and each attempt stays with its own', () => {
  const [busy, calm] = [endpoint({ inFlight: 5 }), endpoint({ inFlight: 1 })]
  expect(chooseEndpoint([busy, calm], nobody, 0)).toBe(calm)
  expect(chooseEndpoint([busy, calm], { own: busy, avoid: null }, 0)).toBe(busy)
})

test('after a failure another one is asked, and the same where there is no other', () => {
  const [own, other] = [endpoint(), endpoint({ inFlight: 9 })]
  expect(chooseEndpoint([own, other], { own, avoid: own }, 0)).toBe(other)
  expect(chooseEndpoint([own], { own, avoid: own }, 0)).toBe(own)
})

test('one whose reply could not be used comes last for a minute', () => {
  const [blamed, busy] = [endpoint({ blamedAt: 0 }), endpoint({ inFlight: 9 })]
  expect(chooseEndpoint([blamed, busy], nobody, 59_999)).toBe(busy)
  expect(chooseEndpoint([blamed, busy], nobody, 60_000)).toBe(blamed)
  expect(chooseEndpoint([blamed], nobody, 1)).toBe(blamed)
})

test('an open one is left alone until its probe is due, which then goes first', () => {
  const [open, busy] = [endpoint({ breaker: openBreaker }), endpoint({ inFlight: 9 })]
  expect(chooseEndpoint([open, busy], nobody, 14_999)).toBe(busy)
  expect(chooseEndpoint([open, busy], { own: busy, avoid: null }, 15_000)).toBe(open)
  // What has just failed elsewhere is not risked again while there is one that works.
  expect(chooseEndpoint([open, busy], { own: null, avoid: busy }, 15_000)).toBe(busy)
})

test('where none may be asked it is told when one may, or that a probe decides', () => {
  const open = endpoint({ breaker: openBreaker })
  const probing = endpoint({ breaker: breakerReducer(openBreaker, { type: 'probe', at: 15_000 }) })
  expect(chooseEndpoint([open, probing], nobody, 0)).toBe(null)
  expect(opensAt([open, probing])).toBe(15_000)
  expect(opensAt([probing])).toBe(null)
})
