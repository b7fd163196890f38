// What docs/polar.md shows works as it stands: its settings load, its task template is taken, and its calls are answered.
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { parse as parseYaml } from 'yaml'
import { loadConfig } from '../config.ts'
import { openHouse } from '../testkit/house.testkit.ts'
import { readPolarTask } from './polar-request.ts'

const guide = readFileSync(new URL('../../docs/polar.md', import.meta.url), 'utf8')
const blocks = (language: string) =>
  [...guide.matchAll(new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``, 'g'))].map(
    ([, text]) => text ?? '',
  )
const [server = '', trainer = '', callbacks = ''] = blocks('yaml')

test('the settings load', () => {
  const folder = mkdtempSync(join(tmpdir(), 'paddock-docs-'))
  const file = join(folder, 'paddock.yaml')
  writeFileSync(file, server)
  expect(loadConfig({ file }).callbacks.allow).toEqual(['localhost'])
  writeFileSync(file, server + callbacks)
  expect(loadConfig({ file }).callbacks.allow).toEqual(['trainer.internal', '10.0.0.0/8'])
  rmSync(folder, { recursive: true })
})

test("the trainer's template is a task", () => {
  const { polar_task_template } = parseYaml(trainer)
  const task = readPolarTask({ ...polar_task_template, task_id: 'a', instruction: '' })
  expect(task.agent.settings?.task).toBe('{sample.metadata.task}')
})

test('the calls by hand submit a task and ask how it stands', async () => {
  const house = await openHouse()
  const script = blocks('sh')
    .filter((block) => block.includes('curl'))
    .join('\n')
    .replace(/^npx.*$/m, '')
    .replace(/^until.*$/m, '')
    .replaceAll('localhost:8420', house.url.slice('http://'.length))
    .replaceAll('curl -s', "curl -s -w '\\n'")
  try {
    const { stdout } = await promisify(execFile)('bash', ['-euc', script])
    const [submitted, status] = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(submitted).toEqual({ task_id: 'polar-slime-0-0', status: 'running' })
    expect(status).toMatchObject({ task_id: 'polar-slime-0-0', total_sessions: 4 })
  } finally {
    await house.close()
  }
}, 60_000)
