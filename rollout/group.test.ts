// The group reducer: attempts, top-ups, closing, and laws that hold after any sequence of events.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { EPISODE_OUTCOMES, type EpisodeOutcome, isScored } from '../protocol/outcomes.ts'
import {
  deliveredMembers,
  type GroupEvent,
  type GroupRules,
  type GroupState,
  groupReducer,
  isFinished,
  newGroup,
  waitingMembers,
} from './group.ts'

const rules = (some: Partial<GroupRules> = {}): GroupRules => ({
  size: 3,
  attempts: 2,
  minScored: 3,
  onShort: 'retry',
  ...some,
})

const play = (some: Partial<GroupRules>, ...outcomes: [number, EpisodeOutcome][]): GroupState =>
  outcomes.reduce(
    (state, [index, outcome]) =>
      groupReducer(groupReducer(state, { type: 'start', index }), { type: 'end', index, outcome }),
    newGroup(rules(some)),
  )

const phases = (state: GroupState) => state.members.map((member) => member.outcome ?? member.phase)

describe('a failed member', () => {
  test('is tried again alone, until its attempts are used up', () => {
    expect(phases(play({}, [1, 'timeout']))).toEqual(['waiting', 'waiting', 'waiting'])
    expect(play({}, [1, 'timeout']).members[1]?.attempt).toBe(2)
    expect(phases(play({}, [1, 'timeout'], [1, 'infra_backend']))).toEqual([
      'waiting',
      'infra_backend',
      'waiting',
    ])
  })

  test.each(['aborted', 'parse_error', 'ok', 'ok_truncated'] as const)(
    'that ended as %s is final at once',
    (outcome) => expect(phases(play({}, [0, outcome]))[0]).toBe(outcome),
  )

  test('is replaced by a fresh member under top_up, and the scored ones are delivered', () => {
    const state = play(
      { onShort: 'top_up', attempts: 1 },
      [0, 'timeout'],
      [1, 'ok'],
      [2, 'ok'],
      [3, 'ok'],
    )
    expect(isFinished(state)).toBe(true)
    expect(deliveredMembers(state).map((member) => member.index)).toEqual([1, 2, 3])
  })

  test('ends the group at once under drop, where it can no longer have enough votes', () => {
    const state = play({ onShort: 'drop', minScored: 3 }, [0, 'infra_env'])
    expect(state.closing).toBe('short')
    expect(phases(state)).toEqual(['infra_env', 'aborted', 'aborted'])
  })

  test('ends a group early that is lost, where it is to stop early, and only then', () => {
    const events = [
      [0, 'infra_env'],
      [0, 'infra_env'],
    ] as [number, 'infra_env'][]
    const rules = { onShort: 'retry', attempts: 2, minScored: 3 } as const
    expect(play({ ...rules, stopEarly: true }, ...events).closing).toBe('short')
    expect(play({ ...rules, stopEarly: true }, events[0]!).closing).toBeNull()
    expect(play(rules, ...events).closing).toBeNull()
    // Where partial groups are taken, two votes are enough for one.
    const partial = { onShort: 'close', minScored: 3, stopEarly: true } as const
    expect(play(partial, [0, 'infra_env']).closing).toBeNull()
    expect(play(partial, [0, 'infra_env'], [1, 'infra_env']).closing).toBe('short')
  })

  test('is final under close, and its neighbours go on', () => {
    const state = play({ onShort: 'close' }, [0, 'infra_env'])
    expect(phases(state)).toEqual(['infra_env', 'waiting', 'waiting'])
  })
})

test('a deadline ends those that wait as timeout, and no attempt starts after it', () => {
  const running = groupReducer(newGroup(rules()), { type: 'start', index: 0 })
  const state = groupReducer(running, { type: 'close', why: 'deadline' })
  expect(phases(state)).toEqual(['running', 'timeout', 'timeout'])
  expect(phases(groupReducer(state, { type: 'end', index: 0, outcome: 'timeout' }))[0]).toBe(
    'timeout',
  )
})

