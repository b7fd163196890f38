// Text and numbers as checks read them: expected values from SPEC section d and by hand.
import { describe, expect, test } from 'vitest'
import { holdsNumber, normalised } from './text.ts'

test('text is folded by NFKC, case and runs of white space', () => {
  expect(normalised('  Straße\u00a0\n ＡＢＣ ﬁne\t')).toBe('straße abc fine')
})

describe('a number in prose', () => {
  test.each([
    ['1250', 1250],
    ['1,250', 1250],
    ['1.250', 1250],
    ['1 250', 1250],
    ['1\u202f250', 1250],
    ["1'250", 1250],
    ['1,250.00', 1250],
    ['1.250,00', 1250],
    ['1 250,00', 1250],
    ['12,345,678.9', 12345678.9],
    ['12.345.678,9', 12345678.9],
    ['0.12', 0.12],
    ['0,12', 0.12],
    ['-7', -7],
    ['−7', -7],
    ['EUR 1,250.', 1250],
    ['(1250)', 1250],
    ['IN-301', 301],
    ['2027-03-10', 10],
    ['10.3.2027', 2027],
    ['in 2027 250 items', 250],
  ])('is found in %j: %d', (text, number) => {
    expect(holdsNumber(`They owe ${text} now.`, number, 0.005)).toBe(true)
  })
  test.each([
    ['12500', 1250],
    ['1,2500', 1250],
    ['112,50', 1250],
    ['1 25', 125],
    ['12,50', 1250],
    ['0.125', 1250],
    ['a dozen', 12],
    ['', 0],
  ])('is not found in %j: %d', (text, number) => {
    expect(holdsNumber(text, number, 0.005)).toBe(false)
  })
  test('may be off by the tolerance and no more', () => {
    expect(holdsNumber('about 1249.5', 1250, 0.5)).toBe(true)
    expect(holdsNumber('about 1249.4', 1250, 0.5)).toBe(false)
  })
})
