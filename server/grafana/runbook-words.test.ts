// What the runbooks say of the server's own words: reasons, fields and routes that there are.
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { LABEL_LISTS } from '../metrics/labels.ts'

const FOLDER = new URL('../../docs/runbooks/', import.meta.url)
const page = (name: string) => readFileSync(new URL(name, FOLDER), 'utf8')

test('AdmissionPaused names the reasons that there are, and the call that resumes', () => {
  const [, line = ''] = /- `paddock_admission_paused` (.*)\n/.exec(page('AdmissionPaused.md')) ?? []
  const named = [...line.matchAll(/`([a-z]+)`/g)].map(([, name]) => name)
  expect(named.sort()).toEqual([...LABEL_LISTS.pause_reason].sort())
  expect(page('AdmissionPaused.md')).toContain('`POST /v1/batches/ID/resume`')
})

test('BudgetWasted names the field that ends groups early', () => {
  expect(page('BudgetWasted.md')).toContain('`"groups": {"stop_early": true}`')
})

test('BackendDown says how long the breaker waits, as docs/backends.md does', () => {
  const backends = readFileSync(new URL('../backends.md', FOLDER), 'utf8').replaceAll('\n', ' ')
  expect(backends).toMatch(/for 15 s, then one request tries it, .* up to 120 s/)
  expect(page('BackendDown.md')).toMatch(/15 s.*120 s.*\(\.\.\/backends\.md\)/)
})

test('no page has a space before a comma or a semicolon', () => {
  for (const name of readdirSync(FOLDER)) expect(page(name), name).not.toMatch(/\w [,;]/)
})
