// How long one request is waited for: until its deadline, or until whoever gave it withdraws it. One timer, one listener.

export interface Patience {
  ended(): boolean
  /** Calls back once, when patience ends. One callback at a time: the newest replaces the one before. */
  onEnd(callback: (() => void) | null): void
  /**
   * Resolves after so many milliseconds (null: only by what follows), when patience ends, or when somebody calls what it
   * puts into `wakers` meanwhile.
   */
  wait(ms: number | null, wakers?: Set<() => void>): Promise<void>
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
    async wait(ms, wakers) {
      if (ended) return
      await new Promise<void>((resolve) => {
        const wake = () => {
          if (pause) clearTimeout(pause)
          wakers?.delete(wake)
          callback = null
          resolve()
        }
        const pause = ms === null ? null : setTimeout(wake, ms)
        wakers?.add(wake)
        callback = wake
      })
    },
    close() {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
    },
  }
}
