// What the ledger keeps its records in: keys and bytes, changed all or none at a time. Two implement it: lmdb and memory.
import { PaddockError } from '../../protocol/errors.ts'

/** A record to be put, or taken away (`value` null). The bytes are not changed by anyone afterwards. */
export interface Change {
  key: string
  value: Uint8Array | null
}

export interface Store {
  /** Whether what is in it outlives the process. */
  durable: boolean
  /**
   * Resolves when all the changes are on disk, or rejects with StoreFailed and none of them is. Changes of two calls are
   * made in the order of the calls. After the first failure nothing is written any more.
   */
  commit(changes: readonly Change[]): Promise<void>
  /** What has been committed last. */
  get(key: string): Uint8Array | undefined
  /** Keys that begin with a prefix that ends in `/`, in their order. */
  keys(prefix: string): string[]
  /** Bytes that keys and values take. */
  usedBytes(): number
  close(): Promise<void>
}

/** A write has failed: what was to be kept is not, and nothing more will be. */
export class StoreFailed extends PaddockError {
  constructor(cause: unknown) {
    const words = cause instanceof Error ? cause.message : String(cause)
    super('store_failed', `the ledger cannot be written: ${words}`, { cause })
    this.name = 'StoreFailed'
  }
}
