// Who may be called: hostile forms of a URL, and what an allow-list opens and leaves shut.
import { describe, expect, test } from 'vitest'
import { createReach } from './reach.ts'

const allows = (allow: string[], url: string): boolean => {
  try {
    createReach(allow, 'callbacks.allow').check(url, 'callback.url')
    return true
  } catch {
    return false
  }
}

test('with an empty list nothing may be called', () => {
  for (const url of ['http://example.com/', 'http://127.0.0.1/', 'https://[::1]/'])
    expect(allows([], url)).toBe(false)
})

test.each([
  'http://2130706433/',
  'http://0x7f.1/',
  'http://127.1/',
  'http://0/',
  'http://[::ffff:127.0.0.1]/',
  'http://[::]/',
  'http://①②⑦.0.0.1/',
  'http://169.254.169.254/latest/meta-data',
  'http://localhost./',
  'http://example.com.evil.test/',
  'http://example.com@127.0.0.1/',
  'http://user:secret@example.com/',
  'ftp://example.com/',
  'file:///etc/passwd',
  'gopher://example.com/',
  '//example.com/',
  'example.com',
])('%s is refused where only example.com is listed', (url) => {
  expect(allows(['example.com'], url)).toBe(false)
})

test.each([
  ['example.com', 'https://example.com/groups', true],
  ['example.com', 'https://EXAMPLE.com./groups', true],
  ['example.com', 'https://a.example.com/', false],
  ['*.example.com', 'https://a.example.com/', true],
  ['*.example.com', 'https://badexample.com/', false],
  ['example.com:9000', 'http://example.com:9000/', true],
  ['example.com:9000', 'http://example.com/', false],
  ['example.com:443', 'https://example.com/', true],
  ['127.0.0.1', 'http://127.0.0.1:41873/callback/task_result', true],
  ['127.0.0.1', 'http://127.1:41873/', true],
  ['127.0.0.1', 'http://127.0.0.2/', false],
  ['127.0.0.1:80', 'http://127.0.0.1:81/', false],
  ['10.0.0.0/8', 'http://10.1.2.3/', true],
  ['10.0.0.0/8', 'http://11.1.2.3/', false],
  ['[::1]:9000', 'http://[::1]:9000/', true],
  ['[::1]:9000', 'http://[::1]:9001/', false],
  ['::1', 'http://[::1]:9001/', true],
  ['fd00::/8', 'http://[fd12::1]/', true],
  ['localhost', 'http://localhost:9000/', true],
  ['localhost', 'http://127.0.0.1:9000/', true],
  ['localhost:9000', 'http://127.0.0.1:9001/', false],
])('%s and %s: %s', (entry, url, expected) => {
  expect(allows([entry], url)).toBe(expected)
})

describe('the addresses of a listed name', () => {
  const mayConnect = (allow: string[], address: string) =>
    createReach(allow, 'callbacks.allow').mayConnect(address, 80)

  test.each([
    ...['127.0.0.1', '10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', '169.254.169.254'],
    ...['100.64.0.1', '0.0.0.0', '224.0.0.1', '255.255.255.255', '198.18.0.1', '192.0.2.1'],
    ...['::1', '::', '::ffff:10.0.0.1', '::ffff:7f00:1', '::127.0.0.1', '64:ff9b::a00:1'],
    ...['64:ff9b::808:808', '2002:7f00:1::', 'fc00::1', 'fd00::1', 'fe80::1', 'ff02::1'],
  ])('%s is not connected to', (address) => {
    expect(mayConnect(['trainer.example'], address)).toBe(false)
  })

  test.each(['8.8.8.8', '172.32.0.1', '100.128.0.1', '2600::1', '2a00:1450::1'])(
    '%s may be',
    (address) => {
      expect(mayConnect(['trainer.example'], address)).toBe(true)
    },
  )

  test('a private one may be where it is listed itself', () => {
    expect(mayConnect(['trainer.example', '10.0.0.0/8'], '10.1.2.3')).toBe(true)
    expect(mayConnect(['trainer.example', '10.0.0.0/8'], '127.0.0.1')).toBe(false)
    expect(mayConnect(['localhost'], '127.0.0.1')).toBe(true)
    expect(mayConnect(['localhost'], '::1')).toBe(true)
  })
})

test.each(['', 'a b', 'http://example.com', '10.0.0.0/99', 'example.com/path', '-x', '*'])(
  'the entry %j is refused with the forms that there are',
  (entry) => {
    expect(() => createReach([entry], 'callbacks.allow')).toThrow(
      /expected a host, an address or a network/,
    )
  },
)
