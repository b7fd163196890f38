// What the log of a server says when it goes on with a ledger, and when its engine is dead.
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { loadConfig } from './config.ts'
import { createLog } from './log.ts'
import { createApiClient } from './runtime/api-client.ts'
import { shippedPack } from './runtime/packs/packs.ts'
import { serve } from './serve.ts'

test('a start on a ledger says in one line what goes on, and a dead engine is one line', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'paddock-recovered-'))
  // kept.g0 is acknowledged, kept.g1 ready, kept.g2 leased, and of kept.g3 one episode of two is under way.
  cpSync(fileURLToPath(new URL('ledger/testdata/schema-1', import.meta.url)), folder, {
    recursive: true,
  })
  const flags = {
    server: { port: 0, drain_timeout_s: 1 },
    shipped_packs: false,
    packs: [shippedPack('arithmetic')],
    backends: { main: { dialect: 'vllm', url: 'http://127.0.0.1:9', model: 'qwen3-8b' } },
    runtime: { threads: 1 },
    ledger: { path: folder, min_free_bytes: 0 },
  }
  const lines: Record<string, unknown>[] = []
  const config = loadConfig({ file: null, flags })
  const log = createLog(config, (line) => void lines.push(JSON.parse(line)))
  const running = await serve(config, log)
  try {
    const said = (msg: string) => lines.filter((line) => line.msg === msg)
    expect(said('what the ledger has was taken up')).toMatchObject([
      { level: 'info', batches: 1, groups_ready: 1, groups_leased: 1, episodes_under_way: 1 },
    ])
    const api = createApiClient(running.url)
    const tasks = [{ task: 'arithmetic/sum-1' }]
    await api.submit({ id: 'dead', mode: 'eval', tasks, group_size: 8, groups: { attempts: 1 } })
    await expect
      .poll(() => said('a backend gives no tokens'), { timeout: 20_000 })
      .toMatchObject([
        { level: 'warn', backend: 'main', last: expect.stringContaining('ECONNREFUSED') },
      ])
    expect(await api.progress('dead')).toHaveProperty('no_tokens_since')
    expect(said('a backend gives no tokens')).toHaveLength(1)
  } finally {
    await running.close()
    rmSync(folder, { recursive: true })
  }
}, 60_000)
