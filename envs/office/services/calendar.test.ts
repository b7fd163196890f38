// Events of a window, and the gaps between them in which people are free.
import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../protocol/json.ts'
import { callAll } from '../transcripts.testkit.ts'

const event = (n: number, start: string, end: string, more: JsonObject = {}): JsonObject => ({
  event_id: `EV-${n}`,
  title: `Event ${n}`,
  start: `2027-03-11T${start}:00+01:00`,
  end: `2027-03-11T${end}:00+01:00`,
  organizer: 'ann@acme.example',
  attendees: [],
  status: 'confirmed',
  ...more,
})
const events = [
  event(1, '09:00', '10:00'),
  event(2, '10:00', '11:00', { organizer: 'bob@acme.example', attendees: ['Ann@acme.example'] }),
  event(3, '10:30', '11:30', { organizer: 'cyd@acme.example' }),
  event(4, '12:00', '13:00', { status: 'cancelled' }),
  event(5, '14:00', '14:30', { organizer: 'bob@acme.example', status: 'tentative' }),
]
const calendar = { initial_state: { calendar: { event: events } } }
const at = (time: string) => `2027-03-11T${time}:00+01:00`

describe('listing events', () => {
  const list = (from: string, to: string, more: JsonObject = {}) =>
    callAll(calendar, ['calendar_list_events', { from, to, ...more }])
  const ids = (result: JsonObject) => (result.items as JsonObject[]).map(({ event_id }) => event_id)

  test('gives what overlaps the window, not what only touches it', () => {
    expect(ids(list(at('10:00'), at('12:00')).result)).toEqual(['EV-2', 'EV-3'])
  })
  test('the window may be in any offset', () => {
    expect(ids(list('2027-03-11T09:59:00Z', '2027-03-11T13:01:00Z').result)).toEqual([
      'EV-2',
      'EV-3',
      'EV-4',
      'EV-5',
    ])
  })
  test('of one attendee counts what that person organizes', () => {
    const { result, audit } = list(at('00:00'), at('23:00'), { attendee: 'ann@acme.example' })
    expect(ids(result)).toEqual(['EV-1', 'EV-2', 'EV-4'])
    expect(audit.reads[0]).toEqual({ entity: 'calendar.event', id: 'EV-1', depth: 'summary' })
  })
  test('gives pages', () => {
    const { result } = list(at('00:00'), at('23:00'), { limit: 2, offset: 1 })
    expect(ids(result)).toEqual(['EV-2', 'EV-3'])
    expect(result).toMatchObject({ total: 5, next_offset: 3 })
  })
  test('refuses a window that does not end after it begins, and a page before the first', () => {
    expect(list(at('10:00'), at('10:00')).error).toBe('INVALID_ARGUMENT')
    expect(list(at('10:00'), at('11:00'), { limit: 0 }).error).toBe('INVALID_ARGUMENT')
  })
})

describe('finding free time', () => {
  const free = (attendees: string[], duration_min: number, from = '08:00', to = '16:00') =>
    callAll(calendar, [
      'calendar_find_free',
      { attendees, duration_min, from: at(from), to: at(to) },
    ])
  const gaps = (...args: Parameters<typeof free>) =>
    (free(...args).result.free as JsonObject[]).map(({ start, end, minutes }) => [
      String(start).slice(11, 16),
      String(end).slice(11, 16),
      minutes,
    ])

  test('gives the gaps between events that are not cancelled, organized ones included', () => {
    expect(gaps(['ann@acme.example'], 30)).toEqual([
      ['08:00', '09:00', 60],
      ['11:00', '16:00', 300],
    ])
  })
  test('takes all given people together, overlaps and tentative events included', () => {
    const people = ['ann@acme.example', 'BOB@acme.example', 'cyd@acme.example']
    expect(gaps(people, 60)).toEqual([
      ['08:00', '09:00', 60],
      ['11:30', '14:00', 150],
      ['14:30', '16:00', 90],
    ])
    expect(gaps(people, 100)).toEqual([['11:30', '14:00', 150]])
  })
  test('a gap is cut at the window', () => {
    expect(gaps(['ann@acme.example'], 30, '10:30', '11:30')).toEqual([['11:00', '11:30', 30]])
  })
  test('nobody’s events leave the whole window', () => {
    expect(gaps(['dora@acme.example'], 1, '10:00', '11:00')).toEqual([['10:00', '11:00', 60]])
  })
  test('times carry the offset of the window, and nothing of the events is told or noted as read', () => {
    const { result, audit } = free(['ann@acme.example'], 300)
    expect(result.free).toEqual([{ start: at('11:00'), end: at('16:00'), minutes: 300 }])
    expect(audit.reads).toEqual([])
  })
  test('refuses a duration below a minute', () => {
    expect(free(['ann@acme.example'], 0).error).toBe('INVALID_ARGUMENT')
  })
})
