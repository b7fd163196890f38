// --json of the commands that need a server, a ledger or a model, and of those that measure: each runs once, for real and in
// its shortest form, and every line of its standard output is a JSON object; how far it is stands on standard error alone.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { MAIN, paddock } from '../testkit/command-line.testkit.ts'
import { qwenFolder } from './playground.ts'

/** A start from the sources takes seconds, and more on a busy machine. */
const LONG = 180_000

const home = mkdtempSync(join(tmpdir(), 'paddock-json-'))
const ledger = join(home, 'ledger')
let playground: ChildProcess
let where: { url: string; policy_url: string }

/** A command that runs until it is told to end, and its first line. */
async function started(...args: string[]): Promise<[ChildProcess, string]> {
  const child = spawn(process.execPath, ['--import', 'tsx', MAIN, ...args])
  child.stderr.resume()
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  return [child, line]
}

beforeAll(async () => {
  cpSync(new URL('../ledger/testdata/schema-1/', import.meta.url), ledger, { recursive: true })
  const [child, line] = await started('demo', '--keep', '--json')
  playground = child
  where = JSON.parse(line)
}, LONG)

afterAll(async () => {
  playground.kill('SIGTERM')
  await once(playground, 'exit')
  rmSync(home, { recursive: true })
})

/** The objects of standard output, one a line. */
async function objects(args: string[], input = ''): Promise<Record<string, unknown>[]> {
  const { out, err } = await paddock([...args, '--json'], input)
  const lines = out.split('\n')
  expect(lines.pop(), err).toBe('')
  expect(lines.length, err).toBeGreaterThan(0)
  return lines.map((line) => JSON.parse(line))
}

const server = () => ['--url', where.url]
const short = ['--rounds', '1', '--ms', '1']

test.each<[string, () => string[], string[]]>([
  ['eval', () => ['eval', 'arithmetic/sum-0', '--episodes', '2', ...server()], ['pass', 'tasks']],
  [
    'doctor',
    () => ['doctor', '--url', where.policy_url, '--pack', 'arithmetic', '--episodes', '1'],
    ['healthy', 'checks', 'findings'],
  ],
  ['ledger ls', () => ['ledger', 'ls', ledger], ['batch', 'groups']],
  ['ledger show', () => ['ledger', 'show', ledger, 'kept'], ['request', 'groups']],
  ['ledger verify', () => ['ledger', 'verify', ledger], ['records', 'damaged']],
  ['ledger export', () => ['ledger', 'export', ledger, '--out', join(home, 'rows')], ['rows']],
  ['ledger compact', () => ['ledger', 'compact', ledger], ['bytes']],
  ['config', () => ['config'], ['server', 'backends']],
  ['torture', () => ['torture', '--kills', '1', '--seed', '1'], ['kills', 'lost']],
  ['bench parser', () => ['bench', 'parser', ...short], ['parser']],
  ['bench envs', () => ['bench', 'envs', ...short], ['reset', 'pool']],
])(
  '%s',
  async (_, args, keys) => {
    for (const value of await objects(args()))
      for (const key of keys) expect(value).toHaveProperty(key)
  },
  LONG,
)

test(
  'render',
  async () => {
    const line = `${JSON.stringify({ id: '1', messages: [{ role: 'user', content: 'hi' }] })}\n`
    const [answer] = await objects(['render', '--model-dir', qwenFolder()], line)
    expect(answer).toMatchObject({ id: '1', text: expect.stringContaining('hi') })
  },
  LONG,
)

test(
  'explain, of a batch that was played before',
  async () => {
    const body = { id: 'told', tasks: [{ task: 'arithmetic/sum-0' }], group_size: 2, mode: 'eval' }
    const post = (path: string, sent: object) =>
      fetch(where.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(sent),
      })
    expect((await post('/v1/batches', body)).ok).toBe(true)
    await post('/v1/batches/told/lease', { wait_s: 20 })
    const [group] = await objects(['explain', 'told.g0', ...server()])
    expect(group).toMatchObject({ id: 'told.g0', task: 'arithmetic/sum-0' })
  },
  LONG,
)

test(
  'simulate says where it listens, in one line',
  async () => {
    const [child, line] = await started('simulate', '--port', '0', '--json')
    expect(JSON.parse(line)).toHaveProperty('url')
    child.kill('SIGTERM')
    await once(child, 'exit')
  },
  LONG,
)

test(
  'without it, too, standard output is the answer alone: the demo tells its progress on standard error',
  async () => {
    const { out, err } = await paddock(['demo'])
    expect(out).toMatch(/^task +verdict/)
    expect(err).toMatch(/^Episodes 96\/96$/m)
  },
  LONG,
)

test('the bench tells how far it is', async () => {
  const { out, err } = await paddock(['bench', 'advantages', ...short])
  expect(out).not.toContain('Measurements')
  const last = /Measurements (\d+)\/(\d+)\n$/.exec(err)
  expect(last?.[1]).toBe(last?.[2])
  expect(Number(last?.[2])).toBeGreaterThan(10)
})
