// The weight version over time, so that a completion under way at an update tells which version sampled which tokens.

/** Sampled tokens `[start, end)` of one version. */
export interface VersionSpan {
  version: string
  start: number
  end: number
}

export interface VersionHistory {
  current(): string
  update(version: string): void
  /** Spans over `count` tokens that were sampled evenly between two moments, in ms of `performance.now()`. */
  spans(from: number, to: number, count: number): VersionSpan[]
}

/** Updates kept: no completion lasts over more. */
const MAX_UPDATES = 1000

export function createVersionHistory(first: string, now = () => performance.now()): VersionHistory {
  const updates = [{ version: first, at: Number.NEGATIVE_INFINITY }]
  return {
    current: () => updates.at(-1)?.version ?? first,
    update(version) {
      updates.push({ version, at: now() })
      if (updates.length > MAX_UPDATES) updates.shift()
    },
    spans(from, to, count) {
      const seen = updates.filter(({ at }, index) => {
        const replaced = updates[index + 1]
        return (at <= from || at < to) && (replaced === undefined || replaced.at > from)
      })
      const starts = seen.map(({ at }) =>
        at <= from ? 0 : Math.floor(((at - from) / (to - from)) * count),
      )
      return seen
        .map(({ version }, index) => ({
          version,
          start: starts[index] ?? 0,
          end: starts[index + 1] ?? count,
        }))
        .filter(({ start, end }) => end > start)
    },
  }
}
