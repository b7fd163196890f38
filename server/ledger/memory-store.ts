// A store that lives as long as its process: for tests, demos and the embedded default.
import type { Store } from './store.ts'

export function createMemoryStore(): Store {
  const records = new Map<string, Uint8Array>()
  let used = 0

  return {
    durable: false,
    commit(changes) {
      for (const { key, value } of changes) {
        used += (value?.length ?? 0) - (records.get(key)?.length ?? 0)
        if (value) records.set(key, value)
        else records.delete(key)
      }
      return Promise.resolve()
    },
    get: (key) => records.get(key),
    keys: (prefix) => [...records.keys()].filter((key) => key.startsWith(prefix)).sort(),
    usedBytes: () => used,
    close: () => Promise.resolve(),
  }
}
