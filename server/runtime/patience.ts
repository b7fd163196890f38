// How long one request is waited for: until its deadline, or until whoever gave it withdraws it. One timer, one listener.

export interface Patience {
  ended(): boolean
  /** Calls back once, when patience ends. One callback at a time: the newest replaces the one before. */
  onEnd(callback: (() => void) | null): void
  /** Resolves after so many milliseconds, or when patience ends. */
  wait(ms: number): Promise<void>
  close(): void
}

/** `deadline` in milliseconds of `performance.now()`. An AbortSignal made of both would cost 20 µs a request. */
export function openPatience(deadline: number, signal: AbortSignal | null): Patience {
  let ended = signal?.aborted ?? false
  let callback: (() => void) | null = null
  const end = () => {
    ended = true
    callback?.()
    callback = null
  }
  const timer = setTimeout(end, Math.max(0, Math.ceil(deadline - performance.now())))
  timer.unref()
  signal?.addEventListener('abort', end, { once: true })
  return {
    ended: () => ended,
    onEnd(next) {
      callback = next
    },
    async wait(ms) {
      if (ended) return
      await new Promise<void>((resolve) => {
        const pause = setTimeout(resolve, ms)
        callback = () => {
          clearTimeout(pause)
          resolve()
        }
      })
    },
    close() {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
    },
  }
}
