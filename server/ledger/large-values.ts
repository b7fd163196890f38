// Large values of the durable store, each in a file of its own: read when asked for, and in no map that the process keeps.
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  statSync,
  unlinkSync,
} from 'node:fs'
import { open, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Change } from './store.ts'

/** First byte of what stands in a large value's place; a record begins with another one. */
const POINTER = 0x46
const NAME_DIGITS = 12
/** In front of a value: the length of its key (little-endian) and the key. */
const HEAD_BYTES = 4
/** lmdb takes no longer keys. */
const LONGEST_KEY = 1978

export interface LargeValues {
  /** Writes what is large to files that are on disk when it resolves, and gives the changes with pointers in their place. */
  place(changes: readonly Change[]): Promise<Change[]>
  /** What was placed has been committed: files that nothing points to any more are deleted. */
  committed(placed: readonly Change[]): void
  /** Bytes of all files. */
  bytes(): number
  /** Resolves when no file is being deleted. */
  close(): Promise<void>
}

/**
 * Values of `largeBytes` and more of the store in `folder`. What was written there and never committed is deleted.
 * `get` gives what the store has at a key: a pointer, another value or nothing.
 */
export function openLargeValues(
  folder: string,
  largeBytes: number,
  get: (key: string) => Uint8Array | undefined,
): LargeValues {
  const values = valuesOf(folder)
  mkdirSync(values, { recursive: true })
  const files = new Map<string, { name: string; bytes: number }>()
  const going = new Set<Promise<void>>()
  let next = 0
  for (const name of readdirSync(values)) {
    next = Math.max(next, Number(name) + 1 || 0)
    const file = join(values, name)
    const key = keyIn(file)
    const pointer = key === null ? undefined : get(key)
    if (key !== null && pointer && nameAt(pointer) === name)
      files.set(key, { name, bytes: statSync(file).size })
    else unlinkSync(file)
  }

  async function write({ key, value }: Change): Promise<Change> {
    // A small value that looks like a pointer would be taken for one.
    if (!value || (value.length < largeBytes && value[0] !== POINTER)) return { key, value }
    const name = String(next++).padStart(NAME_DIGITS, '0')
    const file = await open(join(values, name), 'wx')
    try {
      await file.writeFile(headOf(key))
      await file.writeFile(value)
      await file.sync()
    } finally {
      await file.close()
    }
    return { key, value: new Uint8Array([POINTER, ...Buffer.from(name)]) }
  }

  /** What stays after all is deleted at the next start. */
  function remove(name: string): void {
    const gone = unlink(join(values, name))
      .catch(() => {})
      .finally(() => going.delete(gone))
    going.add(gone)
  }

  return {
    async place(changes) {
      const before = next
      const placed = await Promise.all(changes.map(write))
      if (next > before) await syncFolder(values)
      return placed
    },
    committed(placed) {
      for (const { key, value } of placed) {
        const old = files.get(key)
        files.delete(key)
        const name = value && nameAt(value)
        if (name) files.set(key, { name, bytes: statSync(join(values, name)).size })
        if (old) remove(old.name)
      }
    },
    async close() {
      await Promise.all(going)
    },
    bytes: () => [...files.values()].reduce((sum, { bytes }) => sum + bytes, 0),
  }
}

/** How a store is asked: what it has at a key, as of when it was last told to look anew. */
interface Stored {
  getBinary(key: string): Uint8Array | undefined
  resetReadTxn(): void
}

/** What a store in `folder` has at a key, from its file where it has one; of a file that is not there or cut, bytes that are no record. */
export function readValue(folder: string, db: Stored, key: string): Uint8Array | undefined {
  const value = readNow(folder, db, key)
  if (value !== null) return value
  // A record that has just been changed takes its file with it: only what is missing anew is missing.
  db.resetReadTxn()
  return readNow(folder, db, key) ?? new Uint8Array()
}

/** Null where its file is not there. */
function readNow(folder: string, db: Stored, key: string): Uint8Array | undefined | null {
  const stored = db.getBinary(key)
  const name = stored && nameAt(stored)
  if (!name) return stored
  try {
    const bytes = readFileSync(join(valuesOf(folder), name))
    return bytes.subarray(HEAD_BYTES + (bytes.length < HEAD_BYTES ? 0 : bytes.readUInt32LE(0)))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

function valuesOf(folder: string): string {
  return join(folder, 'values')
}

/** The file that a stored value points to; null where it is the value itself. */
function nameAt(stored: Uint8Array): string | null {
  return stored[0] === POINTER ? Buffer.from(stored.subarray(1)).toString() : null
}

function headOf(key: string): Uint8Array {
  const bytes = Buffer.from(key)
  const head = Buffer.alloc(HEAD_BYTES + bytes.length)
  head.writeUInt32LE(bytes.length, 0)
  bytes.copy(head, HEAD_BYTES)
  return head
}

/** Whose value lies in a file; null where the file was not even begun. */
function keyIn(file: string): string | null {
  const head = Buffer.alloc(HEAD_BYTES + LONGEST_KEY)
  const descriptor = openSync(file, 'r')
  try {
    const read = readSync(descriptor, head)
    if (read < HEAD_BYTES) return null
    return head.subarray(HEAD_BYTES, Math.min(read, HEAD_BYTES + head.readUInt32LE(0))).toString()
  } finally {
    closeSync(descriptor)
  }
}

/** A new file is found again after a crash only once its folder is on disk too. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
