// Booking takes a seat, as long as there is one.
import { expect, test } from 'vitest'
import { callAll } from '../transcripts.testkit.ts'

const option = (seats: number) => ({
  option_id: 'TO-1',
  kind: 'train',
  destination: 'Lyon',
  depart: '2027-04-01T08:00:00+02:00',
  price: 80,
  currency: 'EUR',
  refundable: true,
  seats,
})
const travel = (seats: number) => ({ initial_state: { travel: { option: [option(seats)] } } })
const book = (option_id = 'TO-1') => ['travel_book', { option_id, employee_id: 'EM-1' }] as const

test('a booking carries the price and takes a seat', () => {
  const { result, state } = callAll(travel(2), book())
  expect(result).toEqual({
    booking_id: 'BK-N1',
    option_id: 'TO-1',
    employee_id: 'EM-1',
    status: 'booked',
    price: 80,
    created_at: '2027-03-10T11:00:01+01:00',
  })
  expect(state.tables['travel.option']).toEqual([option(1)])
})

test('the last seat is taken once', () => {
  const { error, state } = callAll(travel(1), book(), book())
  expect(error).toBe('CONFLICT')
  expect(state.tables['travel.option']).toEqual([option(0)])
  expect(state.tables['travel.booking']).toHaveLength(1)
})

test('an option that is not there is refused', () => {
  expect(callAll(travel(1), book('TO-9')).error).toBe('REF_NOT_FOUND')
})
