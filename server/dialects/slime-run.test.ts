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
    const arrived = feed(run, { type: 'sent' }, { type: 'poll' })
    expect(openInstances(arrived)).toEqual([1])
    expect(arrived.arrived).toBe(1)
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
    expect(feed(run, answerOf('b0', 1), { type: 'sent' }, { type: 'poll' }).flat).toEqual([])
  })

  test('a trainer that is back is owed what it does not have', () => {
    const before = feed(
      newRun('r', 6, []),
      open('b0', 4),
      answerOf('b0', 0, 1),
      { type: 'sent' },
      { type: 'poll' },
      answerOf('b0', 2),
      { type: 'sent' },
    )
    const run = feed(before, { type: 'restart', skip: [0, 2, 5], total: 6 })
    expect(openInstances(run)).toEqual([3])
    expect(feed(run, open('b1', 9)).batches[1]?.places.map((place) => place?.instance)).toEqual([
      1, 4,
    ])
  })
})

/** What a run went through, with the ledger's side of it: which groups of a batch are still to be had. */
test('in any history each instance arrives exactly once, or was given up', () => {
  const steps = fc.array(
    fc.record({
      what: fc.constantFrom('open', 'answer', 'lose', 'drop', 'forget'),
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
      const deliver = (count: number, sent: boolean) => {
        const groups = take(count)
        run = feed(run, { type: 'answer', groups, written: [] })
        if (sent) {
          arrived.push(...groups.map((group) => placeOf(run, group)?.instance ?? -1))
          run = feed(run, { type: 'sent' })
        }
        run = feed(run, { type: 'poll' })
      }
      for (const { what, pick, count } of history) {
        const batch = run.batches[pick % Math.max(1, run.batches.length)]
        if (what === 'open') run = feed(run, open(`b${run.opened}`, count))
        if (what === 'answer') deliver(count, true)
        if (what === 'lose') deliver(count, false)
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
        deliver(3, true)
      }
      expect(arrived.sort((a, b) => a - b)).toEqual(Array.from({ length: total }, (_, i) => i))
    }),
  )
})
