// Something may have changed: whoever waits looks again.

export interface Signal {
  /** Resolves at the next `fire`. */
  wait(): Promise<void>
  fire(): void
}

export function createSignal(): Signal {
  let waiting: (() => void)[] = []
  return {
    wait: () => new Promise((resolve) => waiting.push(resolve)),
    fire() {
      const woken = waiting
      waiting = []
      for (const resolve of woken) resolve()
    },
  }
}
