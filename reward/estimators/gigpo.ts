// GiGPO: the episode's advantage in its group, plus each step's among the steps taken in the same state.
import { z } from 'zod'
import type {
  Estimator,
  GroupAdvantages,
  GroupFigures,
  GroupScores,
  MemberAdvantage,
  StepFigures,
} from '../estimator.ts'
import { finite } from '../statistics.ts'
import { type AnchorGroup, anchorGroups, anchorMatchSchema } from './anchor-groups.ts'
import { emitted, excludedAdvantage, excludedMembers, type Reading } from './members.ts'
import {
  divisionShape,
  eligibilityShape,
  lossNormalizerSchema,
  settingsSchema,
  singletonSchema,
} from './settings.ts'
import { type Standardisation, type Standardised, standardise } from './standardise.ts'
import { byMember, readSteps, type ScoredSteps, type StepRow, stepRows } from './step-returns.ts'

const shape = {
  ...eligibilityShape,
  ...divisionShape,
  gamma: z.number().min(0).max(1),
  /** omega: weight of the step term. */
  step_advantage_w: z.number(),
  /** `mean_norm` does not divide by deviations. */
  mode: z.enum(['mean_std_norm', 'mean_norm']),
  /** Who votes in the episode term: each trajectory once, or every row (verl-agent). */
  episode_statistics_unit: z.enum(['trajectory', 'rollout', 'step', 'row', 'sample']),
  episode_singleton: singletonSchema,
  step_singleton: singletonSchema,
  anchor_match: anchorMatchSchema,
  anchor_missing: z.enum(['error', 'own_group']),
  /**
   * What an action that could not be read costs. With rows voting it lowers the row's score and return before any
   * statistics (verl-agent); with trajectories voting it is a term of its own, subtracted from the step's advantage.
   */
  invalid_action_penalty: z.number().min(0),
  episode_reward: z.literal('undiscounted_sum_of_step_rewards'),
  loss_normalizer: lossNormalizerSchema,
}
const schema = z.strictObject(shape)
export type GigpoSettings = z.output<typeof schema>

const DEFAULTS = {
  missing: 'excluded',
  vote: false,
  std: 'sample',
  epsilon: 1e-6,
  epsilon_mode: 'added_to_std',
  gamma: 0.95,
  step_advantage_w: 1,
  mode: 'mean_std_norm',
  episode_statistics_unit: 'trajectory',
  episode_singleton: 'zero',
  step_singleton: 'zero',
  anchor_match: 'exact',
  anchor_missing: 'error',
  invalid_action_penalty: 0,
  episode_reward: 'undiscounted_sum_of_step_rewards',
  loss_normalizer: { kind: 'tokens_in_sample', value: null },
}

/**
 * `A(step) = (R - mean_G) / F + omega (R_t - mean_S) / F_S`: R the episode's reward among those of its group, R_t the
 * step's discounted return among the steps of its group with the same anchor; a step alone in its state adds 0.
 * `advantage` of a member is its episode term, `steps` are the whole.
 * Source: arXiv:2505.10978, eq. 3 to 8; preset `verl_agent` is the authors' code (gigpo/core_gigpo.py), where rows vote.
 */
export const gigpo: Estimator<GigpoSettings> = {
  settings: settingsSchema('gigpo', shape, DEFAULTS, {
    verl_agent: { episode_statistics_unit: 'step', episode_singleton: 'raw_reward' },
  }),
  perTurn: true,
  advantages: (groups, settings) => groups.map((group) => groupAdvantages(group, settings)),
}

function groupAdvantages(group: GroupScores, settings: GigpoSettings): GroupAdvantages {
  const readings = readSteps(group, settings)
  const rows = stepRows(group, readings, settings)
  const groups = anchorGroups(
    rows.map((row) => row.anchor),
    settings.anchor_match,
  )
  const episode = episodeTerm(group, readings, rows, settings)
  const step = stepTerm(group, rows, groups, settings)
  const values = rows.map((row, index) =>
    combine(episode.ofRow[index]!, step[index]!, row, settings),
  )
  const steps = byMember(group, rows, (_, index) => values[index]!)
  const members = readings.map((reading, member): MemberAdvantage => {
    if (reading.value === null) return excludedAdvantage(reading.reason, settings)
    const value = episode.ofMember[member]!
    return emitted(value, reasonOf(value, episode.result), steps[member]!)
  })
  const explain: GroupFigures = {
    votes: episode.result.values.length,
    excluded: excludedMembers(group, readings),
    mean: episode.result.mean,
    std: episode.result.std,
    divisor: episode.result.divisor,
    zero_variance: episode.result.constant && step.every((value) => value === 0),
    loss_normalizer: settings.loss_normalizer,
    ...anchorFigures(rows, groups),
    step_returns: byMember(group, rows, (row) => finite(row.return)),
    steps: stepFigures(group, rows, groups, episode.ofRow, step),
  }
  return { id: group.id, members, explain }
}

