// Which backends give no tokens, by what comes of their requests, however alive their web servers are.
import type { LabelValue } from './labels.ts'

/** Tries that brought no token, since the last that brought some. */
interface Silence {
  /** The unix second in which the first of them went out. */
  since: number
  /** What came of the last. */
  last: string
}

/** Told when a backend stops giving tokens, and with null when it gives some again. */
export type OnSilence = (backend: string, silence: Silence | null) => void

export interface BackendHealth {
  /** One try of a request; `what` came of it, in words. */
  tried(backend: string, code: LabelValue<'backend_code'>, seconds: number, what: string): void
  /** A request with all its tries, by the last one. */
  asked(backend: string, code: LabelValue<'backend_code'>): void
  /** None of its endpoints may be asked for a while, since they failed: requests wait, and come to no end that counts. */
  leftAlone(backend: string): void
  isDown(backend: string): boolean
  /** Since when, by backend. */
  down(): ReadonlyMap<string, number>
}

/**
 * Requests without a token, each with all its tries, after which a backend counts as down. One is not enough: what
 * nothing helps may be the request.
 */
const FRUITLESS_REQUESTS = 3

export function createBackendHealth(onSilence: OnSilence): BackendHealth {
  const silences = new Map<string, Silence & { requests: number; down: boolean }>()

  function goDown(backend: string): void {
    const silence = silences.get(backend)
    if (!silence || silence.down) return
    silence.down = true
    onSilence(backend, { since: silence.since, last: silence.last })
  }

  function comeBack(backend: string): void {
    const wasDown = silences.get(backend)?.down
    silences.delete(backend)
    if (wasDown) onSilence(backend, null)
  }

  return {
    /** A refusal of one request says nothing of the backend; a reply, and a pause that it asks for, say that it lives. */
    tried(backend, code, seconds, what) {
      if (code === '4xx') return
      if (code === '2xx' || code === '429') return comeBack(backend)
      const now = { since: Date.now() / 1000 - seconds, requests: 0, down: false }
      silences.set(backend, { ...now, ...silences.get(backend), last: what })
    },
    asked(backend, code) {
      const silence = silences.get(backend)
      if (!silence || code === '4xx' || code === '2xx' || code === '429') return
      silence.requests++
      if (silence.requests >= FRUITLESS_REQUESTS) goDown(backend)
    },
    leftAlone: goDown,
    isDown: (backend) => silences.get(backend)?.down ?? false,
    down: () =>
      new Map([...silences].flatMap(([name, { since, down }]) => (down ? [[name, since]] : []))),
  }
}
