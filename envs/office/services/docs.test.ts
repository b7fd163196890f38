// Sharing a file.
import { expect, test } from 'vitest'
import { callAll } from '../transcripts.testkit.ts'

const file = {
  file_id: 'FL-1',
  name: 'Plan',
  folder: 'f',
  body: 'b',
  owner: 'ada.berg@acme.example',
  confidentiality: 'internal',
  viewers: ['ann@acme.example'],
  editors: [],
  updated_at: '2027-01-01T00:00:00Z',
}
const docs = { initial_state: { docs: { file: [file] } } }
const share = (email: string, role: string, file_id = 'FL-1') =>
  ['docs_share', { file_id, email, role }] as const

test.each([
  ['viewer', { viewers: ['ann@acme.example', 'bob@acme.example'], editors: [] }],
  ['editor', { viewers: ['ann@acme.example'], editors: ['bob@acme.example'] }],
])('a new %s is added and the file stamped', (role, people) => {
  const { result } = callAll(docs, share('bob@acme.example', role))
  expect(result).toEqual({ ...file, ...people, updated_at: '2027-03-10T11:00:01+01:00' })
})

test('sharing again writes nothing', () => {
  const { audit, result } = callAll(docs, share('ANN@acme.example', 'viewer'))
  expect(audit).toMatchObject({ ok: true, writes: [] })
  expect(result).toEqual(file)
})

test('a file that is not there is refused', () => {
  expect(callAll(docs, share('bob@acme.example', 'viewer', 'FL-9')).error).toBe('REF_NOT_FOUND')
})
