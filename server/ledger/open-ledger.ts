// The ledger that the settings ask for: in a folder, or in memory where they name none.
import { statfsSync } from 'node:fs'
import type { Ledger } from '../../rollout/ports.ts'
import type { Settings } from '../settings.ts'
import { createLedger } from './ledger.ts'
import { openLmdbStore } from './lmdb-store.ts'
import { createMemoryStore } from './memory-store.ts'
import type { StoreFailed } from './store.ts'

export interface LedgerHooks {
  /** The first write that failed: nothing is written any more, and the process has to end. */
  onFailure(error: StoreFailed): void
  /** A record that is not what was written, set aside. */
  onBad(key: string): void
  onExpired(leases: number): void
}

/** Most bytes of groups that have left which stay readable in memory, whatever the settings say. */
const KEPT_IN_MEMORY = 256 * 2 ** 20

/** `openStore` opens a folder. Throws PaddockError `invalid_config` where the folder is in use, or was written by a newer Paddock. */
export function openLedger(
  settings: Settings['ledger'],
  hooks: LedgerHooks,
  openStore = openLmdbStore,
): Ledger {
  const clock = () => performance.now() / 1000
  const { onBad, onExpired } = hooks
  const { path, max_bytes, keep_bytes, min_free_bytes, file_bytes } = settings
  if (path === undefined)
    return createLedger(createMemoryStore(), {
      clock,
      keepBytes: Math.min(keep_bytes, KEPT_IN_MEMORY),
      maxBytes: Number.POSITIVE_INFINITY,
      disk: null,
      onBad,
      onExpired,
    })
  const store = openStore(path, hooks.onFailure, file_bytes)
  const freeBytes = () => {
    try {
      const { bavail, bsize } = statfsSync(path)
      return bavail * bsize
    } catch {
      // The folder is gone: there is no room in it, and the next write ends the process.
      return 0
    }
  }
  try {
    return createLedger(store, {
      clock,
      keepBytes: keep_bytes,
      maxBytes: max_bytes,
      disk: { freeBytes, minFreeBytes: min_free_bytes },
      onBad,
      onExpired,
    })
  } catch (error) {
    store.close().catch(() => {})
    throw error
  }
}
