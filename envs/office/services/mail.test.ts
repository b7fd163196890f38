// Labels: added and removed, idempotent.
import { expect, test } from 'vitest'
import { callAll } from '../transcripts.testkit.ts'

const message = {
  message_id: 'ML-1',
  folder: 'inbox',
  from: 'ann@acme.example',
  to: [],
  subject: 's',
  body: 'b',
  sent_at: '2027-03-01T00:00:00Z',
  read: false,
  labels: ['old', 'kept'],
}
const mail = { initial_state: { mail: { message: [message] } } }
const label = (more: object) => ['mail_label_message', { message_id: 'ML-1', ...more }] as const

test('labels are added once and removed', () => {
  const { result } = callAll(mail, label({ add: ['new', 'new', 'kept'], remove: ['old'] }))
  expect(result).toEqual({ ...message, labels: ['kept', 'new'] })
})

test('labelling again writes nothing', () => {
  const { audit } = callAll(
    mail,
    label({ add: ['new'] }),
    label({ add: ['new'], remove: ['gone'] }),
  )
  expect(audit).toMatchObject({ ok: true, writes: [] })
})

test('neither labels to add nor to remove is refused, as is a message that is not there', () => {
  expect(callAll(mail, label({})).error).toBe('INVALID_ARGUMENT')
  expect(callAll(mail, ['mail_label_message', { message_id: 'ML-9', add: ['x'] }]).error).toBe(
    'REF_NOT_FOUND',
  )
})
