// Commits to a store, each with the ledger's clock: how long servers have run with what is in it.
import { keys } from './keys.ts'
import { frameJson } from './record.ts'
import type { ClockRecord } from './resume.ts'
import type { Change, Store } from './store.ts'

/** How far the ledger's clock may stand behind after a kill. */
const CLOCK_MS = 1000

export interface Writer {
  /** Seconds of the ledger's clock. */
  now(): number
  /** As a store commits. */
  commit(changes: readonly Change[]): Promise<void>
  /** Commits what the clock shows at last, and closes the store. */
  close(): Promise<void>
}

export interface WriterOptions {
  /** Monotonic seconds of this process. */
  clock(): number
  /** Where the ledger's clock stood; 0 in a new one. */
  seconds: number
  /** How often the ledger was opened before. */
  life: number
  /** Whether the clock has to be kept while nothing else is. */
  isAwaited(): boolean
}

export function createWriter(store: Store, options: WriterOptions): Writer {
  const { clock, seconds, life, isAwaited } = options
  const startedAt = clock()
  // A clock that was killed shows up to its interval too little: no lease may live longer for that.
  const unseen = seconds > 0 ? CLOCK_MS / 1000 : 0
  const now = () => seconds + unseen + clock() - startedAt

  function commit(changes: readonly Change[]): Promise<void> {
    const record: ClockRecord = { seconds: now(), life }
    return store.commit([...changes, { key: keys.clock, value: frameJson(keys.clock, record) }])
  }

  const heart = setInterval(() => {
    if (isAwaited()) commit([]).catch(() => clearInterval(heart))
  }, CLOCK_MS)
  heart.unref()

  return {
    now,
    commit,
    async close() {
      clearInterval(heart)
      await commit([]).catch(() => {})
      await store.close()
    },
  }
}
