// The fingerprint of an environment's state, by which a replay tells where it leaves the episode that was played.
import { hash } from 'node:crypto'

/**
 * SHA-256 of the state's JSON text, 64 hexadecimal digits; null where the state is no JSON (maps, circles, bigints).
 * Keys stay in the order in which the environment wrote them: it is also the order in which the policy reads them.
 */
export function stateHash(state: unknown): string | null {
  try {
    const text = JSON.stringify(state)
    return text === undefined ? null : hash('sha256', text)
  } catch {
    return null
  }
}
