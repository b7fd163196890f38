// One finished group on its way to the trainer, as a reducer: ready, leased, settled. Times are monotonic seconds.
import type { AckResult } from '../../protocol/group.ts'
import type { Settlement } from '../../protocol/outcomes.ts'

/** A group that nobody acknowledges is not handed out for ever. */
export const MAX_DELIVERIES = 10

export interface LeaseState {
  phase: 'ready' | 'leased' | 'settled'
  /** How often the group was handed out; what reached nobody was not. */
  delivery: number
  lease: { id: string; until: number } | null
  /** Leases that ran out or were handed back: an ack for one of them is late. */
  past: string[]
  settlement: Settlement | null
}

export type LeaseEvent =
  | { type: 'lease'; id: string; until: number }
  | { type: 'renew'; id: string; until: number }
  | { type: 'stale' }
  | { type: 'lost' }
  | { type: 'ack' | 'nack' | 'takeBack'; id: string }
  | { type: 'tick'; now: number }

export interface LeaseChange {
  state: LeaseState
  /** What an ack or nack came to. */
  result: AckResult | null
}

export function readyLease(): LeaseState {
  return { phase: 'ready', delivery: 0, lease: null, past: [], settlement: null }
}

/** The transition table. An event that does not fit changes nothing and says so in `result`. */
export function leaseReducer(state: LeaseState, event: LeaseEvent): LeaseChange {
  switch (event.type) {
    case 'lease':
      if (state.phase !== 'ready') return { state, result: null }
      return {
        state: {
          ...state,
          phase: 'leased',
          delivery: state.delivery + 1,
          lease: { id: event.id, until: event.until },
        },
        result: null,
      }
    case 'renew':
      return state.lease?.id === event.id
        ? { state: { ...state, lease: { id: event.id, until: event.until } }, result: null }
        : { state, result: null }
    case 'lost':
      return {
        state: state.phase === 'settled' ? state : settled(state, 'undeliverable'),
        result: null,
      }
    case 'stale':
      return { state: state.phase === 'ready' ? settled(state, 'stale') : state, result: null }
    case 'tick':
      return state.lease && event.now >= state.lease.until
        ? { state: returned(state, 'undeliverable'), result: null }
        : { state, result: null }
    case 'ack':
      if (state.lease?.id === event.id)
        return {
          state: { ...settled(state, 'acked'), past: [...state.past, event.id] },
          result: 'acked',
        }
      return { state, result: strangersAck(state, event.id) }
    case 'nack':
      if (state.lease?.id === event.id)
        return { state: returned(state, 'nacked'), result: 'nacked' }
      return { state, result: strangersAck(state, event.id) }
    // Nobody was told of the lease, so that nobody can acknowledge it later.
    case 'takeBack':
      return state.lease?.id === event.id
        ? {
            state: { ...state, phase: 'ready', lease: null, delivery: state.delivery - 1 },
            result: null,
          }
        : { state, result: null }
  }
}

/** Back to ready, or given up after the last delivery. */
function returned(state: LeaseState, giveUp: Settlement): LeaseState {
  const past = state.lease ? [...state.past, state.lease.id] : state.past
  return state.delivery >= MAX_DELIVERIES
    ? { ...settled(state, giveUp), past }
    : { ...state, phase: 'ready', lease: null, past }
}

function settled(state: LeaseState, settlement: Settlement): LeaseState {
  return { ...state, phase: 'settled', lease: null, settlement }
}

function strangersAck(state: LeaseState, id: string): AckResult {
  if (!state.past.includes(id)) return 'unknown'
  return state.settlement === 'acked' && state.past.at(-1) === id ? 'duplicate' : 'late'
}
