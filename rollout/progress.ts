// Progress reward: a turn is paid what the worth of each thing rose above its best so far, once.
import type { Environment } from '../envs/environment.ts'
import type { EpisodeState } from './episode.ts'

/**
 * The state with the last turn's header paid (SPEC d, "Progress reward"): a repeated read or write raises nothing and pays
 * 0, a fall is not taken back, and what cannot be told yet has no key and stays open.
 */
export function paidForProgress(state: EpisodeState, environment: Environment): EpisodeState {
  const last = state.headers.at(-1)
  if (!last || !environment.progress) return state
  const best = new Map(state.best)
  let reward = 0
  for (const [key, worth] of Object.entries(environment.progress(state.env))) {
    const before = best.get(key) ?? 0
    if (!(worth > before)) continue
    reward += worth - before
    best.set(key, worth)
  }
  return { ...state, best, headers: [...state.headers.slice(0, -1), { ...last, reward }] }
}
