// The pace of a streamed reply: when its pieces came, and that they come in time.

/** Milliseconds; Infinity for no limit. */
export interface PaceLimits {
  /** From the request until the first piece of the body. */
  firstTokenMs: number
  /** Between two pieces. */
  gapMs: number
}

/** A streamed reply that was too slow; `limit` says by which of the two. */
export class TooSlow extends Error {
  readonly limit: keyof PaceLimits

  constructor(limit: keyof PaceLimits) {
    super('the stream is no longer waited for')
    this.name = 'TooSlow'
    this.limit = limit
  }
}

export interface Stopwatch {
  /** Starts the time; calls back once where a limit is passed. */
  start(onLate: (error: TooSlow) => void): void
  piece(): void
  stop(): void
  /** Milliseconds until the first piece and, on average, between two; null where there are too few. */
  firstTokenMs(): number | null
  gapMs(): number | null
}

/** One timer, whatever the number of pieces: it looks when the last one came. */
export function createStopwatch(limits: PaceLimits): Stopwatch {
  let startedAt = 0
  let firstAt: number | null = null
  let lastAt = 0
  let pieces = 0
  let timer: NodeJS.Timeout | null = null

  function look(onLate: (error: TooSlow) => void): void {
    const limit = firstAt === null ? 'firstTokenMs' : 'gapMs'
    const left = lastAt + limits[limit] - performance.now()
    // A first piece may come at any time, and the gap's limit begins with it.
    const next = Math.min(left, limits.gapMs)
    if (left <= 0) onLate(new TooSlow(limit))
    else if (next < Infinity) timer = setTimeout(() => look(onLate), Math.ceil(next)).unref()
  }

  return {
    start(onLate) {
      startedAt = performance.now()
      lastAt = startedAt
      look(onLate)
    },
    piece() {
      lastAt = performance.now()
      firstAt ??= lastAt
      pieces++
    },
    stop() {
      if (timer) clearTimeout(timer)
    },
    firstTokenMs: () => firstAt && firstAt - startedAt,
    gapMs: () => (firstAt !== null && pieces > 1 ? (lastAt - firstAt) / (pieces - 1) : null),
  }
}
