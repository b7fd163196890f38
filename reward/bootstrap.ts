// How sure a mean over tasks is: standard errors clustered by task, and percentile intervals of tasks drawn anew by seeded dice.
import { moments } from './statistics.ts'

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

/** Of each key; null where the tasks tell nothing of it. */
export interface Uncertainty<Key extends string> {
  standard_errors: Record<Key, number | null>
  /** `[low, high]`. */
  intervals: Record<Key, [number, number] | null>
}

/**
 * Of the mean of each key over all tasks; `families` hold one record a task, none of them is empty. Episodes of a task
 * hang together, so what counts is how tasks differ. The standard error is that of a stratified mean, sqrt(Σ n s²) / N;
 * the interval Efron's percentile one, tasks resampled with replacement. Both within families, or over all tasks where a
 * family has only one and so no spread of its own. Null for one task, and where no two of a family differ.
 */
export function uncertainty<Key extends string>(
  families: readonly (readonly Readonly<Record<Key, number>>[])[],
  { random, resamples = DEFAULT_RESAMPLES, level = DEFAULT_LEVEL }: BootstrapSettings,
): Uncertainty<Key> {
  const strata = families.every((tasks) => tasks.length > 1) ? families : [families.flat()]
  const draws = Array.from({ length: resamples }, () =>
    means(strata.flatMap((tasks) => tasks.map(() => drawn(tasks, random)))),
  )
  const interval = (key: Key): [number, number] => {
    const sorted = draws.map((draw) => draw[key]).sort((a, b) => a - b)
    return [quantile(sorted, (1 - level) / 2), quantile(sorted, (1 + level) / 2)]
  }
  const keys = Object.keys(families[0]?.[0] ?? {}) as Key[]
  const errors = keys.map((key) => [key, standardError(strata, key)] as const)
  return {
    standard_errors: Object.fromEntries(errors) as Record<Key, number | null>,
    intervals: Object.fromEntries(
      errors.map(([key, error]) => [key, error === null ? null : interval(key)]),
    ) as Record<Key, [number, number] | null>,
  }
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

function standardError<Key extends string>(
  strata: readonly (readonly Readonly<Record<Key, number>>[])[],
  key: Key,
): number | null {
  const spread = strata.reduce((total, tasks) => {
    const values = tasks.map((task) => task[key])
    return values.length < 2 ? total : total + values.length * moments(values, 'sample').std ** 2
  }, 0)
  return spread === 0 ? null : Math.sqrt(spread) / strata.flat().length
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
