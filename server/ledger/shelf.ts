// One batch's finished groups by how they stand, and the bytes that it holds: what the ledger answers without reading.
import { SETTLEMENTS } from '../../protocol/outcomes.ts'
import type { Delivery } from '../../rollout/ports.ts'
import type { LeaseState } from './lease.ts'

/** How a finished group stands. */
export interface Standing {
  state: LeaseState
  /** Its oldest policy version. */
  oldest: number | null
}

export interface Shelf {
  groups: ReadonlyMap<string, Standing>
  /** Ids that are ready, in the order in which they became so; and those that are out. */
  ready: ReadonlySet<string>
  leased: ReadonlySet<string>
  counts: Readonly<Record<Delivery, number>>
  put(group: string, standing: Standing): void
  /** Bytes of an episode that was sealed; 0 takes it back. */
  hold(group: string, episode: string, bytes: number): void
  /** The group's episodes with their bytes, which it holds no longer. */
  release(group: string): Map<string, number>
  heldBytes(): number
}

export function createShelf(): Shelf {
  const groups = new Map<string, Standing>()
  const ready = new Set<string>()
  const leased = new Set<string>()
  const counts = Object.fromEntries(
    (['ready', 'leased', ...SETTLEMENTS] as const).map((name) => [name, 0]),
  ) as Record<Delivery, number>
  const held = new Map<string, Map<string, number>>()
  let heldBytes = 0

  return {
    groups,
    ready,
    leased,
    counts,
    put(group, standing) {
      const before = groups.get(group)
      const name = deliveryOf(standing.state)
      groups.set(group, standing)
      if (before && deliveryOf(before.state) === name) return
      if (before) counts[deliveryOf(before.state)]--
      counts[name]++
      ready.delete(group)
      leased.delete(group)
      if (name === 'ready') ready.add(group)
      if (name === 'leased') leased.add(group)
    },
    hold(group, episode, bytes) {
      const episodes = held.get(group) ?? new Map<string, number>()
      held.set(group, episodes)
      heldBytes += bytes - (episodes.get(episode) ?? 0)
      episodes.set(episode, bytes)
    },
    release(group) {
      const episodes = held.get(group) ?? new Map<string, number>()
      held.delete(group)
      for (const bytes of episodes.values()) heldBytes -= bytes
      return episodes
    },
    heldBytes: () => heldBytes,
  }
}

function deliveryOf(state: LeaseState): Delivery {
  return state.phase === 'settled' ? (state.settlement as Delivery) : state.phase
}
