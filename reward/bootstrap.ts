// How sure a mean over tasks is: percentile intervals, tasks drawn anew within their families by seeded dice.

export interface BootstrapSettings {
  /** Numbers in [0, 1). */
  random: () => number
  /** Default 1000. */
  resamples?: number
  /** Default 0.95. */
  level?: number
}

const DEFAULT_RESAMPLES = 1000
const DEFAULT_LEVEL = 0.95

/**
 * `[low, high]` of the mean of each key over all tasks: Efron's percentile interval, tasks resampled with replacement
 * within their family. `families` hold one record a task; none of them is empty.
 */
export function bootstrapIntervals<Key extends string>(
  families: readonly (readonly Readonly<Record<Key, number>>[])[],
  { random, resamples = DEFAULT_RESAMPLES, level = DEFAULT_LEVEL }: BootstrapSettings,
): Record<Key, [number, number]> {
  const draws = Array.from({ length: resamples }, () =>
    means(families.flatMap((tasks) => tasks.map(() => drawn(tasks, random)))),
  )
  const keys = Object.keys(families[0]?.[0] ?? {}) as Key[]
  const interval = (key: Key): [number, number] => {
    const sorted = draws.map((draw) => draw[key]).sort((a, b) => a - b)
    return [quantile(sorted, (1 - level) / 2), quantile(sorted, (1 + level) / 2)]
  }
  return Object.fromEntries(keys.map((key) => [key, interval(key)])) as Record<
    Key,
    [number, number]
  >
}

/** The mean of each key. There is at least one task. */
export function means<Key extends string>(
  tasks: readonly Readonly<Record<Key, number>>[],
): Record<Key, number> {
  const keys = Object.keys(tasks[0] ?? {}) as Key[]
  const mean = (key: Key) => tasks.reduce((total, task) => total + task[key], 0) / tasks.length
  return Object.fromEntries(keys.map((key) => [key, mean(key)])) as Record<Key, number>
}

/** Numbers in [0, 1) that follow from the seed alone: mulberry32 (T. Ettinger), whose period is 2^32. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let bits = Math.imul(state ^ (state >>> 15), state | 1)
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32
  }
}

function drawn<Task>(tasks: readonly Task[], random: () => number): Task {
  return tasks[Math.floor(random() * tasks.length)]!
}

/** Linear interpolation between the two nearest of the sorted values. */
function quantile(sorted: readonly number[], share: number): number {
  const place = share * (sorted.length - 1)
  const low = Math.floor(place)
  const high = Math.ceil(place)
  return sorted[low]! + (place - low) * (sorted[high]! - sorted[low]!)
}
