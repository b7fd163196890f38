// Writes what the policy simulator plays: each task's request and its transcripts, as a file that its operator names.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../../config.ts'
import { createPool, type Pool } from '../threads/pool.ts'
import { poolOptions } from '../threads/pool-options.ts'
import { readPacks } from './packs.ts'
import { loadTasks, type TaskCatalogue } from './tasks.ts'

/** Writes the scripts of the configured packs, hands over the file's path, and takes the file away when `use` is over. */
export async function withScripts<T>(
  config: Config,
  use: (file: string) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'paddock-scripts-'))
  try {
    const file = join(folder, 'scripts.jsonl')
    await writeFile(file, await readScripts(config))
    return await use(file)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function readScripts(config: Config): Promise<string> {
  const packs = await readPacks(config)
  const pool = createPool({ ...poolOptions(config, packs), models: {}, threads: 1 })
  try {
    return await scriptsOf(await loadTasks(packs, pool), pool)
  } finally {
    await pool.close()
  }
}

/** One JSON line a task that has transcripts: `{match, transcripts}`, `match` its first user message. */
async function scriptsOf(tasks: TaskCatalogue, pool: Pool): Promise<string> {
  const lines: string[] = []
  for (const { task } of tasks.specs()) {
    const { environment, id, spec } = task
    if (!spec.transcripts) continue
    const shown = await pool.run('show', { environment, id, spec, seed: 0 })
    const [user] = (shown.messages as { role: string; content: string }[]).filter(
      ({ role }) => role === 'user',
    )
    lines.push(JSON.stringify({ match: user?.content ?? '', transcripts: spec.transcripts }))
  }
  return `${lines.join('\n')}\n`
}
