// Checks on records: scores by hand from the formulas of SPEC section d.
import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../protocol/json.ts'
import type { Check, SpecStep } from '../spec.ts'
import { check } from '../transcripts.testkit.ts'

const item = (n: number, more: JsonObject = {}): JsonObject => ({
  todo_id: `TD-${n}`,
  title: `Old ${n}`,
  status: 'pending',
  priority: 'low',
  tags: [],
  created_at: '2027-03-01T08:00:00+01:00',
  ...more,
})
const todo = { initial_state: { todo: { item: [item(1), item(2), item(3)] }, kb: {} } }
const create = (title: string, more = {}): SpecStep => ({
  call: 'todo_create',
  args: { title, ...more },
})
const complete = (n: number): SpecStep => ({ call: 'todo_complete', args: { todo_id: `TD-${n}` } })
const remove = (n: number): SpecStep => ({ call: 'todo_delete', args: { todo_id: `TD-${n}` } })
const rename = (n: number, title: string): SpecStep => ({
  call: 'todo_update',
  args: { todo_id: `TD-${n}`, title },
})
const score = (steps: SpecStep[], graded: Check) => check(todo, steps, graded).score

describe('state', () => {
  const state = (more: Partial<Check<'state'>>): Check => ({
    kind: 'state',
    entity: 'todo.item',
    ...more,
  })

  test.each([
    ['any', 4],
    ['created', 2],
    ['updated', 1],
    ['touched', 3],
    ['deleted', 1],
  ] as const)('origin %s counts %i records', (origin, count) => {
    const steps = [create('a'), create('b'), complete(1), remove(2)]
    expect(score(steps, state({ origin, count }))).toBe(1)
    expect(score(steps, state({ origin, count: count + 1 }))).toBe(0)
  })
  test('a record that was changed back counts as untouched', () => {
    expect(score([rename(1, 'x'), rename(1, 'Old 1')], state({ origin: 'touched' }))).toBe(0)
  })
  test('conditions on deleted records are about what they were', () => {
    expect(score([remove(2)], state({ origin: 'deleted', where: { title: 'old 2' } }))).toBe(1)
  })
  test('a count may have bounds, at least one by default', () => {
    const steps = [create('a'), create('b')]
    expect(score([], state({ origin: 'created' }))).toBe(0)
    expect(score(steps, state({ origin: 'created', count: { min: 1, max: 2 } }))).toBe(1)
    expect(score(steps, state({ origin: 'created', count: { max: 1 } }))).toBe(0)
    expect(score([], state({ origin: 'created', count: 0 }))).toBe(1)
    expect(score([], state({ origin: 'created', count: 0, requires_action: true }))).toBe(0)
  })
  test('ratio_of gives the share, at most 1', () => {
    const ratio = state({ origin: 'created', ratio_of: 4 })
    expect(score([create('a')], ratio)).toBe(0.25)
    expect(
      score(
        ['a', 'b', 'c', 'd', 'e'].map((title) => create(title)),
        ratio,
      ),
    ).toBe(1)
  })
  test('distinct_by counts different values only', () => {
    const steps = [create('a'), create('a'), create('b')]
    expect(score(steps, state({ origin: 'created', distinct_by: ['title'], count: 2 }))).toBe(1)
    expect(
      score(steps, state({ origin: 'created', distinct_by: ['title', 'todo_id'], count: 3 })),
    ).toBe(1)
  })
  test('evidence names the records', () => {
    expect(check(todo, [create('a')], state({ origin: 'created' })).evidence).toEqual([
      'todo.item/TD-N1',
    ])
  })
})

