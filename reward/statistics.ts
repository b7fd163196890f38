// Mean, deviation and spread in Float64, exact where it matters: a constant list has deviation 0, whatever its value.

export type StdKind = 'sample' | 'population'

export interface Moments {
  n: number
  mean: number
  /** 0 for fewer than two values and for equal ones. */
  std: number
  /** Each value minus the mean, in order. */
  deviations: number[]
}

/** True where no two values differ (max == min, exactly); also for none and one. */
export function isConstant(values: readonly number[]): boolean {
  return values.every((value) => value === values[0])
}

/**
 * Mean, standard deviation (`sample` divides by n - 1, `population` by n) and deviations of finite values.
 * Sums run over values less the smallest, and squares over deviations less their scale: three times 0.7 must not
 * come out with a spread of 1e-16 that a later division blows up, and 1e-200 must not square to 0.
 */
export function moments(values: readonly number[], kind: StdKind): Moments {
  const n = values.length
  if (n === 0) return { n, mean: 0, std: 0, deviations: [] }
  const unit = unitOf(values)
  if (unit !== 1) return inUnits(moments(over(values, unit), kind), unit)
  if (isConstant(values)) return { n, mean: values[0]!, std: 0, deviations: values.map(() => 0) }
  const low = values.reduce((a, b) => Math.min(a, b))
  const shift = sum(values.map((value) => value - low)) / n
  const deviations = values.map((value) => value - low - shift)
  return { n, mean: low + shift, std: rootMeanSquare(deviations, divisor(n, kind)), deviations }
}

/** Beyond this a sum of a few values, or the distance of two, may leave the doubles. */
const HUGE = 1e300

/** A power of two that huge values are to be divided by before anything is summed; 1, and exactly 1, for all others. */
export function unitOf(values: readonly number[]): number {
  const largest = values.reduce((a, b) => Math.max(a, Math.abs(b)), 0)
  return largest > HUGE && largest < Number.POSITIVE_INFINITY ? 2 ** 1023 : 1
}

/** The values in this unit. */
export function over(values: readonly number[], unit: number): readonly number[] {
  return unit === 1 ? values : values.map((value) => value / unit)
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

/** The value where it is finite (-0 as 0), else null: what may leave this room. */
export function finite(value: number | null): number | null {
  return value === null || !Number.isFinite(value) ? null : value + 0
}

function inUnits({ n, mean, std, deviations }: Moments, unit: number): Moments {
  return { n, mean: mean * unit, std: std * unit, deviations: deviations.map((d) => d * unit) }
}

function divisor(n: number, kind: StdKind): number {
  return kind === 'sample' ? n - 1 : n
}

function rootMeanSquare(deviations: readonly number[], by: number): number {
  const scale = deviations.reduce((a, b) => Math.max(a, Math.abs(b)), 0)
  if (scale === 0) return 0
  return scale * Math.sqrt(sum(deviations.map((value) => (value / scale) ** 2)) / by)
}
