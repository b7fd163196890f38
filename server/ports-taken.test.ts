// Who binds a port chooses it and then says it; who finds it taken says so and leaves nothing behind.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { loadConfig } from './config.ts'
import { createLog } from './log.ts'
import { serve } from './serve.ts'
import { startServerProcess } from './torture/server-process.ts'

const settings = { server: { port: 0 }, shipped_packs: false, runtime: { threads: 1 } }

it('O12: eight servers that start at once on port 0 listen on eight ports and answer', async () => {
  const flags = { ...settings, log: { level: 'silent' } }
  const config = loadConfig({ file: null, flags })
  const running = await Promise.all(
    Array.from({ length: 8 }, () => serve(config, createLog(config))),
  )
  try {
    expect(new Set(running.map(({ url }) => new URL(url).port)).size).toBe(8)
    const answers = await Promise.all(running.map(({ url }) => fetch(`${url}/healthz`)))
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200))
  } finally {
    await Promise.all(running.map((one) => one.close()))
  }
}, 120_000)

it('O12: a second server on a fixed port ends with a sentence that names it, and writes no folder', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'paddock-ports-'))
  const first = await serve(
    loadConfig({ file: null, flags: settings }),
    createLog(loadConfig({ file: null, flags: { log: { level: 'silent' } } })),
  )
  try {
    const port = Number(new URL(first.url).port)
    const config = join(folder, 'paddock.yaml')
    const second = { ...settings, server: { port }, ledger: { path: 'ledger' } }
    writeFileSync(config, JSON.stringify(second))
    await expect(startServerProcess(config)).rejects.toThrow(
      new RegExp(`127\\.0\\.0\\.1.*${port}|${port}.*127\\.0\\.0\\.1`),
    )
    expect(existsSync(join(folder, 'ledger'))).toBe(false)
  } finally {
    await first.close()
    rmSync(folder, { recursive: true })
  }
}, 120_000)
