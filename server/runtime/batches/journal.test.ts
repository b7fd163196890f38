// A journal's entry gives its reply to the request that it answered, and to no other.
import { expect, test } from 'vitest'
import { JournalMismatch, journalEntry, journaledReply } from './journal.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const asked = { kind: 'policy' as const, turn: 3, body: bytes('{"prompt":"a"}') }
const reply = { status: 200, headers: { 'x-version': '7' }, body: bytes('{"text":"\u00e9"}') }

test('the reply of the same request comes back, its body as bytes of its own', () => {
  const entry = journalEntry(asked, reply)
  const back = journaledReply(entry, { ...asked, body: asked.body.slice() })
  expect(back).toEqual(reply)
  expect(back.body.buffer.byteLength).toBe(reply.body.length)
})

test.each([
  ['body', { ...asked, body: bytes('{"prompt":"b"}') }],
  ['turn', { ...asked, turn: 4 }],
  ['kind', { ...asked, kind: 'judge' as const }],
])('another %s is refused with the turn that differs', (_, other) => {
  const read = () => journaledReply(journalEntry(asked, reply), other)
  expect(read).toThrow(JournalMismatch)
  expect(read).toThrow(`turn ${other.turn} is not what it was before the restart`)
})
