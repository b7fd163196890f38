// States that a thread made last, as objects: what it has just written it need not read back. A shortcut, never a source.
import { deserialize, serialize } from 'node:v8'
import type { EpisodeState } from '../../../rollout/episode.ts'

/** A state as the main thread keeps it: bytes that any thread can read, and the name under which one knows them already. */
export interface KeptState {
  key: string
  bytes: Uint8Array
}

export interface StateCache {
  /** The state as bytes. The object stays here until it is asked for, or newer ones need its room. */
  keep(state: EpisodeState): KeptState
  /** The state of these bytes, wherever they were made. */
  open(kept: KeptState): EpisodeState
}

/** Serialised bytes of the states that are kept: those of some 300 episodes of 1,000 tokens, or 50 of 16,000. */
const KEPT_BYTES = 16 * 2 ** 20

/** `thread` is never used twice in a process, and so no key is. */
export function createStateCache(thread: number, keptBytes = KEPT_BYTES): StateCache {
  /** By key, the oldest first. */
  const states = new Map<string, { state: EpisodeState; size: number }>()
  let made = 0
  let held = 0

  function take(key: string): EpisodeState | null {
    const entry = states.get(key)
    if (!entry) return null
    states.delete(key)
    held -= entry.size
    return entry.state
  }

  return {
    keep(state) {
      const bytes = serialize(state)
      const key = `${thread}:${made++}`
      states.set(key, { state, size: bytes.length })
      held += bytes.length
      for (const oldest of states.keys()) {
        if (held <= keptBytes) break
        take(oldest)
      }
      return { key, bytes }
    },
    // Taken out: a turn that is played twice reads the bytes, whatever the first playing did to the object.
    open: ({ key, bytes }) => take(key) ?? (deserialize(bytes) as EpisodeState),
  }
}
