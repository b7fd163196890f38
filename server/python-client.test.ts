// The Python client, its trainer adapters and the quick-starts of docs/trainers.md, run against a whole server.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type House, openHouse } from './testkit/house.testkit.ts'

const PACKAGE = fileURLToPath(new URL('../protocol/clients/python/', import.meta.url))
const MODULES = readdirSync(`${PACKAGE}tests`)
  .filter((file) => /^test_\w+\.py$/.test(file))
  .map((file) => file.replace(/\.py$/, ''))

let house: House
beforeAll(async () => {
  // Of the simulated policy's first turns some run on to the token limit, and some are wrong.
  const mix = { correct: 0.5, wrong: 0.3, truncated: 0.2 }
  const style = { format: 'hermes' as const, thinking: false, mix }
  house = await openHouse({ simulator: { style, weightVersion: '7' } })
}, 60_000)
afterAll(() => house.close())

test.each(MODULES)(
  '%s passes under the python3 of this machine, and skips nothing',
  async (module) => {
    const child = spawn('python3', ['-W', 'error', '-m', 'unittest', `tests.${module}`], {
      cwd: PACKAGE,
      env: {
        ...process.env,
        ROLLOUT_URL: house.url,
        SIMULATOR_URL: house.policyUrl,
        PYTHONDONTWRITEBYTECODE: '1',
      },
    })
    const [report, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
    expect(code, report).toBe(0)
    expect(report).toMatch(/^Ran [1-9]\d* tests? in /m)
    expect(report).not.toContain('skipped')
  },
  60_000,
)

test('every module of the Python tests is run', () => {
  expect(MODULES).toContain('test_quickstarts')
  expect(MODULES.length).toBeGreaterThan(5)
})
