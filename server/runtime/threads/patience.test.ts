// Patience with a request: it ends at the deadline or with the signal, and whoever waits hears of it at once.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { openPatience } from './patience.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const never = new AbortController().signal

test('ends at its deadline and calls back once', () => {
  const patience = openPatience(performance.now() + 500, never)
  const heard = vi.fn()
  patience.onEnd(heard)
  vi.advanceTimersByTime(499)
  expect(patience.ended()).toBe(false)
  vi.advanceTimersByTime(500)
  expect(patience.ended()).toBe(true)
  expect(heard).toHaveBeenCalledTimes(1)
})

test('ends with the signal, whatever is left', () => {
  const withdrawn = new AbortController()
  const patience = openPatience(performance.now() + 500, withdrawn.signal)
  const heard = vi.fn()
  patience.onEnd(heard)
  withdrawn.abort()
  vi.advanceTimersByTime(1000)
  expect(heard).toHaveBeenCalledTimes(1)
})

test('has ended from the start where the signal came before', () => {
  expect(openPatience(performance.now() + 500, AbortSignal.abort()).ended()).toBe(true)
})

test('a wait lasts its time, or until patience ends', async () => {
  const patience = openPatience(performance.now() + 500, never)
  const order: string[] = []
  const short = patience.wait(100).then(() => order.push('short'))
  await vi.advanceTimersByTimeAsync(100)
  await short
  const long = patience.wait(60_000).then(() => order.push('long'))
  await vi.advanceTimersByTimeAsync(401)
  await long
  expect(order).toEqual(['short', 'long'])
  await patience.wait(60_000)
})

test('once closed leaves no timer and calls nobody', () => {
  const withdrawn = new AbortController()
  const patience = openPatience(performance.now() + 500, withdrawn.signal)
  const heard = vi.fn()
  patience.onEnd(heard)
  patience.close()
  withdrawn.abort()
  expect(vi.getTimerCount()).toBe(0)
  expect(heard).not.toHaveBeenCalled()
})
