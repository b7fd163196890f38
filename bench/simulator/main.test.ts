import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'

const MAIN = fileURLToPath(new URL('./main.ts', import.meta.url))
const children: ChildProcess[] = []
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'simulator-'))
})
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})
afterAll(() => rm(folder, { recursive: true }))

function run(...flags: string[]) {
  const child = spawn(process.execPath, ['--import', 'tsx', MAIN, ...flags], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  children.push(child)
  return { child, stdout: child.stdout as Readable, stderr: child.stderr as Readable }
}

async function ready(stdout: Readable) {
  const lines = createInterface({ input: stdout })
  const [line] = await once(lines, 'line')
  return JSON.parse(line)
}

test('it prints one JSON line when it serves, plays the scripts of the file, and SIGTERM ends it', async () => {
  const scripts = join(folder, 'scripts.jsonl')
  const transcripts = {
    correct: { steps: [{ say: 'Blue.' }] },
    wrong: { steps: [{ say: 'Red.' }] },
  }
  await writeFile(scripts, JSON.stringify({ match: 'Which colour?', transcripts }))
  const { child, stdout } = run(
    '--scripts',
    scripts,
    '--mix',
    'wrong=1',
    '--model',
    'tiny',
    '--version',
    '7',
  )
  let written = ''
  stdout.on('data', (chunk) => {
    written += chunk
  })
  const line = await ready(stdout)
  expect(line).toEqual({
    url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    model: 'tiny',
    weight_version: '7',
  })
  const response = await fetch(`${line.url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ model: 'tiny', messages: [{ role: 'user', content: 'Which colour?' }] }),
  })
  const reply = await response.json()
  expect(reply).toMatchObject({ choices: [{ message: { content: 'Red.' } }] })
  child.kill('SIGTERM')
  const [code] = await once(child, 'exit')
  expect(code).toBe(0)
  expect(written.trim().split('\n')).toHaveLength(1)
}, 30_000)

test('it ends when the channel to its parent closes', async () => {
  const { child, stdout } = run()
  await ready(stdout)
  const exit = once(child, 'exit')
  child.disconnect()
  expect(await exit).toEqual([0, null])
}, 30_000)

test('a start that fails ends with status 1 and the reason on stderr', async () => {
  const { child, stderr } = run('--model-dir', folder)
  let written = ''
  stderr.on('data', (chunk) => {
    written += chunk
  })
  const [code] = await once(child, 'close')
  expect(code).toBe(1)
  expect(written).toContain('tokenizer_config.json')
}, 30_000)
