// The newest samples of the series that the dashboard asks for, in memory: what it draws where no Prometheus is at hand.
import type { Labels, SampledSeries } from './evaluate.ts'

export interface Sample {
  name: string
  labels: Labels
  value: number
}

export interface Ring {
  /** Takes what is read at one moment, seconds; the oldest moment goes. */
  add(at: number, samples: readonly Sample[]): void
  named(name: string): SampledSeries[]
  /** Series that found no room. */
  left(): number
}

interface Kept {
  name: string
  labels: Labels
  values: Float64Array
}

/** Keeps `moments` samples of each of at most `maxSeries` series: 8 bytes each. */
export function createRing(moments: number, maxSeries: number): Ring {
  const times = new Float64Array(moments)
  const kept = new Map<string, Kept>()
  const left = new Set<string>()
  /** How many moments were taken; the newest is at (taken - 1) % moments. */
  let taken = 0

  return {
    add(at, samples) {
      const place = taken++ % moments
      times[place] = at
      for (const { values } of kept.values()) values[place] = Number.NaN
      for (const { name, labels, value } of samples) {
        const key = `${name}${JSON.stringify(labels)}`
        let series = kept.get(key)
        if (!series && kept.size < maxSeries) {
          series = { name, labels, values: new Float64Array(moments).fill(Number.NaN) }
          kept.set(key, series)
        }
        if (series) series.values[place] = value
        else if (left.size < maxSeries) left.add(key)
      }
    },
    named(name) {
      const inOrder = unrolled(times, taken)
      return [...kept.values()]
        .filter((series) => series.name === name)
        .map(({ labels, values }) => ({
          labels,
          times: inOrder,
          values: unrolled(values, taken),
        }))
    },
    left: () => left.size,
  }
}

/** The filled part, oldest first. */
function unrolled(values: Float64Array, taken: number): Float64Array {
  if (taken <= values.length) return values.subarray(0, taken)
  const start = taken % values.length
  const inOrder = new Float64Array(values.length)
  inOrder.set(values.subarray(start))
  inOrder.set(values.subarray(0, start), values.length - start)
  return inOrder
}
