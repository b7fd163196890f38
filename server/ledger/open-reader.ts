// A ledger's folder for reading alone, beside a server that may be writing it.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { open } from 'lmdb'
import { PaddockError } from '../../protocol/errors.ts'
import { readValue } from './large-values.ts'
import { unframe } from './record.ts'

export interface LedgerReader {
  keys(prefix: string): string[]
  /** Undefined where there is no such record, null where it is not what was written. */
  bytes(key: string): Uint8Array | null | undefined
  json<T>(key: string): T | null | undefined
  close(): Promise<void>
}

/** Throws PaddockError `invalid_config` where there is no ledger, or a newer Paddock has written it. */
export function openLedgerReader(folder: string): LedgerReader {
  if (!existsSync(join(folder, 'data.mdb')))
    throw new PaddockError(
      'invalid_config',
      `${folder}: expected the folder of a ledger, found no data.mdb in it`,
    )
  const db = open<Uint8Array, string>({ path: folder, encoding: 'binary', readOnly: true })
  function bytes(key: string): Uint8Array | null | undefined {
    const framed = readValue(folder, db, key)
    return framed && unframe(key, framed)
  }
  return {
    keys: (prefix) =>
      prefix === ''
        ? [...db.getKeys()]
        : [...db.getKeys({ start: prefix, end: `${prefix.slice(0, -1)}0` })],
    bytes,
    json<T>(key: string) {
      const read = bytes(key)
      return read ? (JSON.parse(new TextDecoder().decode(read)) as T) : (read as null | undefined)
    },
    close: () => db.close(),
  }
}
