// The order of waiting jobs, on any mix of kinds and failures.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createJobQueue, type Queued } from './job-queue.ts'

interface Named extends Queued {
  name: string
}
const turn = (name: string, tries = 0): Named => ({ name, kind: 'advance', tries })
const lease = (name: string, tries = 0): Named => ({ name, kind: 'deliver', tries })
const all = () => true

function queued(...jobs: Named[]) {
  const queue = createJobQueue<Named>()
  for (const job of jobs) queue.push(job)
  const take = (may: (job: Named) => boolean = all, idle = true, threads = 1, most = 8) =>
    queue.take(may, idle, threads, most).map(({ name }) => name)
  return { queue, take }
}

describe('taken', () => {
  test('first are jobs that somebody waits for, then turns, each in their order', () => {
    const { take } = queued(turn('a'), turn('b'), lease('c'), lease('d'))
    expect([take(), take(), take()]).toEqual([['c', 'd'], ['a', 'b'], []])
  })

  test('together are no more than a thread’s share, and no more than the most', () => {
    const turns = [...'abcdefghij'].map((name) => turn(name))
    expect(queued(...turns).take(all, true, 4)).toHaveLength(3)
    expect(queued(...turns).take(all, true, 1, 8)).toHaveLength(8)
  })

  test('alone is one that failed, by an idle thread; a busy one gets nothing while it is the first', () => {
    const { take } = queued(turn('a'), turn('b', 1), turn('c'))
    expect(take(all, false)).toEqual(['a'])
    expect(take(all, false)).toEqual([])
    expect(take(all, true)).toEqual(['b'])
    expect(take(all, false)).toEqual(['c'])
  })

  test('past the others is what may run, where what stands before it may not', () => {
    const { take } = queued(turn('a', 1), turn('b'), turn('c'))
    expect(take(({ tries }) => tries === 0)).toEqual(['b', 'c'])
  })

  test('first of their kind are those that were put back', () => {
    const { queue, take } = queued(turn('c'), lease('d'))
    queue.putBack([turn('a'), lease('e'), turn('b')])
    expect([take(), take()]).toEqual([
      ['e', 'd'],
      ['a', 'b', 'c'],
    ])
  })
})

test('fresh jobs are known, and removed ones are gone', () => {
  const first = turn('a')
  const { queue, take } = queued(first, lease('b', 2))
  expect(queue.hasFresh()).toBe(true)
  queue.remove(first)
  expect([queue.hasFresh(), queue.size()]).toEqual([false, 1])
  expect(take()).toEqual(['b'])
})

test('every job that was pushed is taken once', () => {
  const jobs = fc.array(fc.tuple(fc.boolean(), fc.nat(2)), { maxLength: 40 })
  fc.assert(
    fc.property(jobs, fc.integer({ min: 1, max: 4 }), (some, threads) => {
      const named = some.map(([urgent, tries], n) => (urgent ? lease : turn)(String(n), tries))
      const { queue, take } = queued(...named)
      const taken: string[] = []
      while (queue.size() > 0) taken.push(...take(all, true, threads))
      expect(taken.toSorted()).toEqual(named.map(({ name }) => name).toSorted())
    }),
  )
})
