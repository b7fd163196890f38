// The scripted user and the ends of an episode (SPEC d.3).
import { describe, expect, test } from 'vitest'
import { office } from '../office.ts'
import type { SpecUser } from '../spec.ts'
import { begin, play, smallSpec } from '../transcripts.testkit.ts'

const scripted: SpecUser = {
  mode: 'scripted',
  rules: [
    { id: 'which', if_any: ['which (plan|file)'], say: 'The summary.' },
    { id: 'who', if_any: ['WHO', 'whom'], say: 'Marta.' },
    { id: 'why', if_any: ['why'], say: 'Because.', once: false },
    { id: 'secret', if_any: ['code'], say: 'It is 7.', after: ['who'] },
  ],
  fallback: 'Just do it.',
  done: { if_any: ['finished'], after: ['which', 'who'] },
  max_turns: 4,
}
const talk = (...says: string[]) =>
  play(
    smallSpec({ user: scripted }),
    says.map((say) => ({ say })),
  ).played.map(({ say, end }) => end ?? say)

describe('without a user', () => {
  test('a message without calls ends the episode as final', () => {
    const { state, played } = play(smallSpec(), [{ say: 'done' }])
    expect(played[0]!.end).toBe('final')
    expect(state.ended).toBe('final')
  })
})

describe('the scripted user', () => {
  test('answers by the rule whose pattern is found, in any case', () => {
    expect(talk('Which PLAN?')).toEqual(['The summary.'])
  })
  test('answers by every rule that matches, in their order', () => {
    expect(talk('For whom, and which file?')).toEqual(['The summary. Marta.'])
  })
  test('falls back where no rule matches', () => {
    expect(talk('Hello')).toEqual(['Just do it.'])
  })
  test('does not answer twice by a rule, unless the rule says so', () => {
    expect(talk('which file?', 'which file?')).toEqual(['The summary.', 'Just do it.'])
    expect(talk('why?', 'why?')).toEqual(['Because.', 'Because.'])
  })
  test('a rule with `after` waits for the others, which the same message does not help', () => {
    expect(talk('what is the code, and for whom?', 'the code?')).toEqual(['Marta.', 'It is 7.'])
  })
  test('is done before any rule is tried, but only after the named rules have fired', () => {
    expect(talk('finished')).toEqual(['Just do it.'])
    expect(talk('which file and for whom?', 'finished, but why?')).toEqual([
      'The summary. Marta.',
      'user_done',
    ])
  })
  test('answers so many times; the message after ends the episode', () => {
    expect(talk('a', 'b', 'c', 'd', 'e')).toEqual([...Array(4).fill('Just do it.'), 'max_turns'])
  })
})

test('a message after the end gets the same end', () => {
  const { state } = play(smallSpec(), [{ say: 'done' }])
  expect(office.reply(state, 'one more thing', 1)).toEqual({ state, end: 'final' })
})

test('messages of both sides are kept with turn and number of calls before them', () => {
  const started = office.hear(begin(smallSpec({ user: scripted })).state, 'looking', 0)
  const { state } = office.reply(started, 'who?', 1)
  expect(state.messages).toEqual([
    { role: 'assistant', text: 'looking', turn: 0, seq: 0, beside_calls: true },
    { role: 'assistant', text: 'who?', turn: 1, seq: 0, beside_calls: false },
    { role: 'user', text: 'Marta.', turn: 1, seq: 0, beside_calls: false },
  ])
})

test('what is said beside calls after the end is not kept', () => {
  const { state } = play(smallSpec(), [{ say: 'done' }])
  expect(office.hear(state, 'more', 1)).toEqual(state)
})
