import { expect, test } from 'vitest'
import { latencyMs, parseLatency } from './latency.ts'

test.each([
  ['0', { kind: 'fixed', ms: 0 }],
  ['fixed:50', { kind: 'fixed', ms: 50 }],
  ['lognormal:200,0.5', { kind: 'lognormal', medianMs: 200, sigma: 0.5 }],
])('%s is read', (text, latency) => {
  expect(parseLatency(text)).toEqual(latency)
})

test('another form is refused with the forms that are known', () => {
  expect(() => parseLatency('fast')).toThrow('fixed:MS or lognormal:MEDIAN_MS,SIGMA')
})

test('lognormal latencies have the median asked for, and sigma as the deviation of their logarithms', () => {
  const latency = parseLatency('lognormal:200,0.5')
  const logs = Array.from({ length: 4000 }, (_, i) => Math.log(latencyMs(latency, `seed ${i}`)))
  const mean = logs.reduce((sum, log) => sum + log, 0) / logs.length
  const variance = logs.reduce((sum, log) => sum + (log - mean) ** 2, 0) / logs.length
  // Five standard errors: 0.5 / sqrt(4000) for the mean, 0.5 / sqrt(8000) for the deviation.
  expect(Math.abs(mean - Math.log(200))).toBeLessThan(0.04)
  expect(Math.abs(Math.sqrt(variance) - 0.5)).toBeLessThan(0.028)
})

test('the same turn has the same latency', () => {
  const latency = parseLatency('lognormal:200,0.5')
  expect(latencyMs(latency, 'a')).toBe(latencyMs(latency, 'a'))
  expect(latencyMs(latency, 'a')).not.toBe(latencyMs(latency, 'b'))
})
