// Admission: a canary for each combination, pauses that name their cause, and no group that is forgotten.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AdmissionPause } from '../protocol/batch.ts'
import { admissionReducer, type GroupEnd, noAdmission } from './admission.ts'

const GOOD: GroupEnd = {
  verdict: 'valid',
  scored: 8,
  records: 8,
  broken: 0,
  ungraded: 0,
  reason: null,
}
const FLAT: GroupEnd = { ...GOOD, verdict: 'zero_variance' }
const DOWN: GroupEnd = { ...GOOD, verdict: 'infra', scored: 0, records: 0, reason: 'connect' }
const BROKEN: GroupEnd = {
  ...GOOD,
  verdict: 'contract_violation',
  scored: 0,
  broken: 8,
  reason: 'no field "score"',
}
const UNGRADED: GroupEnd = { ...DOWN, verdict: 'verifier_error', ungraded: 8, reason: 'chdir' }

/** One batch over the reducer, fed in sentences. */
function house() {
  let state = noAdmission
  const started: string[] = []
  const feed = (event: Parameters<typeof admissionReducer>[1]) => {
    const next = admissionReducer(state, event)
    state = next.state
    started.push(...next.started)
    return next.started
  }
  return {
    started,
    arrive: (batch: string, groups: string[], combination = 'c') =>
      feed({
        type: 'arrive',
        batch,
        candidates: groups.map((group) => ({ group, combination })),
      }),
    end: (batch: string, group: string, end: GroupEnd, combination = 'c') =>
      feed({ type: 'end', batch, group, combination, ...end }),
    restore: (batch: string, pause: AdmissionPause) => feed({ type: 'pause', batch, pause }),
    resume: (batch: string) => feed({ type: 'resume', batch }),
    pause: (batch: string): AdmissionPause | null => state.batches.get(batch)?.pause ?? null,
    waiting: (batch: string) => state.batches.get(batch)?.waiting.length ?? 0,
  }
}

const names = (count: number) => Array.from({ length: count }, (_, index) => `g${index}`)

test('a batch that was paused before a restart starts nothing until it is resumed', () => {
  const { arrive, end, restore, resume, pause } = house()
  restore('b', { reason: 'waste', group: 'g0', message: 'as it was' })
  expect(arrive('b', ['g1', 'g2'])).toEqual([])
  // What was good before the restart proves the graders, and lifts no pause.
  expect(end('b', 'g9', GOOD)).toEqual([])
  expect(pause('b')?.message).toBe('as it was')
  expect(resume('b')).toEqual(['g1', 'g2'])
})

describe('the first group of a combination', () => {
  test('plays alone, and lets the others start when it was graded', () => {
    const { arrive, end, pause } = house()
    expect(arrive('b', ['g0', 'g1', 'g2'])).toEqual(['g0'])
    expect(end('b', 'g0', FLAT)).toEqual(['g1', 'g2'])
    expect(pause('b')).toBeNull()
  })

  test('is checked once, over all batches', () => {
    const { arrive, end } = house()
    arrive('b', ['g0'])
    end('b', 'g0', GOOD)
    expect(arrive('another', ['h0', 'h1'])).toEqual(['h0', 'h1'])
  })

  test('is one of each combination in a batch of several', () => {
    const { arrive, end } = house()
    expect(arrive('b', ['g0', 'g1'], 'lab')).toEqual(['g0'])
    expect(arrive('b', ['h0', 'h1'], 'office')).toEqual(['h0'])
    expect(end('b', 'h0', GOOD, 'office')).toEqual(['h1'])
  })

  test.each<[string, GroupEnd, string, RegExp]>([
    ['breaks the contract', BROKEN, 'contract', /no field "score"/],
    ['is lost by one record', { ...BROKEN, scored: 7, broken: 1 }, 'contract', /g0/],
    ['cannot be graded at all', UNGRADED, 'waste', /chdir/],
  ])(
    'that %s pauses its batch, which goes on with another one when resumed',
    (_, bad, reason, words) => {
      const { arrive, end, pause, resume, waiting } = house()
      arrive('b', ['g0', 'g1', 'g2'])
      expect(end('b', 'g0', bad)).toEqual([])
      expect(pause('b')).toMatchObject({
        reason,
        group: 'g0',
        message: expect.stringMatching(words),
      })
      expect(waiting('b')).toBe(2)
      expect(resume('b')).toEqual(['g1'])
      expect(end('b', 'g1', GOOD)).toEqual(['g2'])
    },
  )

  test('that has enough votes without its broken records is good', () => {
    const { arrive, end, pause } = house()
    arrive('b', ['g0', 'g1'])
    expect(end('b', 'g0', { ...GOOD, verdict: 'partial', scored: 6, broken: 2 })).toEqual(['g1'])
    expect(pause('b')).toBeNull()
  })

  test('that says nothing of the graders hands over to the next', () => {
    const { arrive, end, pause } = house()
    arrive('b', ['g0', 'g1', 'g2'])
    expect(end('b', 'g0', DOWN)).toEqual(['g1'])
    expect(pause('b')).toBeNull()
  })
})

