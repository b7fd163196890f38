// Replies of attempts that are under way: kept in their order, read after a restart, taken away with the attempt's end.
import { keys } from './keys.ts'
import type { Reader } from './reader.ts'
import { frame } from './record.ts'
import type { Change, Store } from './store.ts'
import type { Writer } from './writer.ts'

export interface Journal {
  /** Keeps one reply behind those before it. */
  add(episode: string, attempt: number, entry: Uint8Array): Promise<void>
  /** What is kept of an attempt, up to the first that is not what was written. */
  read(episode: string, attempt: number): Uint8Array[]
  /** The attempt is over: what takes its replies away. */
  end(episode: string, attempt: number): Change[]
  /** The episode's group is over: what takes away those of attempts that were never ended. */
  drop(episode: string): Change[]
}

export function createJournal(store: Store, reader: Reader, { commit }: Writer): Journal {
  /** Replies kept of each attempt under way. */
  const counts = new Map<string, number>()

  return {
    async add(episode, attempt, entry) {
      const name = keys.turns(episode, attempt)
      const number = counts.get(name) ?? 0
      counts.set(name, number + 1)
      const key = keys.turn(episode, attempt, number)
      await commit([{ key, value: frame(key, entry) }])
    },
    read(episode, attempt) {
      const entries: Uint8Array[] = []
      const name = keys.turns(episode, attempt)
      const records = store.keys(name)
      for (const key of records) {
        const bytes = reader.bytes(key)
        if (!bytes) break
        entries.push(bytes)
      }
      // What comes behind a bad one cannot be used: it is asked for again.
      const rest = records.slice(entries.length).map((key) => ({ key, value: null }))
      if (rest.length > 0) commit(rest).catch(() => {})
      counts.set(name, entries.length)
      return entries
    },
    end(episode, attempt) {
      const name = keys.turns(episode, attempt)
      const count = counts.get(name) ?? 0
      counts.delete(name)
      return Array.from({ length: count }, (_, number) => ({
        key: keys.turn(episode, attempt, number),
        value: null,
      }))
    },
    drop(episode) {
      const left = store.keys(keys.episodeTurns(episode))
      return left.map((key) => ({ key, value: null }))
    },
  }
}
