// Finished groups and sealed episodes, as they lie in the store and are read back from it.
import { setImmediate as breathe } from 'node:timers/promises'
import type { KeptEpisode, SealedEpisode } from '../../protocol/sealed.ts'
import type { GroupRecord, LeasedGroup } from '../../rollout/ports.ts'
import { keys } from './keys.ts'
import { todaysGroup } from './older-records.ts'
import type { Reader } from './reader.ts'
import { frame } from './record.ts'
import type { BatchRecord } from './resume.ts'
import type { Change } from './store.ts'

/** Bytes of episodes that are read and checked in one go: some 2 ms. */
const SLICE_BYTES = 2 ** 20
/** In front of a sealed episode's bytes: how many of them are the trainer's rows. */
const ROW_BYTES = 4

type KeptGroup = Pick<LeasedGroup, 'record' | 'sealed'>

export interface KeptGroups {
  record(batch: string, group: string): GroupRecord | null
  /** Null where none was sealed, `lost` where it is not what was written. */
  episode(id: string): KeptEpisode | null | 'lost'
  /** Null where any part of it cannot be read. Others have their turn while it is read. */
  group(batch: string, group: string): Promise<KeptGroup | null>
}

export function createKeptGroups(reader: Reader): KeptGroups {
  function record(batch: string, group: string): GroupRecord | null {
    const kept = reader.json<GroupRecord>(keys.group(batch, group))
    return kept ? todaysGroup(kept, () => reader.json<BatchRecord>(keys.batch(batch))?.entry) : null
  }

  function episode(id: string): KeptEpisode | null | 'lost' {
    const bytes = reader.bytes(keys.blob(id))
    if (bytes === undefined) return null
    if (bytes === null) return 'lost'
    const rowBytes = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true)
    return { header: { row_bytes: rowBytes }, blob: bytes.subarray(ROW_BYTES) }
  }

  async function group(batch: string, id: string): Promise<KeptGroup | null> {
    const kept = record(batch, id)
    if (!kept) return null
    const sealed: (KeptEpisode | null)[] = []
    let atOnce = 0
    for (const { id } of kept.episodes) {
      const one = episode(id)
      if (one === 'lost') return null
      sealed.push(one)
      atOnce += one?.blob.length ?? 0
      if (atOnce < SLICE_BYTES) continue
      atOnce = 0
      await breathe()
    }
    return { record: kept, sealed }
  }

  return { record, episode, group }
}

/** What keeps a sealed episode; null takes an earlier attempt's away. */
export function sealedChange(episode: string, sealed: SealedEpisode | null): Change {
  const key = keys.blob(episode)
  if (!sealed) return { key, value: null }
  const { header, blob } = sealed
  const bytes = new Uint8Array(ROW_BYTES + blob.length)
  new DataView(bytes.buffer).setUint32(0, header.row_bytes, true)
  bytes.set(blob, ROW_BYTES)
  return { key, value: frame(key, bytes) }
}
