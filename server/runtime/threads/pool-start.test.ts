// Threads that cannot be started: which module it is, and why.
import { writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { labPlan, writeLab } from '../../testkit/lab-environment.testkit.ts'
import { labPool } from '../../testkit/pool.testkit.ts'
import { WorkerLost } from './pool.ts'

const lab = writeLab()

test('a pool whose module cannot be loaded says which and why', async () => {
  const missing = pathToFileURL(lab.flag('missing.mjs')).href
  const broken = labPool('', { environments: { ghost: missing } })
  await expect(broken.ready()).rejects.toMatchObject({ code: 'invalid_config' })
  await expect(broken.ready()).rejects.toThrow(/environment ghost: .*missing\.mjs cannot be loaded/)
  await broken.close()
}, 120_000)

test('a pool whose module ends the thread while it loads gives up', async () => {
  const fatal = lab.flag('fatal.mjs')
  writeFileSync(fatal, 'process.exit(3)')
  const broken = labPool('', { environments: { fatal: pathToFileURL(fatal).href } })
  await expect(broken.ready()).rejects.toThrow(
    /environment fatal: .*fatal.mjs.*exited with code: 3/,
  )
  await expect(broken.run('begin', labPlan({}))).rejects.toBeInstanceOf(WorkerLost)
  await broken.close()
}, 120_000)

test.each([
  // Long enough for a thread to start on a busy machine, of which the module is not to blame.
  ['never loads', 'await new Promise((resolve) => setTimeout(resolve, 1e6))', 10, /within 10 s/],
  [
    'needs too much memory',
    'const a = []; for (;;) a.push(new Array(5e5).fill(a.length))',
    60,
    /96 MB of heap: raise runtime\.heap_mb/,
  ],
])(
  'a pool whose module %s names it and the limit',
  async (what, text, startSeconds, words) => {
    const slow = lab.flag(`slow-${what.replaceAll(' ', '-')}.mjs`)
    writeFileSync(slow, text)
    // The one before it has loaded, and is not blamed.
    const modules = { lab: pathToFileURL(lab.module).href, slow: pathToFileURL(slow).href }
    const broken = labPool('', { startSeconds, environments: modules })
    await expect(broken.ready()).rejects.toMatchObject({ code: 'invalid_config' })
    await expect(broken.ready()).rejects.toThrow(/^environment slow: .*slow-/)
    await expect(broken.ready()).rejects.toThrow(words)
    await broken.close()
  },
  120_000,
)