describe('cover', () => {
  const cover = (more: Partial<Check<'cover'>> = {}): Check => ({
    kind: 'cover',
    entity: 'todo.item',
    origin: 'created',
    items: [
      { title: { contains: 'guide' } },
      { title: { contains: 'disk' } },
      { title: { contains: 'plan' } },
    ],
    ...more,
  })

  test('pays each expected item once', () => {
    expect(score([create('guide'), create('plan')], cover())).toBe(0.6667)
    expect(score([create('guide'), create('plan'), create('disk')], cover())).toBe(1)
  })
  test('three copies match once and count as two surplus', () => {
    const copies = [create('guide'), create('guide'), create('guide')]
    expect(score(copies, cover())).toBe(0.3333)
    expect(score(copies, cover({ extra_penalty: 0.25 }))).toBe(0.1667)
    expect(score(copies, cover({ extra_penalty: 0.75 }))).toBe(0)
  })
  test('a record that fits two items leaves the other one to its only fit', () => {
    expect(score([create('guide to the plan'), create('guide'), create('disk')], cover())).toBe(1)
  })
  test('a scope leaves records out of both match and surplus', () => {
    const steps = [create('guide'), create('other', { priority: 'high' })]
    const given = { extra_penalty: 1, items: [{ title: 'guide' }] }
    expect(score(steps, cover(given))).toBe(0)
    expect(score(steps, cover({ ...given, scope: { priority: 'medium' } }))).toBe(1)
  })
  test('all_or_nothing gives 0 for less than all', () => {
    expect(score([create('guide'), create('plan')], cover({ all_or_nothing: true }))).toBe(0)
  })
  test('max_extra bounds the surplus', () => {
    const steps = [create('guide'), create('x'), create('y')]
    expect(score(steps, cover({ items: [{ title: 'guide' }], max_extra: 2 }))).toBe(1)
    expect(score(steps, cover({ items: [{ title: 'guide' }], max_extra: 1 }))).toBe(0)
  })
  test('without an origin, created and changed records are in scope and seeded ones are not', () => {
    const { origin: _, ...open } = cover({
      items: [{ todo_id: 'TD-1', status: 'done' }, { title: 'new' }],
      extra_penalty: 1,
    }) as Check<'cover'>
    expect(score([complete(1), create('new')], open)).toBe(1)
    expect(score([complete(1), complete(2), create('new')], open)).toBe(0)
  })
  test('may be about calls, each of which is one candidate', () => {
    const calls = cover({
      source: 'calls',
      tool: 'todo_complete',
      items: [{ todo_id: 'TD-1' }, { todo_id: 'TD-2' }],
      extra_penalty: 0.5,
    })
    expect(check(todo, [complete(1), complete(2)], calls)).toEqual({ score: 1, evidence: [1, 2] })
    expect(score([complete(1), complete(3)], calls)).toBe(0.25)
    // The second call is refused: the item is done already.
    expect(score([complete(1), complete(1)], calls)).toBe(0.5)
  })
})

describe('unchanged', () => {
  const unchanged = (more: Partial<Check<'unchanged'>> = {}): Check => ({
    kind: 'unchanged',
    entity: 'todo.item',
    ...more,
  })

  test('holds where seeded records are as they were and something else was written', () => {
    expect(score([create('x')], unchanged())).toBe(1)
    expect(score([create('x'), complete(1)], unchanged())).toBe(0)
    expect(score([remove(3)], unchanged())).toBe(0)
  })
  test('gives no credit for doing nothing, unless it says so', () => {
    expect(score([], unchanged())).toBe(0)
    expect(score([{ call: 'todo_list', args: {} }], unchanged())).toBe(0)
    expect(score([], unchanged({ requires_action: false }))).toBe(1)
  })
  test('may be about some records', () => {
    expect(score([complete(1)], unchanged({ ids: ['TD-2', 'TD-3'] }))).toBe(1)
    expect(score([complete(1)], unchanged({ except_ids: ['TD-1'] }))).toBe(1)
    expect(score([complete(1)], unchanged({ where: { title: 'old 2' } }))).toBe(1)
    expect(score([complete(2)], unchanged({ where: { title: 'old 2' } }))).toBe(0)
  })
  test('may be about some fields', () => {
    expect(score([complete(1)], unchanged({ fields: ['title', 'priority'] }))).toBe(1)
    expect(score([complete(1)], unchanged({ fields: ['status'] }))).toBe(0)
  })
  test('evidence names what changed', () => {
    expect(check(todo, [complete(2)], unchanged()).evidence).toEqual(['todo.item/TD-2'])
  })
})

describe('only_writes', () => {
  const only = (...allow: Check<'only_writes'>['allow']): Check => ({ kind: 'only_writes', allow })
  const steps = [create('x'), complete(1)]

  test('holds where every write is allowed', () => {
    expect(score(steps, only({ entity: 'todo.item' }))).toBe(1)
    expect(score(steps, only({ entity: 'kb.article' }))).toBe(0)
  })
  test('may allow some kinds of writes, some records, some fields', () => {
    const created = { entity: 'todo.item', op: 'create' } as const
    expect(score(steps, only(created))).toBe(0)
    expect(
      score(
        steps,
        only(created, { entity: 'todo.item', op: ['update'], ids: ['TD-1'], fields: ['status'] }),
      ),
    ).toBe(1)
    expect(score(steps, only(created, { entity: 'todo.item', ids: ['TD-2'] }))).toBe(0)
    expect(score(steps, only(created, { entity: 'todo.item', fields: ['title'] }))).toBe(0)
  })
  test('gives no credit for doing nothing', () => {
    expect(score([], only({ entity: 'todo.item' }))).toBe(0)
  })
  test('counts a write that was taken back, and names the call', () => {
    const result = check(
      todo,
      [create('x'), rename(1, 'y'), rename(1, 'Old 1')],
      only({ entity: 'todo.item', op: 'create' }),
    )
    expect(result).toEqual({ score: 0, evidence: [2, 3] })
  })
  test('the stamp of a change is no change of its own', () => {
    const article = {
      article_id: 'KB-1',
      title: 't',
      category: 'c',
      tags: [],
      body: 'b',
      status: 'draft',
      version: 1,
      updated_at: '2027-01-01T00:00:00Z',
    }
    const kb = { initial_state: { kb: { article: [article] } } }
    const step = { call: 'kb_update_article', args: { article_id: 'KB-1', title: 'u' } }
    expect(check(kb, [step], only({ entity: 'kb.article', fields: ['title'] })).score).toBe(1)
  })
})

