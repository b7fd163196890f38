// The schema that is built here is the published one.
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { TASK_SPEC_SCHEMA } from './schema.ts'

test('the schema equals the published task-spec schema, key by key', () => {
  const file = new URL('../testdata/task-spec.schema.json', import.meta.url)
  expect(TASK_SPEC_SCHEMA).toEqual(JSON.parse(readFileSync(file, 'utf8')))
})
