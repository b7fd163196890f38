// Requests whose completion is on its way: they wait out their latency, or are aborted in mid-turn.

/** How a flight ended: `share` of its time had passed, 1 where it was not aborted; `at` is of `performance.now()`. */
interface Landing {
  share: number
  at: number
}

export interface Flights {
  /** Resolves after `ms`, or at an abort. */
  wait(id: string, ms: number): Promise<Landing>
  /** Aborts the requests with this id; null aborts all. */
  abort(id: string | null): void
  count(): number
}

export function createFlights(): Flights {
  const flying = new Set<{ id: string; land(): void }>()
  return {
    async wait(id, ms) {
      const start = performance.now()
      if (ms <= 0) return { share: 1, at: start }
      return new Promise((resolve) => {
        const arrive = () => {
          flying.delete(flight)
          resolve({ share: 1, at: performance.now() })
        }
        const timer = setTimeout(arrive, ms)
        const land = () => {
          clearTimeout(timer)
          flying.delete(flight)
          const at = performance.now()
          resolve({ share: Math.min((at - start) / ms, 1 - Number.EPSILON), at })
        }
        const flight = { id, land }
        flying.add(flight)
      })
    },
    abort(id) {
      for (const flight of flying) if (id === null || flight.id === id) flight.land()
    },
    count: () => flying.size,
  }
}
