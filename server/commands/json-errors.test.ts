// A command that fails with --json says why in one JSON line on standard error, at every verb, with the exit code that it has without.
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { describe, expect, test } from 'vitest'
import { ERROR_CODES } from '../../protocol/errors.ts'
import { paddock, verbs } from '../testkit/command-line.testkit.ts'

/** A start from the sources takes seconds, and more on a busy machine. */
const LONG = 120_000

/** The one line that stands there, as what it says. */
function errorIn(err: string): { code: string; message: string; path?: string; stack?: string } {
  const lines = err.trimEnd().split('\n')
  expect(lines, err).toHaveLength(1)
  const { error, ...rest } = JSON.parse(lines[0] as string)
  expect(rest).toEqual({})
  expect(Object.keys(ERROR_CODES)).toContain(error.code)
  return error
}

test(
  'a flag that no verb has, at every verb',
  async () => {
    const all = await verbs()
    expect(all.length).toBeGreaterThan(20)
    for (const verb of all) {
      const { out, err, code } = await paddock([...verb, '--json', '--no-such-flag'])
      expect([out, code], verb.join(' ')).toEqual(['', verb[0] === 'doctor' ? 2 : 1])
      const { code: kind, message } = errorIn(err)
      expect(kind).toBe('invalid_request')
      // A flag that has to be there is missed before.
      expect(message).toMatch(/^(unknown option '--no-such-flag'|required option '--out <file>')/)
      expect(message).not.toContain('\n')
    }
  },
  3 * LONG,
)

describe('what a verb itself refuses or cannot do', () => {
  const DEAD = ['--url', 'http://127.0.0.1:9']
  test.each<[string[], number, string, string]>([
    [['frob'], 1, 'invalid_request', "unknown command 'frob'"],
    [['ledger', 'lss'], 1, 'invalid_request', "unknown command 'lss' (Did you mean ls?)"],
    [['config', '--port', '70000'], 1, 'invalid_config', 'at most 65535'],
    [['serve', '--host', '0.0.0.0'], 1, 'invalid_config', 'PADDOCK_SERVER__TOKEN'],
    [['simulate', '-c', '/nowhere'], 1, 'invalid_config', '/nowhere'],
    [['simulate', '--port', 'x'], 1, 'invalid_request', '--port'],
    [['replay', 'nothing'], 1, 'invalid_request', '--transcript'],
    [['play', 'nothing'], 1, 'not_found', 'nothing'],
    [['new', 'task', 'BAD'], 1, 'invalid_request', 'a to z'],
    [['explain', 'g0', ...DEAD], 1, 'internal', 'no server answers at '],
    [['eval', 'office', ...DEAD], 1, 'internal', 'no server answers at '],
    [['ledger', 'ls', '/nowhere'], 1, 'invalid_config', '/nowhere'],
    [['doctor', '--backend', 'mian'], 2, 'invalid_config', 'mian'],
    [['doctor', '--mode', 'voice'], 2, 'invalid_request', 'chat, tokens'],
    [['bench', 'turns', '--seconds', 'x'], 1, 'invalid_request', '--seconds'],
  ])(
    '%j',
    async (args, expected, kind, words) => {
      const { out, err, code } = await paddock([...args, '--json'])
      expect([out, code]).toEqual(['', expected])
      const error = errorIn(err)
      expect(error.message).toContain(words)
      expect(error.code).toBe(kind)
    },
    LONG,
  )

  test(
    'a port that is taken',
    async () => {
      const taken = createServer().listen(0, '127.0.0.1')
      await once(taken, 'listening')
      const { port } = taken.address() as AddressInfo
      const { err, code } = await paddock(['serve', '--port', String(port), '--json'])
      taken.close()
      expect(code).toBe(1)
      expect(errorIn(err).message).toContain(String(port))
    },
    LONG,
  )

  test(
    '--verbose adds where it comes from',
    async () => {
      const { err } = await paddock(['--verbose', 'config', '--port', '70000', '--json'])
      expect(errorIn(err).stack).toContain('\n    at ')
    },
    LONG,
  )
})
