// What an advantage estimator is: groups of scores in, one advantage per member (and per step) out, in Float64.
import type { ZodType } from 'zod'
import type { LossNormalizer } from '../protocol/group.ts'

/** One scored step (turn) of a member: its reward and the anchor of the state in which it was taken. */
export interface StepScore {
  reward: number
  anchor: string | null
  /** False for an action that the environment could not read; matters where a penalty is set. Default true. */
  valid?: boolean
  /** Place among all steps of the call, for grouping that depends on order. Default: member by member. */
  row?: number
}

/** One episode of a group. `reward` null means not a member of any mean: excluded, never zero. */
export interface MemberScore {
  id: string
  reward: number | null
  /** Why there is no reward. */
  reason: string | null
  components: Record<string, number | null>
  /** Sampled tokens, for estimators that weigh by length. */
  tokens: number
  /** In order. What of the member's reward the steps do not hold falls on the last step. */
  steps: StepScore[]
  /** Members of one rollout (rows cut from it) share a reward and vote once. Default: each is its own. */
  rollout?: string
  /** False for a member that was scored but must not vote unless settings say `vote: true`. Default true. */
  eligible?: boolean
}

export interface GroupScores {
  id: string
  members: MemberScore[]
}

export interface MemberAdvantage {
  /** Null for a member without reward; always finite otherwise. */
  advantage: number | null
  /** One per step where the estimator gives steps their own (GiGPO), else null: each step has the member's. */
  steps: (number | null)[] | null
  /** Why there is none, or why it is a bare zero (`singleton_group`). */
  reason: string | null
}

export interface GroupAdvantages {
  id: string
  members: MemberAdvantage[]
  explain: GroupFigures
}

/** What rewards are divided by once the baseline is taken off. */
export interface Divisor {
  /** Null where nothing divides, or where each member has a divisor of its own. */
  value: number | null
  /** In words: `sample std + 0.000001`. */
  name: string
}

export interface ComponentFigures {
  weight: number
  votes: number
  mean: number | null
  std: number | null
  divisor: Divisor
  /** True where no two votes differ: the component says nothing in this group. */
  flat: boolean
}

/** The figures behind a group's numbers. What an estimator does not compute is left out. */
export interface GroupFigures {
  /** How many values made the baseline. */
  votes: number
  /** Members outside all statistics. */
  excluded: { id: string; reason: string }[]
  mean: number | null
  std: number | null
  /** Within the group; what `batch` divides by comes after it. Left out where there is no such step. */
  divisor?: Divisor
  /** True where no vote differs from another in anything that the estimator reads. */
  zero_variance: boolean
  loss_normalizer: LossNormalizer
  /** Statistics over all groups of the call, where the estimator whitens or scales by them. */
  batch?: { mean: number | null; std: number | null }
  components?: Record<string, ComponentFigures>
  /** Weighted sums before whitening, by member. */
  pre_batch?: (number | null)[]
  /** Step groups by anchor: how many steps each holds. */
  anchors?: { anchor: string | null; steps: number }[]
  /** Share of voting steps whose anchor group holds more than one. */
  shared_anchor_share?: number
  /** Figures of each step, by member. */
  steps?: StepFigures[][]
  /** Discounted return of each step, by member. */
  step_returns?: (number | null)[][]
  /** Length shaping, apart from the reward as it was graded. */
  shaping?: { id: string; reward: number; length: number; penalty: number }[]
}

export interface StepFigures {
  episode_advantage: number | null
  step_advantage: number | null
  /** Index into `anchors`. */
  anchor_group: number
}

export interface Estimator<Settings = unknown> {
  /** Parses and completes settings; unknown keys are refused. */
  settings: ZodType<Settings>
  /**
   * Whether a group's numbers depend on the other groups of the call, so that a batch must be whole before the first
   * of them can be known. Default: never.
   */
  seesBatch?(settings: Settings): boolean
  /** True where the turns of an episode may have advantages of their own. */
  perTurn?: true
  /**
   * All groups of one call are seen together (GDPO whitens over them). Order of groups and members is kept.
   * Throws PaddockError `invalid_request` for scores that contradict themselves or a setting that says `error`.
   */
  advantages(groups: readonly GroupScores[], settings: Settings): GroupAdvantages[]
}
