// The codes, their documents, and the table that users read.
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { ERROR_CODES, PaddockError } from './errors.ts'

test('an error becomes a problem document with code, status and path', () => {
  const error = new PaddockError('conflict', 'batch x was submitted before', { path: 'id' })
  expect(error.toProblem()).toEqual({
    type: 'urn:paddock:problem:conflict',
    title: ERROR_CODES.conflict.title,
    status: 409,
    code: 'conflict',
    retryable: false,
    detail: 'batch x was submitted before',
    path: 'id',
  })
})

test('the README lists every code with its status', () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
  const rows = [...readme.matchAll(/^\| (`[a-z_`, ]+`) \| (\d{3}|–) \|/gm)]
  const listed = rows.flatMap(([, codes = '', status]) =>
    [...codes.matchAll(/`([a-z_]+)`/g)].map(([, code]) => [code, status]),
  )
  const unsent = ['environment_fault', 'invalid_config']
  const expected = Object.entries(ERROR_CODES).map(([code, { status }]) => [
    code,
    unsent.includes(code) ? '–' : String(status),
  ])
  expect(listed.sort()).toEqual(expected.sort())
})
