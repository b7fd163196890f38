// How long a simulated policy takes for a turn: drawn by the turn's own dice, in milliseconds.
import { draw } from './policy/seeded.ts'

export type Latency =
  | { kind: 'fixed'; ms: number }
  | { kind: 'lognormal'; medianMs: number; sigma: number }

/** Reads `0`, `fixed:50` or `lognormal:200,0.5` (median in ms, sigma of the logarithm). */
export function parseLatency(text: string): Latency {
  if (text === '0') return { kind: 'fixed', ms: 0 }
  // Another bare number could be meant as seconds.
  const [, fixed] = /^fixed:(\d+(?:\.\d+)?)$/.exec(text) ?? []
  if (fixed !== undefined) return { kind: 'fixed', ms: Number(fixed) }
  const [, median, sigma] = /^lognormal:(\d+(?:\.\d+)?),(\d+(?:\.\d+)?)$/.exec(text) ?? []
  if (median === undefined || sigma === undefined)
    throw new Error(`latency "${text}": expected 0, fixed:MS or lognormal:MEDIAN_MS,SIGMA`)
  return { kind: 'lognormal', medianMs: Number(median), sigma: Number(sigma) }
}

/** Milliseconds for the turn that `seed` stands for. */
export function latencyMs(latency: Latency, seed: string): number {
  if (latency.kind === 'fixed') return latency.ms
  // Box and Muller: two uniform draws make a normal one. 1 - u is never 0.
  const radius = Math.sqrt(-2 * Math.log(1 - draw(seed, 'latency')))
  const normal = radius * Math.cos(2 * Math.PI * draw(seed, 'latency-angle'))
  return latency.medianMs * Math.exp(latency.sigma * normal)
}
