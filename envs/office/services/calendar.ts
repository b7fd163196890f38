// The calendar service: shared calendars.
import {
  datetime,
  defineService,
  email,
  id,
  int,
  list,
  oneOf,
  opt,
  type RecordOf,
  str,
  text,
} from '../catalogue/declare.ts'
import { formatLike, instantOf } from '../kernel/instant.ts'
import { done, type Outcome, type Refusal, refuse } from '../kernel/outcome.ts'
import type { Args, Transaction } from '../kernel/transaction.ts'
import { sameValue } from '../kernel/values.ts'

export const calendar = defineService({
  name: 'calendar',
  title: 'Shared calendars',
  entities: {
    event: {
      id: 'event_id',
      prefix: 'EV',
      fields: {
        event_id: id,
        title: str,
        start: datetime,
        end: datetime,
        organizer: email,
        attendees: list(email),
        location: opt(str),
        status: oneOf('confirmed', 'tentative', 'cancelled'),
        description: opt(text),
      },
      summary: ['event_id', 'title', 'start', 'end', 'organizer', 'attendees', 'status'],
      sort: ['start', 'asc'],
    },
  },
  tools: {
    calendar_list_events: {
      op: 'custom',
      entity: 'event',
      params: {
        from: datetime,
        to: datetime,
        attendee: opt(email),
        limit: opt(int),
        offset: opt(int),
      },
      write: false,
      about:
        'Lists the events that overlap [from, to), of all people or of one attendee (organizers count).',
      handler: listEvents,
    },
    calendar_get_event: { op: 'get', entity: 'event' },
    calendar_find_free: {
      op: 'custom',
      entity: 'event',
      params: { attendees: list(email), from: datetime, to: datetime, duration_min: int },
      write: false,
      about:
        'Finds the gaps of at least duration_min minutes within [from, to) in which all the given people are free.',
      handler: findFree,
    },
    calendar_create_event: {
      op: 'create',
      entity: 'event',
      params: {
        title: str,
        start: datetime,
        end: datetime,
        attendees: list(email),
        location: opt(str),
        description: opt(text),
      },
      defaults: { organizer: '@actor', status: 'confirmed' },
      ordered: ['start', 'end'],
    },
    calendar_update_event: {
      op: 'update',
      entity: 'event',
      params: {
        title: opt(str),
        start: opt(datetime),
        end: opt(datetime),
        attendees: opt(list(email)),
        location: opt(str),
      },
    },
    calendar_cancel_event: {
      op: 'set',
      entity: 'event',
      params: { reason: opt(text) },
      set: { status: 'cancelled' },
      guard: { status: ['confirmed', 'tentative'] },
    },
  },
})

type Event = RecordOf<typeof calendar.entities.event>
const MINUTE_MS = 60_000

function listEvents(transaction: Transaction, args: Args): Outcome {
  const window = windowOf(args)
  if ('ok' in window) return window
  const attendees = args.attendee === undefined ? null : [args.attendee as string]
  const events = transaction
    .rows<Event>('calendar.event')
    .filter((event) => overlaps(event, window) && (!attendees || concerns(event, attendees)))
  return done(transaction.page('calendar.event', events, args))
}

/** Tells when people are free and nothing of why they are not. Times carry the offset of `from`. */
function findFree(transaction: Transaction, args: Args): Outcome {
  const window = windowOf(args)
  if ('ok' in window) return window
  const least = args.duration_min as number
  if (least < 1) return refuse('INVALID_ARGUMENT', `duration_min: expected 1 or more, got ${least}`)
  const busy = transaction
    .rows<Event>('calendar.event')
    .filter((event) => event.status !== 'cancelled' && overlaps(event, window))
    .filter((event) => concerns(event, args.attendees as string[]))
    .map(intervalOf)
    .sort(([a], [b]) => a - b)
  const [from, to] = window
  const free: { start: string; end: string; minutes: number }[] = []
  let freeSince = from
  for (const [start, end] of [...busy, [to, to] as const]) {
    const minutes = Math.floor((start - freeSince) / MINUTE_MS)
    if (minutes >= least)
      free.push({
        start: formatLike(freeSince, args.from as string),
        end: formatLike(start, args.from as string),
        minutes,
      })
    freeSince = Math.max(freeSince, end)
  }
  return done({ free })
}

type Interval = readonly [fromMs: number, toMs: number]

/** `from` and `to` as instants, or why they are no window. */
function windowOf({ from, to }: Args): Interval | Refusal {
  const window: Interval = [instantOf(from as string, 0)!, instantOf(to as string, 0)!]
  return window[0] < window[1]
    ? window
    : refuse('INVALID_ARGUMENT', `expected from before to, got ${from} and ${to}`)
}

const intervalOf = (event: Event): Interval => [
  instantOf(event.start, 0)!,
  instantOf(event.end, 0)!,
]

function overlaps(event: Event, [from, to]: Interval): boolean {
  const [start, end] = intervalOf(event)
  return start < to && end > from
}

const concerns = (event: Event, people: readonly string[]): boolean =>
  [event.organizer, ...event.attendees].some((one) => people.some((other) => sameValue(one, other)))
