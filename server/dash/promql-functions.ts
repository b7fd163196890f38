// rate, increase, changes and histogram_quantile as Prometheus computes them (promql/functions.go, promql/quantile.go).

/**
 * Growth of a counter in [at - seconds, at], as Prometheus 2 takes a window, resets counted, extrapolated to the ends of the window where the samples come
 * near to them; per second where `perSecond`. NaN with fewer than two samples.
 */
export function extrapolated(
  times: Float64Array,
  values: Float64Array,
  at: number,
  seconds: number,
  perSecond: boolean,
): number {
  const begin = at - seconds
  let first = -1
  let last = -1
  let count = 0
  let lost = 0
  for (let place = firstFrom(times, begin); place < times.length; place++) {
    if (times[place]! > at) break
    const value = values[place]!
    if (Number.isNaN(value)) continue
    if (last >= 0 && value < values[last]!) lost += values[last]!
    if (first < 0) first = place
    last = place
    count++
  }
  if (count < 2) return Number.NaN
  const grown = values[last]! - values[first]! + lost
  const sampled = times[last]! - times[first]!
  const mean = sampled / (count - 1)
  let before = times[first]! - begin
  let after = at - times[last]!
  // Samples that end well before the window's end: the series began or ended there, half a step away.
  if (before >= mean * 1.1) before = mean / 2
  // A counter was never below zero.
  if (grown > 0 && values[first]! >= 0)
    before = Math.min(before, sampled * (values[first]! / grown))
  if (after >= mean * 1.1) after = mean / 2
  const whole = grown * ((sampled + before + after) / sampled)
  return perSecond ? whole / seconds : whole
}

/** How often a value in [at - seconds, at] differs from the one before it there; NaN without any. */
export function changesIn(
  times: Float64Array,
  values: Float64Array,
  at: number,
  seconds: number,
): number {
  let before = Number.NaN
  let changes = Number.NaN
  for (let place = firstFrom(times, at - seconds); place < times.length; place++) {
    if (times[place]! > at) break
    const value = values[place]!
    if (Number.isNaN(value)) continue
    changes = Number.isNaN(changes) ? 0 : changes + (value === before ? 0 : 1)
    before = value
  }
  return changes
}

/** First place whose time is not before `moment`. */
function firstFrom(times: Float64Array, moment: number): number {
  let low = 0
  let high = times.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (times[middle]! >= moment) high = middle
    else low = middle + 1
  }
  return low
}

/** `buckets` are cumulative, by rising `le`, the last of them +Inf. NaN where nothing was observed. */
export function quantileOf(q: number, buckets: readonly { le: number; count: number }[]): number {
  const total = buckets.at(-1)?.count ?? Number.NaN
  if (buckets.length < 2 || buckets.at(-1)?.le !== Infinity || !(total > 0)) return Number.NaN
  const rank = q * total
  const place = buckets.findIndex(({ count }) => count >= rank)
  // In the last bucket all that is known is where it begins.
  if (place === buckets.length - 1) return buckets[place - 1]!.le
  const { le, count } = buckets[place]!
  if (place === 0 && le <= 0) return le
  const start = place === 0 ? 0 : buckets[place - 1]!.le
  const below = place === 0 ? 0 : buckets[place - 1]!.count
  return start + (le - start) * ((rank - below) / (count - below))
}
