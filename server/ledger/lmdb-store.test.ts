// The durable store beside its conformance suite: a folder that goes away beneath it.
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openLmdbStore } from './lmdb-store.ts'
import { StoreFailed } from './store.ts'

const bytes = new TextEncoder().encode('kept')

/** Opens a store, writes to it, takes its folder away, and gives what the next write says and who was told. */
async function without(away: (folder: string) => void) {
  const folder = join(mkdtempSync(join(tmpdir(), 'paddock-store-')), 'ledger')
  const told: StoreFailed[] = []
  const store = openLmdbStore(folder, (error) => told.push(error))
  await store.commit([{ key: 'a/1', value: bytes }])
  away(folder)
  const refused = await store.commit([{ key: 'a/2', value: bytes }]).catch((error) => error)
  return { folder, store, told, refused }
}

test.each([
  ['deleted', (folder: string) => rmSync(folder, { recursive: true })],
  ['moved', (folder: string) => renameSync(folder, `${folder}-away`)],
])('a folder that was %s while it is open ends the writing', async (_, away) => {
  const { store, told, refused } = await without(away)
  expect(refused).toBeInstanceOf(StoreFailed)
  expect(String(refused.cause)).toContain('was deleted beneath it')
  expect(told).toEqual([refused])
  await expect(store.commit([{ key: 'a/3', value: bytes }])).rejects.toBe(refused)
  await store.close()
})

test('who loses a folder does not unlock it for the process that has it now', async () => {
  const { folder, store } = await without((folder) => rmSync(folder, { recursive: true }))
  mkdirSync(folder)
  const lock = join(folder, 'process.lock')
  writeFileSync(lock, 'another process')
  await store.close()
  expect(readFileSync(lock, 'utf8')).toBe('another process')
})
