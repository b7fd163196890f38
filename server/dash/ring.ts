// The newest samples of the series that the dashboard asks for, in memory: what it draws where no Prometheus is at hand.
import type { Labels, SampledTable } from './evaluate.ts'

export interface Sample {
  name: string
  labels: Labels
  value: number
}

export interface Ring {
  /** Takes what is read at one moment, seconds; the oldest moment goes. */
  add(at: number, samples: readonly Sample[]): void
  /** A copy of all that is kept of this name, oldest first. */
  table(name: string): SampledTable
  /** Series that found no room. */
  left(): number
}

interface Kept {
  labels: Labels
  values: Float64Array
}

/** Keeps `moments` samples of each of at most `maxSeries` series: 8 bytes each. */
export function createRing(moments: number, maxSeries: number): Ring {
  const times = new Float64Array(moments)
  const kept = new Map<string, Kept>()
  const byName = new Map<string, Kept[]>()
  const left = new Set<string>()
  /** How many moments were taken; the newest is at (taken - 1) % moments. */
  let taken = 0

  function found(key: string, name: string, labels: Labels): Kept | null {
    const known = kept.get(key)
    if (known) return known
    if (kept.size >= maxSeries) {
      if (left.size < maxSeries) left.add(key)
      return null
    }
    const series = { labels, values: new Float64Array(moments).fill(Number.NaN) }
    kept.set(key, series)
    byName.set(name, [...(byName.get(name) ?? []), series])
    return series
  }

  return {
    add(at, samples) {
      const place = taken++ % moments
      times[place] = at
      for (const { values } of kept.values()) values[place] = Number.NaN
      for (const { name, labels, value } of samples) {
        const series = found(keyOf(name, labels), name, labels)
        if (series) series.values[place] = value
      }
    },
    table(name) {
      const series = byName.get(name) ?? []
      const length = Math.min(taken, moments)
      const packed = new Float64Array(series.length * length)
      for (const [place, { values }] of series.entries())
        unroll(values, taken, packed, place * length)
      const inOrder = new Float64Array(length)
      unroll(times, taken, inOrder, 0)
      return { labels: series.map(({ labels }) => labels), times: inOrder, values: packed }
    },
    left: () => left.size,
  }
}

/** Written out by hand: thousands a moment, on the thread that does all else. */
function keyOf(name: string, labels: Labels): string {
  let key = name
  for (const label in labels) key += `\n${label}\t${labels[label]}`
  return key
}

/** Writes the filled part, oldest first, to a place of another array. */
function unroll(values: Float64Array, taken: number, into: Float64Array, at: number): void {
  if (taken <= values.length) {
    into.set(values.subarray(0, taken), at)
    return
  }
  const start = taken % values.length
  into.set(values.subarray(start), at)
  into.set(values.subarray(0, start), at + values.length - start)
}
