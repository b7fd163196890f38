// Batch whitening: advantages of all groups against their common mean and deviation, by sample or by token.
import { isConstant, moments, over, sum, unitOf } from '../statistics.ts'
import type { Division } from './settings.ts'
import { divide } from './standardise.ts'

export interface Whitening extends Division {
  level: 'sample' | 'token' | 'none'
}

export interface Whitened {
  values: number[]
  mean: number
  std: number
}

/** A deviation below this share of the largest value (or of 1) is rounding, and rounding must not be scaled up. */
const NOISE = 1e-12

/** verl adds this to the token count that divides mean and variance (torch_functional.py, masked_mean). */
const TOKEN_COUNT_EPSILON = 1e-8

/**
 * `(value - mean) / (std + epsilon)` over all values. At token level each value weighs `tokens[i]` and the Bessel
 * factor counts tokens. Values that do not differ beyond rounding all become exactly 0. With `centred` false the mean
 * is not subtracted.
 */
export function whiten(
  values: readonly number[],
  tokens: readonly number[],
  settings: Whitening,
  centred = true,
): Whitened {
  if (settings.level === 'none' || values.length === 0)
    return { values: [...values], mean: 0, std: 1 }
  const unit = unitOf(values)
  const scaled = over(values, unit)
  const { mean, std } =
    settings.level === 'token'
      ? tokenMoments(scaled, tokens, settings)
      : sampleMoments(scaled, settings)
  const figures = { mean: mean * unit, std: std * unit }
  const noise = NOISE * scaled.reduce((a, b) => Math.max(a, Math.abs(b)), 1 / unit)
  if (std <= noise && settings.std !== 'none')
    return { ...figures, values: values.map(() => 0), std: 0 }
  const shift = centred && Math.abs(mean) > noise ? mean : 0
  return { ...figures, values: scaled.map((value) => divide(value - shift, std, settings, unit)) }
}

function sampleMoments(values: readonly number[], { std }: Division) {
  return moments(values, std === 'population' ? 'population' : 'sample')
}

function tokenMoments(values: readonly number[], tokens: readonly number[], { std }: Division) {
  const count = sum(tokens)
  const by = count + TOKEN_COUNT_EPSILON
  const mean = sum(values.map((value, index) => value * tokens[index]!)) / by
  const voting = values.filter((_, index) => tokens[index]! > 0)
  if (count < 2 || isConstant(voting)) return { mean: voting[0] ?? 0, std: 0 }
  const variance = sum(values.map((value, index) => tokens[index]! * (value - mean) ** 2)) / by
  const bessel = std === 'population' ? 1 : count / (count - 1)
  return { mean, std: Math.sqrt(variance * bessel) }
}
