// Whether the configured ledger's folder keeps what is written: by the ledger's own store, in a folder beside it.
import { mkdir, mkdtemp, rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { openLmdbStore } from '../ledger/lmdb-store.ts'
import type { Settings } from '../settings.ts'
import type { Evidence } from './evidence.ts'

const KEY = 'doctor/record'
const RECORD = new Uint8Array(4096).map((_, index) => index)

/** A server that runs on the same ledger is not disturbed: the record goes into a folder of its own. */
export async function probeLedger({
  path,
  min_free_bytes,
}: Settings['ledger']): Promise<Evidence['ledger']> {
  const unknown = { freeBytes: 0, minFreeBytes: min_free_bytes }
  if (path === undefined) return { path: null, problem: null, ...unknown }
  try {
    await mkdir(path, { recursive: true })
    const folder = await mkdtemp(join(path, 'doctor-'))
    try {
      const problem = (await keeps(folder)) ? null : 'what was committed could not be read back'
      const { bavail, bsize } = await statfs(path)
      return { path, problem, freeBytes: bavail * bsize, minFreeBytes: min_free_bytes }
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  } catch (error) {
    return { path, problem: (error as Error).message, ...unknown }
  }
}

/** Committed (which syncs), closed, opened again and read. */
async function keeps(folder: string): Promise<boolean> {
  const ignore = () => {}
  const written = openLmdbStore(folder, ignore)
  await written.commit([{ key: KEY, value: RECORD }]).finally(written.close)
  const read = openLmdbStore(folder, ignore)
  try {
    const kept = read.get(KEY)
    return kept !== undefined && Buffer.compare(kept, RECORD) === 0
  } finally {
    await read.close()
  }
}
