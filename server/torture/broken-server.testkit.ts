// A server whose store breaks its word, for the torture to notice: its arguments are a fault and the config's path.
import { loadConfig } from '../config.ts'
import { openLmdbStore } from '../ledger/lmdb-store.ts'
import type { Change, Store } from '../ledger/store.ts'
import { createLog } from '../log.ts'
import { serve } from '../serve.ts'

/** How much later than it says the store writes, milliseconds. */
const LATE_MS = 1500

const FAULTS: Record<string, (store: Store) => Store> = {
  /** A commit is answered before it is on disk. */
  early(store) {
    const told = new Map<string, Uint8Array | null>()
    return {
      ...store,
      commit(changes) {
        for (const { key, value } of changes) told.set(key, value)
        setTimeout(() => store.commit(changes).catch(() => {}), LATE_MS)
        return Promise.resolve()
      },
      get: (key) => (told.has(key) ? (told.get(key) ?? undefined) : store.get(key)),
      keys(prefix) {
        const kept = store.keys(prefix).filter((key) => !told.has(key))
        const late = [...told].filter(([key, value]) => value && key.startsWith(prefix))
        return [...kept, ...late.map(([key]) => key)].sort()
      },
    }
  },
  /** An ack is answered and not kept. */
  ack: (store) => without(store, ({ value }) => text(value).includes('"settlement":"acked"')),
  /** Nothing is ever on disk. */
  mute: (store) => ({ ...store, commit: () => new Promise(() => {}) }),
  /** Some finished groups are not kept. */
  group: (store) =>
    without(store, ({ key, value }) => value !== null && /^group\/.*[05]$/.test(key)),
}

function without(store: Store, isLeftOut: (change: Change) => boolean): Store {
  return { ...store, commit: (changes) => store.commit(changes.filter((one) => !isLeftOut(one))) }
}

const text = (bytes: Uint8Array | null) => Buffer.from(bytes ?? []).toString('latin1')

const [fault = '', file = ''] = process.argv.slice(2)
const breakStore = FAULTS[fault]
if (!breakStore) throw new Error(`expected one of ${Object.keys(FAULTS).join(', ')}, not ${fault}`)
const config = loadConfig({ file })
const log = createLog(config)
const { url } = await serve(
  config,
  log,
  () => process.exit(1),
  (...asked) => breakStore(openLmdbStore(...asked)),
)
log.info({ url }, 'listening')
