// Dates and date-times as instants: expected values by hand from RFC 3339 and the calendar.
import { expect, test } from 'vitest'
import { formatLike, instantOf, isDate, isDateTime, offsetOf } from './instant.ts'

test.each([
  ['2027-03-10', true],
  ['2028-02-29', true],
  ['2027-02-29', false],
  ['1900-02-29', false],
  ['2000-02-29', true],
  ['2027-13-01', false],
  ['2027-00-10', false],
  ['2027-3-10', false],
  ['2027-03-10 ', false],
])('%s as a date: %s', (text, valid) => {
  expect(isDate(text)).toBe(valid)
})

test.each([
  ['2027-03-10T11:00:00Z', true],
  ['2027-03-10T11:00:00.123456789+01:00', true],
  ['2027-03-10T11:00+01:00', false],
  ['2027-03-10T11:00:00', false],
  ['2027-03-10 11:00:00Z', false],
  ['2027-03-10t11:00:00z', false],
  ['2027-02-30T11:00:00Z', false],
  ['2027-03-10T25:00:00Z', false],
  ['2027-03-10T11:60:00Z', false],
  ['2027-03-10T11:00:60Z', false],
  ['2027-03-10T11:00:00+24:00', false],
])('%s as a date-time: %s', (text, valid) => {
  expect(isDateTime(text)).toBe(valid)
})

test('a date-time is the same instant in every offset', () => {
  const instants = [
    '2027-03-10T11:00:00+01:00',
    '2027-03-10T10:00:00Z',
    '2027-03-10T04:30:00-05:30',
  ]
  expect(new Set(instants.map((text) => instantOf(text, 0)))).toEqual(
    new Set([Date.UTC(2027, 2, 10, 10)]),
  )
})

test('a date begins at midnight of the offset that is given', () => {
  expect(instantOf('2027-03-10', 0)).toBe(Date.UTC(2027, 2, 10))
  expect(instantOf('2027-03-10', 60)).toBe(Date.UTC(2027, 2, 9, 23))
  expect(instantOf('not a date', 0)).toBeNull()
})

test('an instant is written with the offset of its model', () => {
  const ms = Date.UTC(2027, 2, 10, 10)
  expect(formatLike(ms, '2020-01-01T00:00:00+01:00')).toBe('2027-03-10T11:00:00+01:00')
  expect(formatLike(ms + 5, '2020-01-01T00:00:00-05:30')).toBe('2027-03-10T04:30:00.005-05:30')
  expect(formatLike(ms, '2020-01-01T00:00:00Z')).toBe('2027-03-10T10:00:00Z')
})

test.each([
  ['Z', 0],
  ['+00:00', 0],
  ['+05:45', 345],
  ['-03:30', -210],
])('the offset %s is %i minutes', (offset, minutes) => {
  expect(offsetOf(`2027-03-10T11:00:00${offset}`)).toBe(minutes)
})