test('an event for a member in another phase is a bug and says so', () => {
  expect(() => groupReducer(newGroup(rules()), { type: 'end', index: 0, outcome: 'ok' })).toThrow(
    'member 0 is waiting, expected running',
  )
})

test('any sequence of events: finite attempts, one outcome each, and every group can finish', () => {
  const anyRules = fc.record({
    size: fc.integer({ min: 1, max: 6 }),
    attempts: fc.integer({ min: 1, max: 4 }),
    minScored: fc.integer({ min: 1, max: 6 }),
    onShort: fc.constantFrom('retry', 'top_up', 'close', 'drop'),
  }) as fc.Arbitrary<GroupRules>
  const choices = fc.array(fc.tuple(fc.nat(), fc.constantFrom(...EPISODE_OUTCOMES), fc.nat(40)), {
    minLength: 120,
    maxLength: 120,
  })
  fc.assert(
    fc.property(anyRules, choices, (chosen, steps) => {
      let state = newGroup(chosen)
      let attempts = 0
      for (const [pick, outcome, dice] of steps) {
        const waiting = waitingMembers(state)
        const running = state.members.filter((member) => member.phase === 'running')
        const event: GroupEvent | null =
          dice === 0
            ? { type: 'close', why: 'cancel' }
            : pick % 2 === 0 && waiting.length > 0
              ? { type: 'start', index: waiting[pick % waiting.length]?.index ?? 0 }
              : running.length > 0
                ? { type: 'end', index: running[pick % running.length]?.index ?? 0, outcome }
                : null
        if (!event) continue
        if (event.type === 'start') attempts++
        const before = state
        state = groupReducer(state, event)
        for (const [index, member] of before.members.entries())
          if (member.phase === 'ended') expect(state.members[index]).toEqual(member)
        if (before.closing) expect(waitingMembers(state)).toEqual([])
      }
      expect(attempts).toBeLessThanOrEqual(2 * chosen.size * chosen.attempts)
      for (const member of state.members) {
        expect(member.attempt).toBeLessThanOrEqual(chosen.attempts)
        expect(member.phase === 'ended').toBe(member.outcome !== null)
      }
      expect(deliveredMembers(state)).toHaveLength(chosen.size)
      const scored = state.members.filter(
        (member) => member.outcome && isScored(member.outcome),
      ).length
      if (isFinished(state) && scored >= chosen.size && chosen.onShort === 'top_up')
        expect(
          deliveredMembers(state).every((member) => isScored(member.outcome ?? 'aborted')),
        ).toBe(true)
    }),
  )
})

test('a timeout is final where the time was the whole budget; other failures are tried again', () => {
  const budget = { retryTimeouts: false }
  expect(phases(play(budget, [1, 'timeout']))).toEqual(['waiting', 'timeout', 'waiting'])
  expect(phases(play(budget, [1, 'infra_env']))).toEqual(['waiting', 'waiting', 'waiting'])
})

test('once enough members are scored the others are withdrawn', () => {
  const state = play({ size: 4, enough: 2 }, [0, 'ok'], [1, 'infra_env'], [2, 'ok_truncated'])
  expect(state.closing).toBe('enough')
  expect(phases(state)).toEqual(['ok', 'aborted', 'ok_truncated', 'aborted'])
  expect(isFinished(state)).toBe(true)
})

test('a member that runs when enough are scored is ended by whoever runs it, and is not tried again', () => {
  const running = groupReducer(play({ size: 3, enough: 1 }), { type: 'start', index: 2 })
  const enough = groupReducer(groupReducer(running, { type: 'start', index: 0 }), {
    type: 'end',
    index: 0,
    outcome: 'ok',
  })
  expect(phases(enough)).toEqual(['ok', 'aborted', 'running'])
  const ended = groupReducer(enough, { type: 'end', index: 2, outcome: 'infra_backend' })
  expect(phases(ended)).toEqual(['ok', 'aborted', 'infra_backend'])
})
