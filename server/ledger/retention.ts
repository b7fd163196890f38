// Groups that have left stay readable for a while: the newest of them, up to so many bytes.

/** A group that has left, with the episodes that were sealed for it. */
export interface Gone {
  batch: string
  group: string
  episodes: string[]
  bytes: number
}

export interface Retention {
  /** Takes a group in, under a number of its own. */
  add(number: number, gone: Gone): void
  /** The oldest that are too many, which are forgotten here. */
  takeExpired(): { number: number; gone: Gone }[]
  /** Number of the next. */
  next(): number
  bytes(): number
}

export function createRetention(keepBytes: number): Retention {
  const kept = new Map<number, Gone>()
  let bytes = 0
  let next = 0

  return {
    add(number, gone) {
      kept.set(number, gone)
      bytes += gone.bytes
      next = Math.max(next, number + 1)
    },
    takeExpired() {
      const expired: { number: number; gone: Gone }[] = []
      for (const [number, gone] of kept) {
        if (bytes <= keepBytes) break
        kept.delete(number)
        bytes -= gone.bytes
        expired.push({ number, gone })
      }
      return expired
    },
    next: () => next++,
    bytes: () => bytes,
  }
}
