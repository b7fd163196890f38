// The version of a reply is found in its bytes, in one object and in streams, and never in text that only quotes the key.
import { expect, test } from 'vitest'
import { replyVersion } from './reply-version.ts'

const of = (text: string) => replyVersion(new TextEncoder().encode(text))
const json = (value: unknown) => of(JSON.stringify(value))

test.each([
  [{ meta_info: { weight_version: '9', id: 'x' } }, '9'],
  [{ meta_info: { weight_version: 12 } }, '12'],
  [{ meta_info: { weight_version: 'default' } }, 'default'],
  [{ meta_info: {} }, null],
  [{ text: 'he said "weight_version": "3" and left' }, null],
  [{ text: '"weight_version"', meta_info: { weight_version: '4' } }, '4'],
  [{ text: 'x', name: 'weight_version' }, null],
  [{ meta_info: { weight_version: null } }, null],
  [{ meta_info: { weight_versions: [{ version: '3' }] } }, null],
])('%j has version %s', (reply, version) => {
  expect(json(reply)).toBe(version)
})

test('of a stream it is the last', () => {
  const chunk = (version: string) =>
    `data: ${JSON.stringify({ meta_info: { weight_version: version } })}\n\n`
  expect(of(`${chunk('3')}${chunk('4')}data: [DONE]\n\n`)).toBe('4')
})

test('a view into a larger buffer is read in its own bounds', () => {
  const whole = new TextEncoder().encode('{"weight_version": "1"} {"weight_version": "2"}')
  expect(replyVersion(whole.subarray(0, 23))).toBe('1')
})
