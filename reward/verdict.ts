// One verdict for a finished group: do its rewards carry a signal, or what failed.
import type { RewardContract } from '../protocol/contract.ts'
import { PaddockError } from '../protocol/errors.ts'
import type { ComponentStats, GroupStats } from '../protocol/group.ts'
import {
  EPISODE_OUTCOMES,
  type EpisodeOutcome,
  type GroupVerdict,
  isScored,
  type Level,
} from '../protocol/outcomes.ts'
import { scalarRange } from './contract.ts'
import { isConstant, moments } from './statistics.ts'

export interface JudgedEpisode {
  outcome: EpisodeOutcome
  reward: number | null
  rewards: Record<string, number | null> | null
  /** Equal for equal completions; counts distinct answers of the policy. */
  distinctKey: string
}

export interface JudgedGroup {
  groupSize: number
  /** Scored episodes that a full verdict needs, 1 to the group size. */
  minScored: number
  acceptPartial: boolean
  contract: RewardContract
  /** `gdpo` is judged on components, every other on the scalar reward. */
  estimator: string
  episodes: readonly JudgedEpisode[]
}

export interface Judgement {
  verdict: GroupVerdict
  level: Level | null
  stats: GroupStats
}

type ScoredEpisode = JudgedEpisode & { reward: number }

/**
 * Judges a group. Enough scored episodes: `valid` where rewards differ (exactly: max > min), else `zero_variance` with
 * a level. Fewer: `partial` with at least two where that is accepted, else the failure that comes first in
 * EPISODE_OUTCOMES; an episode that was never played counts as aborted.
 *
 * `stats.n` is the group size; `shared_anchor_share` is for the estimator to say; mean and population std are of scored rewards, null where there are none.
 * Throws `internal` for an episode with an outcome and a reward that contradict each other.
 */
export function groupVerdict(group: JudgedGroup): Judgement {
  group.episodes.forEach(checkLaw)
  const scored = group.episodes.filter((episode): episode is ScoredEpisode =>
    isScored(episode.outcome),
  )
  const stats = groupStats(group.groupSize, scored, group.contract.components)
  if (scored.length >= Math.max(1, group.minScored)) {
    if (differs(group, scored)) return { verdict: 'valid', level: null, stats }
    return { verdict: 'zero_variance', level: levelOf(group.contract, scored), stats }
  }
  if (scored.length >= 2 && group.acceptPartial) return { verdict: 'partial', level: null, stats }
  return { verdict: dominatingFailure(group.episodes), level: null, stats }
}

/** A reward is a number exactly when the outcome is scored; all that follows rests on it. */
function checkLaw({ outcome, reward }: JudgedEpisode, index: number): void {
  if (isScored(outcome) ? Number.isFinite(reward) : reward === null) return
  const wanted = isScored(outcome) ? 'a finite reward' : 'reward null'
  throw new PaddockError('internal', `outcome ${outcome} wants ${wanted}, got ${reward}`, {
    path: `episodes[${index}].reward`,
  })
}

function groupStats(
  groupSize: number,
  scored: readonly ScoredEpisode[],
  components: readonly string[],
): GroupStats {
  const rewards = scored.map((episode) => episode.reward)
  const { mean, std } = moments(rewards, 'population')
  const none = rewards.length === 0
  return {
    n: groupSize,
    scored: scored.length,
    mean: none ? null : mean,
    std: none ? null : std,
    distinct: new Set(scored.map((episode) => episode.distinctKey)).size,
    components: Object.fromEntries(
      components.map((name) => [name, componentStats(componentVotes(scored, name))]),
    ),
    shared_anchor_share: null,
  }
}

function differs({ contract, estimator }: JudgedGroup, scored: readonly ScoredEpisode[]): boolean {
  if (estimator !== 'gdpo') return !isConstant(scored.map((episode) => episode.reward))
  return contract.components.some((name) => !isConstant(componentVotes(scored, name)))
}

/** Values of the episodes that have the component. */
function componentVotes(scored: readonly ScoredEpisode[], name: string): number[] {
  return scored.flatMap((episode) => episode.rewards?.[name] ?? [])
}

function componentStats(values: readonly number[]): ComponentStats {
  const { mean, std } = moments(values, 'population')
  const none = values.length === 0
  return { mean: none ? null : mean, std: none ? null : std, flat: isConstant(values) }
}

/** `floor` or `ceiling` where every reward is at that bound of the scalar; `mid` between, or where no bound is declared. */
function levelOf(contract: RewardContract, scored: readonly ScoredEpisode[]): Level {
  const { min, max } = scalarRange(contract)
  const rewards = scored.map((episode) => episode.reward)
  if (min !== undefined && rewards.every((reward) => reward <= min)) return 'floor'
  if (max !== undefined && rewards.every((reward) => reward >= max)) return 'ceiling'
  return 'mid'
}

function dominatingFailure(episodes: readonly JudgedEpisode[]): GroupVerdict {
  const outcomes = new Set(episodes.map((episode) => episode.outcome))
  const first = EPISODE_OUTCOMES.find((outcome) => !isScored(outcome) && outcomes.has(outcome))
  if (first === undefined) return 'aborted'
  return first.startsWith('infra_') ? 'infra' : (first as GroupVerdict)
}
