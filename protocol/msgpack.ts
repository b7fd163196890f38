// The one MessagePack dialect of the wire: plain maps, `bin` for bytes, no extensions; and maps joined without decoding.
import { Packr } from 'msgpackr'

// Records and shared structures are msgpackr's own extension, which other readers do not know. `undefined` would be one too.
const packr = new Packr({ useRecords: false, variableMapSize: true, encodeUndefinedAsNil: true })

export function packMap(value: Record<string, unknown>): Uint8Array {
  return packr.pack(value)
}

export function packValue(value: unknown): Uint8Array {
  return packr.pack(value)
}

/** Decodes one value; throws on truncated or trailing bytes. `bin` comes back as a Buffer. */
export function unpack(bytes: Uint8Array): unknown {
  return packr.unpack(bytes)
}

/** How many entries a packed map has, and where they begin. */
function mapEntries(map: Uint8Array): { count: number; start: number } {
  const view = new DataView(map.buffer, map.byteOffset, map.byteLength)
  const type = view.getUint8(0)
  if ((type & 0xf0) === 0x80) return { count: type & 0x0f, start: 1 }
  if (type === 0xde) return { count: view.getUint16(1), start: 3 }
  if (type === 0xdf) return { count: view.getUint32(1), start: 5 }
  throw new TypeError(`expected a msgpack map, got the type byte 0x${type.toString(16)}`)
}

/** One packed map with the entries of all the given ones, in order: their bytes are copied as they are. */
export function joinMaps(...maps: Uint8Array[]): Uint8Array {
  const parts = maps.map((map) => ({ map, ...mapEntries(map) }))
  const count = parts.reduce((sum, part) => sum + part.count, 0)
  return concat([mapHeader(count), ...parts.map(({ map, start }) => map.subarray(start))])
}

/** A packed array of packed values. */
export function joinArray(values: readonly Uint8Array[]): Uint8Array {
  const header = new DataView(new ArrayBuffer(5))
  header.setUint8(0, 0xdd)
  header.setUint32(1, values.length)
  return concat([new Uint8Array(header.buffer), ...values])
}

/** A packed map of one entry whose value is packed already. */
export function entry(key: string, value: Uint8Array): Uint8Array {
  return concat([Uint8Array.of(0x81), packr.pack(key), value])
}

function mapHeader(count: number): Uint8Array {
  if (count < 16) return Uint8Array.of(0x80 | count)
  return Uint8Array.of(0xde, count >> 8, count & 0xff)
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    joined.set(part, at)
    at += part.length
  }
  return joined
}
