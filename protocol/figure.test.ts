// One rounding for whoever shows a number: half away from zero, of the number that is meant.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { figure, fixed, rounded, signed } from './figure.js'

describe('half is away from zero', () => {
  test.each([
    [0.5775, 3, 0.578],
    [0.5765, 3, 0.577],
    [-0.5775, 3, -0.578],
    [2.5, 0, 3],
    [-2.5, 0, -3],
    // In doubles this is a little less than it says.
    [1.005, 2, 1.01],
    [0.57749, 3, 0.577],
    [1250, -2, 1300],
    [0.0005, 3, 0.001],
    [0.00049, 3, 0],
    [1e-320, 3, 0],
    [1e300, 3, 1e300],
    [123456789012345, 3, 123456789012345],
  ])('%d to %i decimals is %d', (value, decimals, wanted) => {
    expect(rounded(value, decimals)).toBe(wanted)
  })

  test('a mean is one number however it was summed', () => {
    const rewards = [0.1, 0.7, 0.91, 0.6]
    const orders = [rewards, [...rewards].reverse(), [0.7, 0.6, 0.91, 0.1]]
    const means = orders.map((order) => order.reduce((a, b) => a + b, 0) / order.length)
    // 2.31 / 4 = 0.5775
    expect(new Set(means.map((mean) => figure(mean)))).toEqual(new Set(['0.578']))
    expect(figure(0.57749999999999)).toBe('0.578')
    expect(fixed(0.57749999999999)).toBe('0.578')
  })

  test('a decimal with a 5 after its places is rounded as on paper', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1e7 }), fc.integer({ min: 0, max: 4 }), (n, places) => {
        const value = Number(`${n}5e${-places - 1}`)
        expect(rounded(value, places)).toBe(Number(`${n + 1}e${-places}`))
        expect(rounded(-value, places)).toBe(-Number(`${n + 1}e${-places}`))
      }),
    )
  })
})

describe('as text', () => {
  test.each([
    [0.5775, '0.578'],
    [0.05775, '0.0578'],
    [12345.6, '12346'],
    [999.6, '1000'],
    [0.9999, '1'],
    [0, '0'],
    [-0, '0'],
    [-0.25, '\u22120.25'],
    [1.5e-7, '1.5e\u22127'],
    [null, '\u2013'],
    [undefined, '\u2013'],
  ])('%d reads %s', (value, text) => expect(figure(value)).toBe(text))

  test('a column has as many decimals in each row', () => {
    expect([1, 0.5775, -0.0001, null].map((value) => fixed(value))).toEqual([
      '1.000',
      '0.578',
      '0.000',
      '\u2013',
    ])
  })

  test('a sign stands where there is one', () => {
    expect([0.25, -0.25, 0, null].map((value) => signed(value))).toEqual([
      '+0.25',
      '\u22120.25',
      '0',
      '\u2013',
    ])
  })
})
