// Reads records and sets aside those that are not what was written: counted, told, and out of everybody's way.
import { keys } from './keys.ts'
import { frame, unframe } from './record.ts'
import type { Change, Store } from './store.ts'

export interface Reader {
  /** Undefined where there is no such record, null where it is a bad one. */
  bytes(key: string): Uint8Array | null | undefined
  json<T>(key: string): T | null | undefined
}

/** `onBad` is told the key of each bad record, once it is set aside under `bad/`. */
export function createReader(store: Store, onBad: (key: string) => void): Reader {
  function bytes(key: string): Uint8Array | null | undefined {
    const framed = store.get(key)
    if (!framed) return undefined
    const good = unframe(key, framed)
    if (good) return good
    const aside = keys.bad(key)
    const changes: Change[] = [
      { key, value: null },
      { key: aside, value: frame(aside, framed) },
    ]
    // A failed write ends the process through the store.
    store.commit(changes).catch(() => {})
    onBad(key)
    return null
  }

  return {
    bytes,
    json<T>(key: string) {
      const read = bytes(key)
      return read ? (JSON.parse(new TextDecoder().decode(read)) as T) : (read as null | undefined)
    },
  }
}
