// A reader of standard output that goes away, as `| head` does: no command makes a noise of it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { MAIN } from './testkit/command-line.testkit.ts'

// A copy: even a reader leaves a lock file in the folder.
const LEDGER = mkdtempSync(join(tmpdir(), 'paddock-closed-reader-'))
cpSync(fileURLToPath(new URL('ledger/testdata/schema-1', import.meta.url)), LEDGER, {
  recursive: true,
})
afterAll(() => rmSync(LEDGER, { recursive: true }))

const GRPO = { estimator: 'grpo', settings: {}, input: { rewards: [1, 0], groups: ['g', 'g'] } }

test.each([
  [['ledger', 'ls', LEDGER], ''],
  [['ledger', 'show', LEDGER, 'kept'], ''],
  [['config'], ''],
  [['--help'], ''],
  [['advantages'], `${JSON.stringify(GRPO)}\n`.repeat(200)],
])(
  '%j: silence and exit code 0',
  async (args, input) => {
    const child = spawn(process.execPath, ['--import', 'tsx', MAIN, ...args])
    child.stdout.destroy()
    child.stdin.on('error', () => {}).end(input)
    const [err, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
    expect([err, code]).toEqual(['', 0])
  },
  30_000,
)
