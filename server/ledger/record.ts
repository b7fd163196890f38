// One record as it lies in the store: schema version and checksum in front of its bytes.
import { crc32 } from 'node:zlib'
import { PaddockError } from '../../protocol/errors.ts'

/** Version of all that the ledger writes. It grows when a record changes its meaning or its place; older ones stay readable. */
const SCHEMA = 2
/** From here on large records lie in files. */
export const SCHEMA_WITH_FILES = 2

const MARK = 0x50
const HEAD_BYTES = 6

/** A mark, the version, the checksum over all the rest and the key (little-endian), the bytes. */
export function frame(key: string, bytes: Uint8Array, schema = SCHEMA): Uint8Array {
  const framed = new Uint8Array(HEAD_BYTES + bytes.length)
  framed[0] = MARK
  framed[1] = schema
  new DataView(framed.buffer).setUint32(2, checksum(key, schema, bytes), true)
  framed.set(bytes, HEAD_BYTES)
  return framed
}

/** The bytes of a record; null where they are not what was written. Throws `invalid_config` for a newer version. */
export function unframe(key: string, framed: Uint8Array): Uint8Array | null {
  if (framed.length < HEAD_BYTES || framed[0] !== MARK) return null
  const bytes = framed.subarray(HEAD_BYTES)
  const written = new DataView(framed.buffer, framed.byteOffset).getUint32(2, true)
  const schema = framed[1] ?? 0
  if (written !== checksum(key, schema, bytes)) return null
  if (schema > SCHEMA)
    throw new PaddockError(
      'invalid_config',
      `the ledger was written by a newer Paddock (schema ${schema}; this one reads up to ${SCHEMA}): start that one, or name another folder as ledger.path`,
      { path: 'ledger.path' },
    )
  return bytes
}

/** Of what wrote a record; 0 where there is none. */
export function schemaOf(framed: Uint8Array | undefined): number {
  return framed?.[1] ?? 0
}

export function frameJson(key: string, value: unknown): Uint8Array {
  return frame(key, new TextEncoder().encode(JSON.stringify(value)))
}

/** A record under another record's key is a bad one too. */
function checksum(key: string, schema: number, bytes: Uint8Array): number {
  return crc32(bytes, crc32(`${schema} ${key}`))
}
