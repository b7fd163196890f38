// The retry budget: whatever happens, retries stay within 3 and a tenth of the requests of the last minute.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { allowance, type RetryBudget, spend } from './retry-budget.ts'

test('a backend that fails every request gets at most 1.1 times the requests, and 3', () => {
  let budget: RetryBudget = []
  let sent = 0
  for (let request = 0; request < 1000; request++) {
    budget = spend(budget, 'requests', request * 10)
    sent++
    for (let tries = 0; tries < 2 && allowance(budget, request * 10).left >= 1; tries++) {
      budget = spend(budget, 'retries', request * 10)
      sent++
    }
  }
  expect(sent).toBeLessThanOrEqual(1.1 * 1000 + 3)
  // And the budget is there to be used.
  expect(sent).toBeGreaterThanOrEqual(1.1 * 1000 + 2)
})

test('what is older than a minute neither allows nor counts', () => {
  let budget: RetryBudget = []
  for (let count = 0; count < 3; count++) budget = spend(budget, 'retries', 0)
  expect(allowance(budget, 59_999).left).toBe(0)
  expect(allowance(budget, 60_000)).toEqual({ allowed: 3, left: 3 })
})

test('at no time do retries of the last minute exceed what its requests allow', () => {
  const step = fc.record({ ms: fc.nat(5000), retry: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      let budget: RetryBudget = []
      let at = 0
      const log: { at: number; retry: boolean }[] = []
      for (const { ms, retry } of steps) {
        at += ms
        if (retry && allowance(budget, at).left < 1) continue
        budget = spend(budget, retry ? 'retries' : 'requests', at)
        log.push({ at, retry })
        const second = Math.floor(at / 1000)
        const recent = log.filter((one) => Math.floor(one.at / 1000) > second - 60)
        const retries = recent.filter((one) => one.retry).length
        const { allowed, left } = allowance(budget, at)
        expect(allowed).toBeCloseTo(3 + 0.1 * (recent.length - retries))
        expect(left).toBeCloseTo(Math.max(0, allowed - retries))
        if (retry) expect(retries).toBeLessThanOrEqual(allowed + 1e-9)
      }
    }),
  )
})
