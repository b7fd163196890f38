// A leased group's bytes: the envelope of headers around each episode's sealed row, as msgpack or as JSON.
import type { DeliveredEpisode, DeliveredGroup, Sample } from './group.ts'
import { entry, joinArray, joinMaps, packMap, packValue, unpack } from './msgpack.ts'

/**
 * A group without what lies in the sealed blobs, and each episode's sealed row beside it; its trajectory (JSON text) too
 * where a dialect wants one.
 */
export interface GroupEnvelope {
  head: Omit<DeliveredGroup, 'episodes'>
  episodes: {
    head: Omit<DeliveredEpisode, 'grade' | 'samples'>
    row: Uint8Array
    trajectory?: Uint8Array
  }[]
}

/** How to read the `bin` fields of a sample (numpy names). */
const DTYPES = { ids: '<i4', mask: '|u1', logprobs: '<f4' }

/** The body `{groups, done}` of a lease as msgpack; the sealed bytes are copied, never decoded. */
export function leaseMsgpack(groups: readonly GroupEnvelope[], done: boolean): Uint8Array {
  return joinMaps(entry('groups', joinArray(groups.map(groupMsgpack))), packMap({ done }))
}

/** One group as msgpack. */
function groupMsgpack({ head, episodes }: GroupEnvelope): Uint8Array {
  const packed = episodes.map((episode) => joinMaps(packMap(episode.head), episode.row))
  return joinMaps(
    packMap(head as unknown as Record<string, unknown>),
    entry('episodes', joinArray(packed)),
    entry('dtypes', packValue(DTYPES)),
  )
}

/** The body of a lease as JSON text. */
export function leaseJson(groups: readonly GroupEnvelope[], done: boolean): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ groups: groups.map(groupObject), done }))
}

/** One group with arrays of numbers. */
export function groupObject({ head, episodes }: GroupEnvelope): DeliveredGroup {
  return { ...head, episodes: episodes.map(({ head, row }) => ({ ...head, ...readRow(row) })) }
}

interface Row {
  grade: DeliveredEpisode['grade']
  samples: Sample<Uint8Array, Uint8Array, Uint8Array>[]
}

/** Grade and samples of a sealed row, with arrays of numbers. */
export function readRow(row: Uint8Array): Pick<DeliveredEpisode, 'grade' | 'samples'> {
  const { grade, samples } = unpack(row) as Row
  return {
    grade,
    samples: samples.map((sample) => ({
      ...sample,
      ids: Array.from(new Int32Array(alignedCopy(sample.ids))),
      mask: Array.from(sample.mask),
      logprobs: Array.from(new Float32Array(alignedCopy(sample.logprobs))),
    })),
  }
}

/** A copy on a buffer of its own: a typed array of 4-byte values cannot begin at any offset of another. */
function alignedCopy(bytes: Uint8Array): ArrayBuffer {
  return Uint8Array.from(bytes).buffer
}
