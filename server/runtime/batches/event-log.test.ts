// The event log: numbers without gaps, resumable anywhere, bounded, and a listener that never misses the end.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createEventLog } from './event-log.ts'

test('events are numbered from 1 and carry number and time in their text', () => {
  const log = createEventLog(10)
  log.append('turn', '{"type":"turn","turn":0}', 12.5)
  expect(log.read(0, 10)).toEqual([
    { n: 1, type: 'turn', json: '{"n":1,"at":12.500,"type":"turn","turn":0}' },
  ])
})

test('reading in any steps from any number gives every kept event once and in order', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 3000 }),
      fc.nat(3000),
      fc.integer({ min: 1, max: 700 }),
      (count, after, step) => {
        const log = createEventLog(500)
        for (let n = 1; n <= count; n++) log.append('turn', '{"type":"turn"}', 0)
        const read: number[] = []
        for (let at = after; ; ) {
          const events = log.read(at, step)
          if (events.length === 0) break
          read.push(...events.map((event) => event.n))
          at = events.at(-1)?.n as number
        }
        const first = Math.max(after + 1, log.oldest)
        const expected = Array.from({ length: Math.max(0, count - first + 1) }, (_, k) => first + k)
        expect(read).toEqual(count === 0 ? [] : expected)
        expect(log.newest - log.oldest).toBeLessThan(500 + 1024)
      },
    ),
  )
})

test('long events are bounded by their size, and the newest is always kept', () => {
  const log = createEventLog(1000)
  const megabyte = `{"type":"turn","text":"${'x'.repeat(2 ** 20)}"}`
  for (let n = 0; n < 100; n++) log.append('turn', megabyte, 0)
  const kept = log.read(0, 1000)
  expect(kept.reduce((sum, event) => sum + event.json.length, 0)).toBeLessThan(17 * 2 ** 20)
  expect(kept.at(-1)?.n).toBe(100)
  expect(kept.map((event) => event.n)).toEqual(kept.map((_, index) => log.oldest + index))
})

test('subscribers hear of each event and of the end, until they leave', () => {
  const log = createEventLog(10)
  let heard = 0
  const leave = log.subscribe(() => heard++)
  log.append('turn', '{"type":"turn"}', 0)
  log.end()
  leave()
  log.append('turn', '{"type":"turn"}', 0)
  expect([heard, log.ended]).toEqual([2, true])
})
