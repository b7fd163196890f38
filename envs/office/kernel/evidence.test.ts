// A read counts for what was shown of it: records that came in parts, and pages that were cut.
import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../protocol/json.ts'
import { office } from '../office.ts'
import { begin, callAll, check, play, smallSpec } from '../transcripts.testkit.ts'
import { DEFAULT_MAX_CHARS } from './observation.ts'

const LENGTH = 40_000
const ANSWER = 'the answer is 4711'
const LONE = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/

/** 40,000 characters, an emoji astride the limit, the answer in the last line. */
const body = `${'a'.repeat(DEFAULT_MAX_CHARS - 1)}😀${'b'.repeat(LENGTH - DEFAULT_MAX_CHARS - 2 - ANSWER.length)}\n${ANSWER}`
const note = (text: string): JsonObject => ({
  note_id: 'NT-1',
  title: 'Minutes',
  content: text,
  attendees: [],
  shared_with: [],
  created_at: '2027-03-01T08:00:00+01:00',
  updated_at: '2027-03-01T08:00:00+01:00',
})
const given = { initial_state: { notes: { note: [note(body)] } } }
const get = (offset?: number) =>
  ['notes_get', { note_id: 'NT-1', ...(offset !== undefined && { offset }) }] as const
const step = ([call, args]: ReturnType<typeof get>) => ({ call, args: args as JsonObject })
const readFull = { kind: 'read', entity: 'notes.note', ids: ['NT-1'], depth: 'full' } as never

describe('E06: a note longer than one observation', () => {
  const first = callAll(given, get()).result as { content: string; next_offset: number }

  test('says that it was cut, how long its text is, and where to go on; no pair is torn', () => {
    expect(body).toHaveLength(LENGTH)
    expect(first).toMatchObject({
      truncated: true,
      total_chars: LENGTH,
      next_offset: first.content.length,
    })
    expect(body.startsWith(first.content)).toBe(true)
    expect(first.content).not.toMatch(LONE)
    expect(first.content).not.toContain(ANSWER)
  })

  test('is reached to its last line by going on, and only then read in full', () => {
    const second = callAll(given, get(), get(first.next_offset)).result as typeof first
    const third = callAll(given, get(), get(first.next_offset), get(second.next_offset)).result
    expect(first.content + second.content + third.content).toBe(body)
    expect(third).toMatchObject({ next_offset: null, total_chars: LENGTH })
    const score = (...offsets: (number | undefined)[]) =>
      check(
        given,
        offsets.map((offset) => step(get(offset))),
        readFull,
      ).score
    expect(score(undefined)).toBe(0)
    expect(score(undefined, first.next_offset)).toBe(0)
    expect(score(undefined, first.next_offset, second.next_offset)).toBe(1)
    // A gap is not read, and the end alone is not all.
    expect(score(undefined, second.next_offset)).toBe(0)
    expect(score(second.next_offset)).toBe(0)
  })

  test('is offered with an offset where the task holds one, else without', () => {
    const offered = (text: string) => {
      const { state } = begin(smallSpec({ initial_state: { notes: { note: [note(text)] } } }))
      const tool = office.tools(state).find(({ function: { name } }) => name === 'notes_get')!
      return Object.keys((tool.function.parameters as { properties: object }).properties)
    }
    expect(offered(body)).toEqual(['note_id', 'offset'])
    expect(offered('short')).toEqual(['note_id'])
  })

  test('starts anew where it has changed in between', () => {
    const append = ['notes_update', { note_id: 'NT-1', title: 'Other' }] as const
    const calls = [get(), append, get(first.next_offset)].map(([call, args]) => ({
      call,
      args: args as JsonObject,
    }))
    const { state } = play(smallSpec(given), calls)
    expect(Object.values(state.partly ?? {}).map(({ chars }) => chars)).toEqual([0])
  })

  test('is another state to be in for each part that was read', () => {
    const after = (...offsets: (number | undefined)[]) =>
      office.anchor(
        play(
          smallSpec(given),
          offsets.map((offset) => step(get(offset))),
        ).state,
      )
    expect(after(undefined)).not.toBe(after(undefined, first.next_offset))
    expect(after(undefined)).toBe(after(undefined, undefined))
  })
})

test('items that a cut page left out were not read', () => {
  const items = Array.from({ length: 10 }, (_, index) => ({
    todo_id: `TD-${index}`,
    title: 'x'.repeat(400),
    status: 'pending',
    priority: 'low',
    tags: [],
    created_at: '2027-03-01T08:00:00+01:00',
  }))
  const { result, audit } = callAll(
    { initial_state: { todo: { item: items } }, limits: { max_observation_chars: 2000 } },
    ['todo_list', {}],
  )
  const shown = (result.items as JsonObject[]).map(({ todo_id }) => todo_id)
  expect(shown.length).toBeLessThan(10)
  expect(audit.reads.map(({ id }) => id)).toEqual(shown)
})
