// The travel service: travel search and booking.
import {
  bool,
  datetime,
  defineService,
  id,
  int,
  money,
  oneOf,
  opt,
  type RecordOf,
  ref,
  str,
  text,
} from '../catalogue/declare.ts'
import { done, type Outcome, refuse } from '../kernel/outcome.ts'
import type { Args, Transaction } from '../kernel/transaction.ts'

const kind = oneOf('train', 'flight', 'hotel')
const status = oneOf('booked', 'cancelled')

export const travel = defineService({
  name: 'travel',
  title: 'Travel search and booking',
  entities: {
    option: {
      id: 'option_id',
      prefix: 'TO',
      fields: {
        option_id: id,
        kind,
        origin: opt(str),
        destination: str,
        depart: datetime,
        arrive: opt(datetime),
        price: money,
        currency: str,
        refundable: bool,
        seats: int,
      },
      sort: ['depart', 'asc'],
    },
    booking: {
      id: 'booking_id',
      prefix: 'BK',
      fields: {
        booking_id: id,
        option_id: ref('travel.option'),
        employee_id: ref('hr.employee'),
        status,
        price: money,
        created_at: datetime,
      },
    },
  },
  tools: {
    travel_search: {
      op: 'list',
      entity: 'option',
      params: {
        kind: opt(kind),
        origin: opt(str),
        destination: str,
        from: opt(datetime),
        to: opt(datetime),
        max_price: opt(money),
      },
      filters: { from: ['depart', 'gte'], to: ['depart', 'lte'], max_price: ['price', 'lte'] },
    },
    travel_get_option: { op: 'get', entity: 'option' },
    travel_book: {
      op: 'custom',
      entity: 'booking',
      params: { option_id: ref('travel.option'), employee_id: ref('hr.employee') },
      write: true,
      errors: ['CONFLICT'],
      about: 'Books an option for an employee and takes one of its seats.',
      handler: bookTravel,
    },
    travel_cancel: {
      op: 'set',
      entity: 'booking',
      params: { reason: opt(text) },
      set: { status: 'cancelled' },
      guard: { status: ['booked'] },
    },
    travel_list_bookings: {
      op: 'list',
      entity: 'booking',
      params: { employee_id: opt(id), status: opt(status) },
    },
  },
})

type Option = RecordOf<typeof travel.entities.option>

function bookTravel(transaction: Transaction, args: Args): Outcome {
  const optionId = args.option_id as string
  const { seats, price } = transaction.find<Option>('travel.option', optionId)!
  if (seats < 1) return refuse('CONFLICT', `${optionId} is sold out`)
  transaction.change('travel.option', optionId, { seats: seats - 1 })
  return done(transaction.create('travel.booking', { ...args, status: 'booked', price }))
}
