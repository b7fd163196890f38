// What Polar's listener says to a callback: `{"ok":true}`, or `{"ok":false,"reason"}`, with 200 to both (WIRE 2.3).
import { expect, test } from 'vitest'
import { hearingOf } from './polar-logprobs.ts'

test.each([
  [200, '{"ok":true}', 'taken'],
  [200, '{"ok":false,"reason":"invalid payload"}', 'unread'],
  [200, '{"ok":false,"reason":"missing task_id"}', 'refused'],
  [200, '{"ok":null}', 'refused'],
  [200, '{"ok":"true"}', 'refused'],
  [200, '{}', 'refused'],
  [200, '[]', 'refused'],
  [200, 'null', 'refused'],
  [200, '<html>ok</html>', 'refused'],
  [204, '', 'refused'],
  [500, '{"ok":true}', 'refused'],
])('%i %s is %s', (status, body, hearing) => {
  expect(hearingOf(status, new TextEncoder().encode(body))).toBe(hearing)
})