describe('a batch under way', () => {
  function underWay(count: number, how: (index: number) => GroupEnd) {
    const all = house()
    all.arrive('b', names(count + 1))
    all.end('b', 'g0', GOOD)
    for (let index = 1; index < count; index++) all.end('b', `g${index}`, how(index))
    return all
  }

  test('pauses at the first group that is wholly lost to the contract, after however many good ones', () => {
    for (const before of [1, 10, 200]) {
      const all = underWay(before, () => GOOD)
      expect(all.pause('b')).toBeNull()
      all.end('b', 'last', BROKEN)
      expect(all.pause('b')).toMatchObject({ reason: 'contract', group: 'last' })
    }
  })

  test('bears one broken record in a hundred and not more, once fifty groups are known', () => {
    const one = { ...GOOD, scored: 7, broken: 1 }
    // 1 % of 8 × 100 records is 8.
    expect(
      underWay(100, (index) => (index <= 8 ? GOOD : index <= 16 ? one : GOOD)).pause('b'),
    ).toBeNull()
    expect(
      underWay(100, (index) => (index >= 51 && index <= 60 ? one : GOOD)).pause('b'),
    ).toMatchObject({ reason: 'contract' })
  })

  test('pauses when fewer than one group in twenty is valid, from the fiftieth on', () => {
    expect(underWay(49, () => FLAT).pause('b')).toBeNull()
    expect(underWay(50, () => FLAT).pause('b')).toMatchObject({ reason: 'waste', group: 'g49' })
    // Three of fifty are 6 %.
    expect(underWay(50, (index) => (index < 3 ? GOOD : FLAT)).pause('b')).toBeNull()
  })

  test('counts groups of batches before it with the same combination', () => {
    const all = underWay(30, () => FLAT)
    all.arrive('next', ['h0', 'h1'])
    for (let index = 0; index < 20; index++) all.end('next', `h${index}`, FLAT)
    expect(all.pause('next')).toMatchObject({ reason: 'waste' })
    expect(all.pause('b')).toBeNull()
  })
})

const anyEnd = fc.constantFrom(GOOD, FLAT, DOWN, BROKEN, UNGRADED)

test('whatever ends how: one canary at a time, nothing starts twice or in a pause, and nothing waits for nobody', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('lab', 'office'), { minLength: 1, maxLength: 30 }),
      fc.array(fc.record({ pick: fc.nat(), end: anyEnd, resume: fc.boolean() }), { maxLength: 60 }),
      (combinations, script) => {
        const all = house()
        const of = new Map(combinations.map((combination, index) => [`g${index}`, combination]))
        const proven = new Set<string>()
        for (const [group, combination] of of) all.arrive('b', [group], combination)
        const playing = new Set(all.started)
        for (const { pick, end, resume } of script) {
          for (const combination of ['lab', 'office'])
            if (!proven.has(combination))
              expect(
                [...playing].filter((group) => of.get(group) === combination).length,
              ).toBeLessThan(2)
          const group = [...playing][pick % Math.max(1, playing.size)]
          let now: string[] = []
          if (group !== undefined) {
            const before = all.pause('b')
            now = all.end('b', group, end, of.get(group))
            playing.delete(group)
            if (before || all.pause('b')) expect(now).toEqual([])
            if (end.scored > 0) proven.add(of.get(group) as string)
          }
          if (resume) now = [...now, ...all.resume('b')]
          for (const one of now) {
            expect(playing.has(one)).toBe(false)
            playing.add(one)
          }
          if (playing.size === 0 && !all.pause('b')) expect(all.waiting('b')).toBe(0)
        }
        expect(new Set(all.started).size).toBe(all.started.length)
        expect(all.started.length + all.waiting('b')).toBe(of.size)
      },
    ),
  )
})
