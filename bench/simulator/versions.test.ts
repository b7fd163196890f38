import { expect, test } from 'vitest'
import { createVersionHistory } from './versions.ts'

function history(updates: [version: string, at: number][]) {
  let time = 0
  const versions = createVersionHistory('1', () => time)
  for (const [version, at] of updates) {
    time = at
    versions.update(version)
  }
  return versions
}

test('the current version is the last one set', () => {
  expect(history([]).current()).toBe('1')
  expect(history([['2', 10]]).current()).toBe('2')
})

test.each([
  ['before any update', 0, 10, [['1', 0, 100]]],
  ['after the update', 60, 80, [['2', 0, 100]]],
  [
    'across it, a quarter of the way in',
    40,
    80,
    [
      ['1', 0, 25],
      ['2', 25, 100],
    ],
  ],
  ['at the very moment of the update, when it ends', 30, 50, [['1', 0, 100]]],
  ['in no time at all', 60, 60, [['2', 0, 100]]],
] as const)('100 tokens %s', (_when, from, to, spans) => {
  const found = history([['2', 50]]).spans(from, to, 100)
  expect(found.map(({ version, start, end }) => [version, start, end])).toEqual(spans)
})

test('spans cover all tokens without gap over several updates, and no span is empty', () => {
  const versions = history([
    ['2', 10],
    ['3', 10.1],
    ['4', 60],
  ])
  expect(versions.spans(0, 100, 10)).toEqual([
    { version: '1', start: 0, end: 1 },
    { version: '3', start: 1, end: 6 },
    { version: '4', start: 6, end: 10 },
  ])
  expect(versions.spans(0, 100, 0)).toEqual([])
})
