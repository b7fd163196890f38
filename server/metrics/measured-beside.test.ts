// Requests beside the policy are counted by kind and by what came of them.
import { expect, test, vi } from 'vitest'
import type { BesideRequest } from '../runtime/asking/beside.ts'
import { measuredBeside } from './measured-beside.ts'

const judge = { kind: 'judge', timeoutMs: 1000 } as BesideRequest
const grade = { kind: 'grade' } as BesideRequest

test.each([
  ['ok', judge, 200, 10],
  ['invalid', judge, 404, 10],
  ['unavailable', judge, 503, 10],
  ['unavailable', judge, 0, 10],
  ['timeout', judge, 0, 1000],
  ['timeout', grade, 0, 5000],
  ['ok', grade, 200, 5],
] as const)('%s: %o answered %i after %i ms', async (result, request, status, ms) => {
  let time = 0
  const reply = { status, headers: {}, body: new Uint8Array() }
  const asked = vi.fn()
  const beside = {
    ask: async () => {
      time += ms
      return reply
    },
  }
  const measured = measuredBeside(beside, { asked }, () => time)
  expect(await measured.ask(request, 5000, new AbortController().signal)).toBe(reply)
  expect(asked).toHaveBeenCalledExactlyOnceWith(request.kind, result, ms / 1000)
})
