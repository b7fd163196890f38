// Lines of a panel can be told apart, and verdicts keep their colours.
import { expect, test } from 'vitest'
import { GROUP_VERDICTS } from '../../protocol/outcomes.ts'
import { lineOf } from './client/lines.js'

const looks = (names: readonly string[]) =>
  names.map((name, place) => {
    const { color, dash } = lineOf(name, place)
    return `${color} ${dash}`
  })

test('no two verdicts have the same line, in whatever order they come', () => {
  expect(new Set(looks(GROUP_VERDICTS)).size).toBe(GROUP_VERDICTS.length)
  expect(looks([...GROUP_VERDICTS].reverse())).toEqual(looks(GROUP_VERDICTS).reverse())
})

test('no two of the 23 codes of the parser have the same line', () => {
  const codes = Array.from({ length: 23 }, (_, index) => `code_${index}`)
  expect(new Set(looks(codes)).size).toBe(23)
})