describe('slot', () => {
  const at = (time: string, day = 11) => `2027-03-${day}T${time}:00+01:00`
  const event = (
    n: number,
    start: string,
    end: string,
    attendees: string[],
    status = 'confirmed',
  ): JsonObject => ({
    event_id: `EV-${n}`,
    title: 'Busy',
    start: at(start),
    end: at(end),
    organizer: attendees[0]!,
    attendees,
    status,
  })
  const [ann, bob, cyd] = ['ann@acme.example', 'bob@acme.example', 'cyd@acme.example']
  const calendar = {
    initial_state: {
      calendar: {
        event: [
          event(1, '10:00', '11:00', [ann]),
          event(2, '12:00', '13:00', [bob]),
          event(3, '14:00', '15:00', [ann], 'cancelled'),
          event(4, '15:00', '16:00', [cyd]),
        ],
      },
    },
  }
  const book = (
    start: string,
    end: string,
    attendees = [ann, bob],
    title = 'Review',
  ): SpecStep => ({
    call: 'calendar_create_event',
    args: { title, start: at(start), end: at(end), attendees },
  })
  const slot = (more: Partial<Check<'slot'>> = {}): Check => ({
    kind: 'slot',
    where: { title: 'review' },
    duration_min: 60,
    attendees: [ann, bob],
    ...more,
  })
  const slotScore = (steps: SpecStep[], graded = slot()) => check(calendar, steps, graded).score

  test.each([
    ['between two events, touching both', '11:00', '12:00', 1],
    ['over an event of one attendee', '10:30', '11:30', 0],
    ['over an event of the other', '12:30', '13:30', 0],
    ['over a cancelled event', '14:00', '15:00', 1],
    ['over an event of somebody else', '15:00', '16:00', 1],
    ['too short', '11:00', '11:30', 0],
  ])('%s', (_what, start, end, expected) => {
    expect(slotScore([book(start, end)])).toBe(expected)
  })
  test('cancelling what stands in the way does not free the slot', () => {
    const cancel = { call: 'calendar_cancel_event', args: { event_id: 'EV-2' } }
    expect(slotScore([cancel, book('12:00', '13:00')])).toBe(0)
  })
  test('two new events of the same people must not overlap', () => {
    expect(slotScore([book('11:00', '12:00'), book('11:30', '12:00', [bob], 'Other')])).toBe(0)
  })
  test('a further attendee must be free too', () => {
    expect(slotScore([book('15:00', '16:00', [ann, bob, cyd])])).toBe(0)
  })
  test('all attendees must be invited; who organizes is', () => {
    expect(slotScore([book('11:00', '12:00', [ann])])).toBe(0)
    expect(
      slotScore([book('11:00', '12:00')], slot({ attendees: [ann, bob, 'ada.berg@acme.example'] })),
    ).toBe(1)
  })
  test('a longest duration, a window and a start can be asked for', () => {
    expect(slotScore([book('08:00', '10:00')], slot({ duration_max: 60 }))).toBe(0)
    const window = [at('09:00'), at('11:45')]
    expect(slotScore([book('11:00', '12:00')], slot({ window }))).toBe(0)
    expect(slotScore([book('09:00', '10:00')], slot({ window }))).toBe(1)
    expect(slotScore([book('09:00', '10:00')], slot({ start: '2027-03-11T08:00:00Z' }))).toBe(1)
    expect(slotScore([book('09:00', '10:00')], slot({ start: at('11:00') }))).toBe(0)
  })
  test('an event that was cancelled afterwards is no slot', () => {
    const cancel = { call: 'calendar_cancel_event', args: { event_id: 'EV-N1' } }
    expect(slotScore([book('11:00', '12:00'), cancel])).toBe(0)
  })
})
