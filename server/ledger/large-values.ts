// Large values of the durable store, each in a file of its own: read when asked for, and in no map that the process keeps.
import {
  closeSync,
  existsSync,
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
import { PaddockError } from '../../protocol/errors.ts'
import { keys } from './keys.ts'
import { SCHEMA_WITH_FILES, schemaOf } from './record.ts'
import type { Change } from './store.ts'

/** First byte of what stands in a large value's place; a record begins with another one. */
const POINTER = 0x46
const NAME_DIGITS = 12
const NAME = new RegExp(`^\\d{${NAME_DIGITS}}$`)
/** Errors of this process, not of a file: what cannot be read now can be read later. */
const PASSING = ['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN']
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
 * `get` gives what the store has at a key: a pointer, another value or nothing. Throws PaddockError `invalid_config` where
 * the folder of the files is gone or cannot be used.
 */
export function openLargeValues(
  folder: string,
  largeBytes: number,
  get: (key: string) => Uint8Array | undefined,
): LargeValues {
  const values = valuesOf(folder)
  const files = new Map<string, { name: string; bytes: number }>()
  const going = new Set<Promise<void>>()
  let next = 0
  for (const name of namesIn(values, schemaOf(get(keys.clock)))) {
    next = Math.max(next, Number(name) + 1)
    const file = join(values, name)
    const key = keyIn(file)
    if (key === 'unreadable') continue
    const pointer = get(key)
    if (pointer && nameAt(pointer) === name) files.set(key, { name, bytes: statSync(file).size })
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

/** What a store in `folder` has at a key, from its file where it has one; of a file that cannot be read or is cut, bytes that are no record. */
export function readValue(folder: string, db: Stored, key: string): Uint8Array | undefined {
  const value = readNow(folder, db, key)
  if (value !== null) return value
  // A record that has just been changed takes its file with it: only what is missing anew is missing.
  db.resetReadTxn()
  const anew = readNow(folder, db, key)
  return anew === null ? new Uint8Array() : anew
}

/** Null where its file cannot be read. */
function readNow(folder: string, db: Stored, key: string): Uint8Array | undefined | null {
  const stored = db.getBinary(key)
  const name = stored && nameAt(stored)
  if (!name) return stored
  try {
    const bytes = readFileSync(join(valuesOf(folder), name))
    return bytes.subarray(HEAD_BYTES + (bytes.length < HEAD_BYTES ? 0 : bytes.readUInt32LE(0)))
  } catch (error) {
    if (PASSING.includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    return null
  }
}

/** Names of our files in the folder, which is made for a store that has none. Throws `invalid_config` where it cannot be used. */
function namesIn(values: string, schema: number): string[] {
  try {
    if (!existsSync(values)) {
      // Without its files each of their records would be set aside as damaged.
      if (schema >= SCHEMA_WITH_FILES) throw new Error('it is gone, and large records lie in it')
      mkdirSync(values)
    }
    // What has another name is somebody else's.
    return readdirSync(values).filter((name) => NAME.test(name))
  } catch (cause) {
    throw new PaddockError(
      'invalid_config',
      `ledger.path: ${values} cannot be used: ${(cause as Error).message}; put it back as it was, or name another folder`,
      { path: 'ledger.path', cause },
    )
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

/** Whose value lies in a file; no key where the file was not even begun. */
function keyIn(file: string): string | 'unreadable' {
  const head = Buffer.alloc(HEAD_BYTES + LONGEST_KEY)
  try {
    const descriptor = openSync(file, 'r')
    try {
      const read = readSync(descriptor, head)
      const end = read < HEAD_BYTES ? 0 : HEAD_BYTES + head.readUInt32LE(0)
      return head.subarray(HEAD_BYTES, Math.min(read, end)).toString()
    } finally {
      closeSync(descriptor)
    }
  } catch {
    return 'unreadable'
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