/** Where rows vote, a member without steps casts none. */
function reasonOf(value: number | null, result: Standardised): string | null {
  if (result.singleton) return 'singleton_group'
  return value === null ? 'no_steps' : null
}

interface EpisodeTerm {
  result: Standardised
  ofMember: (number | null)[]
  ofRow: (number | null)[]
}

function episodeTerm(
  group: GroupScores,
  readings: readonly Reading<ScoredSteps>[],
  rows: readonly StepRow[],
  settings: GigpoSettings,
): EpisodeTerm {
  const where = `the episodes of group "${group.id}"`
  if (rowsVote(settings)) {
    const scores = rows.map((row) => row.reward - penalty(row, settings))
    const result = term(scores, settings.episode_singleton, settings, where)
    return { result, ofMember: cleanRowOfEach(readings, rows, result.values), ofRow: result.values }
  }
  const voters = readings.flatMap(({ value }, member) =>
    value === null ? [] : [{ member, reward: value.reward }],
  )
  const scores = voters.map(({ reward }) => reward)
  const result = term(scores, settings.episode_singleton, settings, where)
  const ofMember: (number | null)[] = readings.map(() => null)
  voters.forEach(({ member }, vote) => {
    ofMember[member] = result.values[vote]!
  })
  return { result, ofMember, ofRow: rows.map((row) => ofMember[row.member]!) }
}

/** Rows of one member differ by penalties only: the value of its first row without one, else of its first. */
function cleanRowOfEach(
  readings: readonly Reading<ScoredSteps>[],
  rows: readonly StepRow[],
  values: readonly (number | null)[],
): (number | null)[] {
  const chosen = new Map<number, number>()
  rows.forEach(({ member, valid }, index) => {
    const known = chosen.get(member)
    if (known === undefined || (valid && !rows[known]!.valid)) chosen.set(member, index)
  })
  return readings.map((_, member) => {
    const index = chosen.get(member)
    return index === undefined ? null : values[index]!
  })
}

/** By row: its return among the returns of its anchor group. */
function stepTerm(
  group: GroupScores,
  rows: readonly StepRow[],
  groups: readonly AnchorGroup[],
  settings: GigpoSettings,
): (number | null)[] {
  const values: (number | null)[] = rows.map(() => null)
  const by = divisionOf(settings.step_singleton, settings)
  const where = `a state of group "${group.id}"`
  for (const { rows: members } of groups) {
    const returns = members.map((index) => {
      const row = rows[index]!
      return row.return - (rowsVote(settings) ? penalty(row, settings) : 0)
    })
    const result = standardise(returns, [], by, where)
    members.forEach((index, vote) => {
      values[index] = result.values[vote]!
    })
  }
  return values
}

function term(
  votes: readonly number[],
  singleton_group: GigpoSettings['episode_singleton'],
  settings: GigpoSettings,
  where: string,
): Standardised {
  return standardise(votes, [], divisionOf(singleton_group, settings), where)
}

/** Both terms divide alike, and differ in what a single vote is worth. */
function divisionOf(
  singleton_group: GigpoSettings['episode_singleton'],
  { mode, std, epsilon, epsilon_mode, variance_floor }: GigpoSettings,
): Standardisation {
  const fixed = { baseline: 'group_mean', std_scope: 'group', zero_std_group: 'divide' } as const
  const divisor = mode === 'mean_norm' ? 'none' : std
  return { ...fixed, std: divisor, epsilon, epsilon_mode, variance_floor, singleton_group }
}

function combine(
  episode: number | null,
  step: number | null,
  row: StepRow,
  settings: GigpoSettings,
): number | null {
  if (episode === null || step === null) return null
  const apart = rowsVote(settings) ? 0 : penalty(row, settings)
  return episode + settings.step_advantage_w * step - apart
}

function rowsVote({ episode_statistics_unit }: GigpoSettings): boolean {
  return episode_statistics_unit !== 'trajectory' && episode_statistics_unit !== 'rollout'
}

function penalty(row: StepRow, { invalid_action_penalty }: GigpoSettings): number {
  return row.valid ? 0 : invalid_action_penalty
}

function anchorFigures(rows: readonly StepRow[], groups: readonly AnchorGroup[]) {
  const shared = groups.filter((group) => group.rows.length > 1)
  const steps = shared.reduce((total, group) => total + group.rows.length, 0)
  return {
    anchors: groups.map(({ anchor, rows }) => ({ anchor, steps: rows.length })),
    shared_anchor_share: rows.length === 0 ? 0 : steps / rows.length,
  }
}

function stepFigures(
  group: GroupScores,
  rows: readonly StepRow[],
  groups: readonly AnchorGroup[],
  episode: readonly (number | null)[],
  step: readonly (number | null)[],
): StepFigures[][] {
  const groupOf = new Map(groups.flatMap((entry, index) => entry.rows.map((row) => [row, index])))
  return byMember(group, rows, (_, index) => ({
    episode_advantage: finite(episode[index]!),
    step_advantage: finite(step[index]!),
    anchor_group: groupOf.get(index)!,
  }))
}
