// What two answers of an engine say of the reply between them.
import { expect, test } from 'vitest'
import { versionAround } from './weight-info.ts'

test.each([
  ['7', '7', '7'],
  ['7', '8', '7'],
  // An engine that was replaced in between.
  ['9', '3', '3'],
  ['9', '10', '9'],
  ['default', '9', 'default'],
  ['9', 'default', 'default'],
  [null, '9', null],
  ['9', null, null],
])('between %j and %j it is %j', (before, after, version) => {
  expect(versionAround(before, after)).toBe(version)
})
