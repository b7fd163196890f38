// What an advantage estimator is: groups of scores in, one advantage per member (and per step) out, in Float64.
import type { ZodType } from 'zod'

/** One scored step (turn) of a member: its reward and the anchor of the state in which it was taken. */
export interface StepScore {
  reward: number
  anchor: string | null
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
  steps: StepScore[]
}

export interface GroupScores {
  id: string
  members: MemberScore[]
}

export interface MemberAdvantage {
  /** Null for a member without reward. */
  advantage: number | null
  /** One per step where the estimator gives steps their own (GiGPO), else null: each step has the member's. */
  steps: (number | null)[] | null
  reason: string | null
}

export interface GroupAdvantages {
  id: string
  members: MemberAdvantage[]
  /** Figures that explain the numbers: mean, std, votes, flat components, anchor groups. */
  explain: Record<string, unknown>
}

export interface Estimator<Settings = unknown> {
  /** Parses and completes settings; unknown keys are refused. */
  settings: ZodType<Settings>
  /** All groups of one call are seen together (GDPO whitens over them). Order of groups and members is kept. */
  advantages(groups: readonly GroupScores[], settings: Settings): GroupAdvantages[]
}
