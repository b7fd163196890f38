// Histories of polls, lost answers, drops and restarts: no instance is forgotten, and none is handed out twice unasked.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isOver, newRun, placeOf, type SlimeRun, slimeReducer } from './slime-run.ts'

const feed = (run: SlimeRun, ...events: Parameters<typeof slimeReducer>[1][]) =>
  events.reduce(slimeReducer, run)
const open = (batch: string, count: number) => ({ type: 'open', batch, count }) as const
const answerOf = (batch: string, ...indices: number[]) =>
  ({
    type: 'answer',
    groups: indices.map((index) => ({ batch, index, id: `${batch}.g${index}`, lease: 'l' })),
    written: [],
  }) as const
const SENT = { type: 'reach', phase: 'sent' } as const
const GOING = { type: 'reach', phase: 'going' } as const
const openInstances = (run: SlimeRun) =>
  run.batches.flatMap(({ places }) => places.flatMap((place) => place?.instance ?? []))

describe('one run', () => {
  test('instances are numbered over all passes, and what the trainer has is left out', () => {
    const run = feed(newRun('r', 6, [1, 4, 99]), open('b0', 2), open('b1', 9))
    expect(run.batches.map(({ places }) => places.map((place) => place?.instance))).toEqual([
      [0, 2],
      [3, 5],
    ])
    expect(feed(run, open('b2', 1))).toBe(run)
  })

  test('what was sent has arrived with the next poll; what was not sent is open still', () => {
    const run = feed(newRun('r', 2, []), open('b0', 2), answerOf('b0', 0))
    expect(openInstances(feed(run, { type: 'poll' }))).toEqual([0, 1])
    const arrived = feed(run, SENT, { type: 'poll' })
    expect(openInstances(arrived)).toEqual([1])
    expect(arrived.arrived).toBe(1)
  })

  test('what was going when the server died is not handed out again: it is played anew at the end, under numbers of its own', () => {
    const going = feed(newRun('r', 4, []), open('b0', 2), answerOf('b0', 0, 1), GOING)
    const polled = feed(going, { type: 'poll' })
    expect(openInstances(polled)).toEqual([])
    expect(polled.arrived).toBe(2)
    const next = feed(polled, open('b1', 3), open('b2', 9))
    expect(next.batches.map(({ places }) => places.map((place) => place?.instance))).toEqual([
      [2, 3, -4],
      [-3],
    ])
    // Of these nobody knows either, and they have numbers of their own again.
    const again = feed(next, answerOf('b2', 0), GOING, { type: 'poll' }, open('b3', 1))
    expect(openInstances(again)).toEqual([2, 3, -4, -7])
  })

  test('a trainer that is back says what had arrived, and nothing is played in its stead', () => {
    const going = feed(newRun('r', 4, []), open('b0', 2), answerOf('b0', 0, 1), GOING)
    const doubted = feed(going, { type: 'poll' }, open('b1', 3))
    const run = feed(doubted, { type: 'restart', skip: [0, 2], total: 4 }, open('b2', 9))
    expect(openInstances(run)).toEqual([3, 1])
    expect(isOver(feed(run, { type: 'lost', batch: 'b1' }))).toBe(false)
  })

  test('what the machinery dropped is played again for ever, what the task spoils three times', () => {
    let run = newRun('r', 1, [])
    const play = (why: 'machinery' | 'task', batch: string) => {
      run = feed(run, open(batch, 1), { type: 'dropped', batch, index: 0, why })
    }
    for (let index = 0; index < 9; index++) play('machinery', `m${index}`)
    play('task', 't0')
    play('task', 't1')
    expect(isOver(run)).toBe(false)
    play('task', 't2')
    expect(isOver(run)).toBe(true)
  })

  test('a flat group that was dropped is told once, with an answer that arrived', () => {
    const flat = { type: 'dropped', batch: 'b0', index: 0, why: 'flat' } as const
    const run = feed(newRun('r', 3, []), open('b0', 3), flat, answerOf('b0', 1), { type: 'poll' })
    expect(run.flat).toEqual([0])
    expect(feed(run, answerOf('b0', 1), SENT, { type: 'poll' }).flat).toEqual([])
  })

  test('a trainer that is back is owed what it does not have', () => {
    const before = feed(
      newRun('r', 6, []),
      open('b0', 4),
      answerOf('b0', 0, 1),
      SENT,
      { type: 'poll' },
      answerOf('b0', 2),
      SENT,
    )
    const run = feed(before, { type: 'restart', skip: [0, 2, 5], total: 6 })
    expect(openInstances(run)).toEqual([3])
    expect(feed(run, open('b1', 9)).batches[1]?.places.map((place) => place?.instance)).toEqual([
      1, 4,
    ])
  })
})

/** What a run went through, with the ledger's side of it: which groups of a batch are still to be had. */
test('in any history each instance surely arrives exactly once', () => {
  const steps = fc.array(
    fc.record({
      what: fc.constantFrom('open', 'answer', 'lose', 'doubt', 'drop', 'forget'),
      pick: fc.nat(),
      count: fc.integer({ min: 1, max: 4 }),
    }),
    { maxLength: 60 },
  )
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 12 }), steps, (total, history) => {
      let run = newRun('r', total, [])
      const arrived: number[] = []
      const take = (count: number) =>
        run.batches
          .flatMap(({ id, places }) =>
            places.flatMap((place, index) =>
              place ? [{ batch: id, index, id: '', lease: '' }] : [],
            ),
          )
          .slice(0, count)
      const doubted: number[] = []
      const deliver = (count: number, as: 'sent' | 'lost' | 'doubted') => {
        const groups = take(count)
        run = feed(run, { type: 'answer', groups, written: [] })
        const instances = groups.map((group) => placeOf(run, group)?.instance ?? Number.NaN)
        if (as === 'sent') arrived.push(...instances)
        if (as === 'doubted') doubted.push(...instances)
        if (as !== 'lost') run = feed(run, GOING)
        if (as === 'sent') run = feed(run, SENT)
        run = feed(run, { type: 'poll' })
      }
      for (const { what, pick, count } of history) {
        const batch = run.batches[pick % Math.max(1, run.batches.length)]
        if (what === 'open') run = feed(run, open(`b${run.opened}`, count))
        if (what === 'answer') deliver(count, 'sent')
        if (what === 'lose') deliver(count, 'lost')
        if (what === 'doubt') deliver(count, 'doubted')
        if (what === 'drop' && batch)
          run = feed(run, {
            type: 'dropped',
            batch: batch.id,
            index: pick % batch.places.length,
            why: 'machinery',
          })
        if (what === 'forget' && batch) run = feed(run, { type: 'lost', batch: batch.id })
      }
      while (!isOver(run)) {
        run = feed(run, open(`b${run.opened}`, 3))
        deliver(3, 'sent')
      }
      // Whether what is in doubt arrived or not: no number comes twice, and each instance comes once that surely arrives.
      const all = [...arrived, ...doubted]
      expect(new Set(all).size).toBe(all.length)
      const instances = arrived.map((number) => ((number % total) + total) % total)
      expect(instances.sort((a, b) => a - b)).toEqual(Array.from({ length: total }, (_, i) => i))
    }),
  )
})
