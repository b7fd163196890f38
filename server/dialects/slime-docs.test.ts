// What docs/slime.md shows works as it stands: its settings load, and its calls are answered.
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { loadConfig } from '../config.ts'
import { openHouse } from '../testkit/house.testkit.ts'

const guide = readFileSync(new URL('../../docs/slime.md', import.meta.url), 'utf8')
const blocks = (language: string) =>
  [...guide.matchAll(new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``, 'g'))].map(
    ([, text]) => text ?? '',
  )

test('the settings load', () => {
  const folder = mkdtempSync(join(tmpdir(), 'paddock-docs-'))
  const file = join(folder, 'paddock.yaml')
  writeFileSync(file, blocks('yaml')[0] ?? '')
  expect(loadConfig({ file }).dialects.slime).toMatchObject({ rollout_batch_size: 32 })
  rmSync(folder, { recursive: true })
})

test('the calls by hand start a rollout, poll it, and ask for a reward', async () => {
  const house = await openHouse({ tokens: false })
  const folder = mkdtempSync(join(tmpdir(), 'paddock-docs-'))
  writeFileSync(join(folder, 'playground.json'), JSON.stringify({ policy_url: house.policyUrl }))
  const script = blocks('sh')
    .filter((block) => block.includes('curl'))
    .join('\n')
    .replace(/^npx.*$/m, '')
    .replaceAll('localhost:8420', house.url.slice('http://'.length))
  try {
    const shell = ['-euc', script.replaceAll('curl -s', "curl -s -w '\\n'")]
    const { stdout } = await promisify(execFile)('bash', shell, { cwd: folder })
    const [started, polled, reward] = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(started).toMatchObject({ message: 'Rollout started', tasks: 300 })
    expect(polled).toMatchObject({ data: { meta_info: { finished_groups: expect.any(Array) } } })
    expect(reward).toBe(1)
  } finally {
    await house.close()
    rmSync(folder, { recursive: true })
  }
}, 60_000)
