// What an evaluation came to: how often tasks are solved, what they earn, and what was never scored, apart.
import { z } from 'zod'
import { type EpisodeOutcome, isScored } from '../protocol/outcomes.ts'
import { type BootstrapSettings, means, seededRandom, uncertainty } from './bootstrap.ts'
import { PASS_THRESHOLD, type PassReport, passReport } from './pass-at-k.ts'
import { moments } from './statistics.ts'

export const evaluationSettingsSchema = z.strictObject({
  /** Each k has its own rates. Default: 1 and the group size. */
  k: z.array(z.int().min(1).max(1024)).min(1).max(16),
  /** A reward from which on a trial passes. */
  threshold: z.number().default(PASS_THRESHOLD),
  /** Of the dice of the intervals: the same seed draws the same. */
  seed: z.int().min(0).default(0),
  resamples: z.int().min(100).max(10_000).default(1000),
  level: z.number().gt(0).lt(1).default(0.95),
})
export type EvaluationSettings = z.output<typeof evaluationSettingsSchema>

/** All episodes of one task. `reward` is a number exactly where the outcome is scored. */
export interface EvaluatedTask {
  task: string
  family: string
  episodes: readonly { outcome: EpisodeOutcome; reward: number | null }[]
}

/** What one task came to. */
interface TaskResult {
  task: string
  family: string
  episodes: number
  scored: number
  /** Scored episodes from the threshold on. */
  passed: number
  /** Of the reward over scored episodes; null where there are none. */
  mean: number | null
}

interface MeanReward {
  /** Tasks with at least one scored episode. */
  tasks: number
  /** Mean over these tasks of the mean over their scored episodes; null where there are none. */
  mean: number | null
}

export interface EvaluationReport {
  settings: EvaluationSettings
  episodes: number
  scored: number
  /** Scored episodes that a limit of length or turns ended. */
  truncated: number
  /** Episodes without a reward, by outcome: in no mean and in no rate. */
  unscored: Partial<Record<EpisodeOutcome, number>>
  /** Over scored episodes, one each, as a batch's progress has it; null where there are none. */
  mean_reward: number | null
  /** Over tasks. Families weigh by their tasks. */
  reward: MeanReward & {
    /** Clustered by task; null, as the interval, for one task and where no two of a family differ. */
    standard_error: number | null
    interval: [number, number] | null
    families: (MeanReward & { family: string })[]
  }
  pass: PassReport[]
  tasks: TaskResult[]
}

/** One report over tasks in any order; the same task may come more than once (with several seeds) and is then one. */
export function evaluationReport(
  groups: readonly EvaluatedTask[],
  settings: EvaluationSettings,
): EvaluationReport {
  const tasks = merged(groups)
  const episodes = tasks.flatMap((task) => task.episodes)
  const unscored: EvaluationReport['unscored'] = {}
  for (const { outcome } of episodes)
    if (!isScored(outcome)) unscored[outcome] = (unscored[outcome] ?? 0) + 1
  const { k: ks, threshold, seed, resamples, level } = settings
  const bootstrap = () => ({ random: seededRandom(seed), resamples, level })
  const trials = tasks.map(({ task, family, episodes }) => ({
    task,
    family,
    rewards: episodes.map(({ reward }) => reward),
  }))
  return {
    settings,
    episodes: episodes.length,
    scored: episodes.filter(({ outcome }) => isScored(outcome)).length,
    truncated: episodes.filter(({ outcome }) => outcome === 'ok_truncated').length,
    unscored,
    mean_reward: meanOf(episodes),
    reward: meanReward(tasks, bootstrap()),
    pass: ks.map((k) => passReport(trials, { k, threshold, bootstrap: bootstrap() })),
    tasks: tasks.map((task) => taskResult(task, threshold)),
  }
}

function merged(groups: readonly EvaluatedTask[]): EvaluatedTask[] {
  const tasks = new Map<string, EvaluatedTask>()
  for (const group of groups) {
    const known = tasks.get(group.task)
    const episodes = [...(known?.episodes ?? []), ...group.episodes]
    tasks.set(group.task, { ...group, episodes })
  }
  return [...tasks.values()]
}

function taskResult({ task, family, episodes }: EvaluatedTask, threshold: number): TaskResult {
  return {
    task,
    family,
    episodes: episodes.length,
    scored: episodes.filter(({ outcome }) => isScored(outcome)).length,
    passed: episodes.filter(({ reward }) => reward !== null && reward >= threshold).length,
    mean: meanOf(episodes),
  }
}

function meanReward(
  tasks: readonly EvaluatedTask[],
  bootstrap: BootstrapSettings,
): EvaluationReport['reward'] {
  const families = [...new Set(tasks.map(({ family }) => family))].map((family) => ({
    family,
    means: tasks.filter((task) => task.family === family).flatMap(taskMean),
  }))
  const rated = families.map((family) => family.means).filter((own) => own.length > 0)
  const sure = rated.length === 0 ? null : uncertainty(rated, bootstrap)
  return {
    ...overTasks(rated.flat()),
    standard_error: sure?.standard_errors.reward ?? null,
    interval: sure?.intervals.reward ?? null,
    families: families.map(({ family, means }) => ({ family, ...overTasks(means) })),
  }
}

function taskMean({ episodes }: EvaluatedTask): { reward: number }[] {
  const reward = meanOf(episodes)
  return reward === null ? [] : [{ reward }]
}

function meanOf(episodes: EvaluatedTask['episodes']): number | null {
  const rewards = episodes.flatMap(({ reward }) => (reward === null ? [] : [reward]))
  return rewards.length === 0 ? null : moments(rewards, 'population').mean
}

function overTasks(tasks: readonly { reward: number }[]): MeanReward {
  return { tasks: tasks.length, mean: tasks.length === 0 ? null : means(tasks).reward }
}
