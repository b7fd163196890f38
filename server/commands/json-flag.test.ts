// --json at every verb of the command line: known to all, and what stands on standard output then is JSON alone.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { MAIN, paddock, verbs } from '../testkit/command-line.testkit.ts'

/** A start from the sources takes seconds, and more on a busy machine. */
const LONG = 120_000

test(
  'every verb has the flag',
  async () => {
    const all = await verbs()
    expect(all.length).toBeGreaterThan(20)
    for (const verb of all)
      expect((await paddock([...verb, '--help'])).out, verb.join(' ')).toContain('--json')
  },
  2 * LONG,
)

const task = fileURLToPath(
  new URL('../../envs/packs/office/tasks/dev-04-interview-slot.json', import.meta.url),
)
const folder = () => mkdtempSync(join(tmpdir(), 'paddock-json-'))

describe('with it, standard output is JSON alone', () => {
  test.each<[string, string[], string, string[]]>([
    ['config', ['config'], '', ['server', 'backends']],
    [
      'parse',
      ['parse'],
      '{"id":"1","format":"hermes","tools":[],"text":"hello"}\n',
      ['id', 'calls'],
    ],
    [
      'advantages',
      ['advantages'],
      '{"name":"a","estimator":"grpo","settings":{},"input":{"rewards":[1,0],"groups":["g","g"]}}\n',
      ['name'],
    ],
    ['validate', ['validate', task], '', ['task', 'ok', 'problems']],
    ['replay', ['replay', task, '--transcript', 'correct'], '', ['status', 'score']],
    ['play', ['play', 'dev-04-interview-slot'], 'hello\n/end\n', ['type']],
    ['new task', ['new', 'task', 'mine', '--dir', folder()], '', ['file']],
    ['demo', ['demo'], '', ['batches', 'groups']],
    ['bench advantages', ['bench', 'advantages', '--rounds', '1', '--ms', '1'], '', []],
  ])(
    '%s',
    async (_, args, input, keys) => {
      const { out } = await paddock([...args, '--json'], input)
      const values = jsonIn(out)
      for (const value of values) for (const key of keys) expect(value).toHaveProperty(key)
      if (keys.length > 0) expect(values.length).toBeGreaterThan(0)
    },
    LONG,
  )
})

test(
  'serve says where it listens, in one line',
  async () => {
    const child = spawn(process.execPath, [
      '--import',
      'tsx',
      MAIN,
      'serve',
      '--port',
      '0',
      '--json',
    ])
    child.stderr.resume()
    const [line] = await once(createInterface({ input: child.stdout }), 'line')
    const { url, docs } = JSON.parse(line)
    expect(docs).toBe(`${url}/docs`)
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
    child.kill('SIGTERM')
    const [code] = await once(child, 'exit')
    expect(code).toBe(0)
  },
  LONG,
)

/** One value, whatever its lines, or one a line. Throws where anything else stands there. */
function jsonIn(out: string): unknown[] {
  try {
    return [JSON.parse(out)]
  } catch {
    return out
      .trim()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))
  }
}
