// How often a task is solved at least once in k tries, and how often every time: estimates with their uncertainty.
import { type BootstrapSettings, means, type Uncertainty, uncertainty } from './bootstrap.ts'

/** A trial passes at this reward or above unless said otherwise. */
export const PASS_THRESHOLD = 0.75

/** All trials of one task. A null reward is a trial that was not scored: it counts for nothing, least of all as failed. */
export interface TaskTrials {
  task: string
  /** Tasks are averaged within their family first; the overall rate weighs families by their tasks. */
  family: string
  rewards: readonly (number | null)[]
}

export interface PassSettings {
  k: number
  /** Default PASS_THRESHOLD. */
  threshold?: number
  /** Draws confidence intervals. */
  bootstrap?: BootstrapSettings
}

/** Shares in 0 to 1. Three numbers go by the name pass^k, and they differ: none stands here without its own name. */
export type PassRates = {
  /** At least one of k trials passes, unbiased: 1 - C(n - c, k) / C(n, k). */
  pass_at_k: number
  /** Every scored trial of the task passed, however many there are. */
  all_passed: number
  /** (c / n)^k: k independent trials at the observed rate; biased upward. */
  power: number
  /** All of k trials drawn without putting back pass: C(c, k) / C(n, k). */
  unbiased: number
}

interface PassSummary {
  /** Tasks in the rates. */
  tasks: number
  /** Tasks with fewer than k scored trials: outside the rates. */
  short: number
  scored: number
  unscored: number
  /** Null where no task has enough trials. */
  rates: PassRates | null
}

/** How sure each overall rate is, where asked for and there is a rate. */
type Sureness = {
  [Part in keyof Uncertainty<keyof PassRates>]: Uncertainty<keyof PassRates>[Part] | null
}

export interface PassReport extends PassSummary, Sureness {
  k: number
  threshold: number
  families: (PassSummary & { family: string })[]
}

/** pass@k of one task: `passed` of `n` trials. Null for fewer than k trials. Source: Chen et al., arXiv:2107.03374. */
export function passAtK(n: number, passed: number, k: number): number | null {
  if (n < k) return null
  return 1 - allOf(n, n - passed, k)
}

/** The three numbers called pass^k, for one task. Null for fewer than k trials. `unbiased`: tau-bench, arXiv:2406.12045. */
export function passHatK(
  n: number,
  passed: number,
  k: number,
): Omit<PassRates, 'pass_at_k'> | null {
  if (n < k || n === 0) return null
  return {
    all_passed: passed === n ? 1 : 0,
    power: (passed / n) ** k,
    unbiased: allOf(n, passed, k),
  }
}

/** All rates of one task: `passed` of `n` trials. Null for fewer than k trials. */
export function ratesOf(n: number, passed: number, k: number): PassRates | null {
  const pass_at_k = passAtK(n, passed, k)
  const hat = passHatK(n, passed, k)
  return pass_at_k === null || hat === null ? null : { pass_at_k, ...hat }
}

/**
 * Rates per family and overall. A family's rate is the mean over its tasks; the overall rate weighs families by their
 * tasks. Throws RangeError for a k below 1.
 */
export function passReport(tasks: readonly TaskTrials[], settings: PassSettings): PassReport {
  const { k, threshold = PASS_THRESHOLD, bootstrap } = settings
  if (!Number.isInteger(k) || k < 1) throw new RangeError(`k: expected an integer from 1, got ${k}`)
  const names = [...new Set(tasks.map((task) => task.family))]
  const rated = names.map((family) => {
    const members = tasks.filter((task) => task.family === family)
    return { family, ...summarise(members, k, threshold) }
  })
  const overall = summarise(tasks, k, threshold)
  const byFamily = rated.map((family) => family.taskRates).filter((rates) => rates.length > 0)
  return {
    k,
    threshold,
    ...published(overall),
    families: rated.map((family) => ({ family: family.family, ...published(family) })),
    ...(bootstrap && byFamily.length > 0
      ? uncertainty(byFamily, bootstrap)
      : { standard_errors: null, intervals: null }),
  }
}

/** C(of, k) / C(n, k): the chance that k drawn of n all are among `of`. */
function allOf(n: number, of: number, k: number): number {
  let chance = 1
  for (let draw = 0; draw < k; draw++) chance *= Math.max(of - draw, 0) / (n - draw)
  return chance
}

type Summarised = PassSummary & { taskRates: PassRates[] }

function summarise(tasks: readonly TaskTrials[], k: number, threshold: number): Summarised {
  const scored = tasks.map(({ rewards }) => rewards.filter((reward) => reward !== null))
  const taskRates = scored.flatMap((rewards) => {
    const passed = rewards.filter((reward) => reward >= threshold).length
    return ratesOf(rewards.length, passed, k) ?? []
  })
  const trials = tasks.reduce((total, { rewards }) => total + rewards.length, 0)
  const known = scored.reduce((total, rewards) => total + rewards.length, 0)
  return {
    tasks: taskRates.length,
    short: tasks.length - taskRates.length,
    scored: known,
    unscored: trials - known,
    rates: taskRates.length === 0 ? null : means(taskRates),
    taskRates,
  }
}

function published({ taskRates: _, ...summary }: Summarised): PassSummary {
  const { tasks, short, scored, unscored, rates } = summary
  return { tasks, short, scored, unscored, rates }
}
