import { expect, test } from 'vitest'
import type { ToolDefinition } from '../../protocol/conversation.ts'
import { missingTools } from './missing-tools.ts'

const tools = (...names: string[]): ToolDefinition[] =>
  names.map((name) => ({
    type: 'function',
    function: { name, description: '', parameters: { type: 'object' } },
  }))

test.each([
  ['{"name": "mail_send", "description"', ['mail_send'], []],
  ['<name>mail_send</name>', ['mail_send'], []],
  ['no tools at all', ['mail_send', 'add'], ['mail_send', 'add']],
  ['{"name": "mail_send_all"}', ['mail_send'], ['mail_send']],
  ['premail_send', ['mail_send'], ['mail_send']],
  ['{"name": "a.b-c"}', ['a.b-c'], []],
  ['additional: add', ['add'], []],
  ['x', [], []],
  ['x', [''], ['']],
])('in %j of the tools %j are missing: %j', (prompt, names, missing) => {
  expect(missingTools(prompt, tools(...names), [])).toEqual(missing)
})

test('a name in the request alone does not show the tool; one more occurrence does', () => {
  const messages = [{ role: 'user' as const, content: 'Use add, please: add it.' }]
  expect(missingTools('user: Use add, please: add it.', tools('add'), messages)).toEqual(['add'])
  expect(missingTools('[add] user: Use add, please: add it.', tools('add'), messages)).toEqual([])
})
