// The durable store: an lmdb environment in a folder with files beside it, one commit at a time, and none after one that failed.
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { open } from 'lmdb'
import { lockFolder } from './folder-lock.ts'
import { openLargeValues, readValue } from './large-values.ts'
import { type Change, type Store, StoreFailed } from './store.ts'

/** Values of so many bytes lie in a file of their own unless the settings say otherwise. */
const FILE_BYTES = 256 * 2 ** 10

interface Waiting {
  changes: readonly Change[]
  resolve(): void
  reject(error: StoreFailed): void
}

/**
 * Opens or creates the ledger of a folder. `onFailure` hears of the first write that fails; whoever waits for it and
 * for the writes behind it gets the same error. Throws PaddockError `invalid_config` where another process has the folder.
 */
export function openLmdbStore(
  folder: string,
  onFailure: (error: StoreFailed) => void,
  fileBytes = FILE_BYTES,
): Store {
  const unlock = lockFolder(folder)
  const db = open<Uint8Array, string>({
    path: folder,
    encoding: 'binary',
    // `put` resolves when the bytes are on disk. With the default, a failed fsync leaves `flushed` pending for ever and
    // the rejected record readable.
    overlappingSync: false,
  })
  const file = join(folder, 'data.mdb')
  const { ino } = statSync(file)
  const large = openedOr(
    () => openLargeValues(folder, fileBytes, (key) => db.getBinary(key)),
    () => {
      unlock()
      db.close().catch(() => {})
    },
  )
  let queue: Waiting[] = []
  let failure: StoreFailed | null = null
  let writing: Promise<void> | null = null

  /** Everything that waits goes into the next commit together: one fsync for all of it. */
  async function write(): Promise<void> {
    while (queue.length > 0 && !failure) {
      const batch = queue
      queue = []
      try {
        mustBeThere(file, ino)
        const placed = await large.place(batch.flatMap(({ changes }) => changes))
        await db.batch(() => {
          for (const { key, value } of placed) value ? db.put(key, value) : db.remove(key)
        })
        large.committed(placed)
        for (const { resolve } of batch) resolve()
      } catch (error) {
        failure = new StoreFailed(await causeOf(error))
        onFailure(failure)
        for (const { reject } of [...batch, ...queue]) reject(failure)
        queue = []
      }
    }
    writing = null
  }

  return {
    durable: true,
    commit(changes) {
      if (failure) return Promise.reject(failure)
      return new Promise((resolve, reject) => {
        queue.push({ changes, resolve, reject })
        writing ??= write()
      })
    },
    get: (key) => readValue(folder, db, key),
    // '0' is the character behind '/'.
    keys: (prefix) => [...db.getKeys({ start: prefix, end: `${prefix.slice(0, -1)}0` })],
    usedBytes() {
      const stats = db.getStats() as Record<string, number>
      const {
        pageSize = 0,
        treeBranchPageCount = 0,
        treeLeafPageCount = 0,
        overflowPages = 0,
      } = stats
      return pageSize * (treeBranchPageCount + treeLeafPageCount + overflowPages) + large.bytes()
    },
    async close() {
      await writing
      failure ??= new StoreFailed(new Error('it is closed'))
      await large.close()
      await db.close().catch(() => {})
      unlock()
    },
  }
}

/** What was opened before does not stay open. */
function openedOr<T>(open: () => T, giveBack: () => void): T {
  try {
    return open()
  } catch (error) {
    giveBack()
    throw error
  }
}

/** What is written to a file that was deleted reaches no disk, and another process would take the folder's place. */
function mustBeThere(file: string, ino: number): void {
  const now = statSync(file, { throwIfNoEntry: false })
  if (now?.ino !== ino) throw new Error(`${file} was ${now ? 'replaced' : 'deleted'} beneath it`)
}

/** lmdb rejects every write of a failed commit with the same words, and one promise beside them with the cause. */
async function causeOf(error: unknown): Promise<unknown> {
  const { commitError } = error as { commitError?: Promise<never> }
  if (!commitError) return error
  return commitError.catch((cause: unknown) => cause)
}
