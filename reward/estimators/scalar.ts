// The pipeline of every estimator that reads one number per member: vote, centre, divide, perhaps over the batch.
import { PaddockError } from '../../protocol/errors.ts'
import type {
  Estimator,
  GroupAdvantages,
  GroupFigures,
  GroupScores,
  MemberScore,
} from '../estimator.ts'
import { overlongPenalty } from '../overlong.ts'
import { finite, moments, over, unitOf } from '../statistics.ts'
import { checkWeights, readWeightedSum } from './components.ts'
import {
  applyMissing,
  emitted,
  excludedAdvantage,
  excludedMembers,
  type Reading,
  readMember,
  voting,
} from './members.ts'
import { type ScalarOverrides, type ScalarSettings, scalarSettings } from './scalar-settings.ts'
import { divide, type Standardised, standardise } from './standardise.ts'
import { whiten } from './whiten.ts'

/** Scales whose figure is taken over all groups of a call. */
const BATCH_SCALES: ReadonlySet<ScalarSettings['scale']> = new Set([
  'batch_std',
  'batch_whiten',
  'batch_std_of_advantages',
])

/** An estimator of this pipeline: its name, where it departs from the common defaults, its presets and scales. */
export function scalarEstimator(
  name: string,
  defaults: ScalarOverrides,
  presets: Record<string, ScalarOverrides>,
  scales?: readonly ScalarSettings['scale'][],
): Estimator<ScalarSettings> {
  const settings = scalarSettings(name, defaults, presets, scales)
  return {
    settings,
    seesBatch: ({ scale }) => BATCH_SCALES.has(scale),
    advantages: scalarAdvantages,
  }
}

/** One vote: the rows that cast it, their common value and their tokens together. */
interface Unit {
  rows: number[]
  value: number
  tokens: number
}

interface Stage {
  group: GroupScores
  readings: Reading[]
  shaping: NonNullable<GroupFigures['shaping']>
  units: Unit[]
  result: Standardised
}

/**
 * Advantages of all groups of a call, in their order. A member without a usable reward is outside every statistic;
 * a group whose votes are equal gets exact zeros before whitening; what is not finite never leaves.
 */
function scalarAdvantages(
  groups: readonly GroupScores[],
  settings: ScalarSettings,
): GroupAdvantages[] {
  refuseSharedRollouts(groups)
  if (settings.weights) checkWeights(groups, settings.weights)
  const stages = groups.map((group) => stageOf(group, settings))
  const batch = scaleOverBatch(stages, settings)
  return stages.map((stage) => finish(stage, settings, batch))
}

function stageOf(group: GroupScores, settings: ScalarSettings): Stage {
  const shaping: Stage['shaping'] = []
  const read = group.members.map((member) => readScalar(member, settings, shaping))
  const readings = applyMissing(group, read, settings, (score) => score)
  const units = unitsOf(group, readings, settings)
  const { scale, singleton_group } = settings
  const result = standardise(
    units.map((unit) => unit.value),
    units.map((unit) => unit.tokens),
    {
      ...settings,
      std: scale === 'group_std' ? settings.std : 'none',
      singleton_group:
        singleton_group === 'raw_reward_before_whitening' ? 'raw_reward' : singleton_group,
    },
    `group "${group.id}"`,
  )
  if (scale === 'group_mean' && !result.singleton) divideByMean(result, settings)
  return { group, readings, shaping, units, result }
}

/** The number that stands for a member: its reward or weighted sum, less what its length costs. */
function readScalar(
  member: MemberScore,
  settings: ScalarSettings,
  shaping: Stage['shaping'],
): Reading {
  const read = readMember(member, settings)
  if (read.value === null) return read
  const { weights, component_missing, overlong_shaping } = settings
  const scored = weights ? readWeightedSum(member, weights, component_missing) : read
  if (scored.value === null || overlong_shaping === undefined) return scored
  const penalty = overlongPenalty(member.tokens, overlong_shaping)
  shaping.push({ id: member.id, reward: scored.value, length: member.tokens, penalty })
  return voting(scored.value + penalty)
}

/** Rows of one rollout become one vote; they must agree on the reward. */
function unitsOf(
  group: GroupScores,
  readings: readonly Reading[],
  { statistics_unit }: ScalarSettings,
): Unit[] {
  const once = statistics_unit === 'rollout' || statistics_unit === 'trajectory'
  const units = new Map<string | number, Unit>()
  group.members.forEach((member, row) => {
    const value = readings[row]!.value
    if (value === null) return
    const key = once ? (member.rollout ?? row) : row
    const unit = units.get(key)
    if (unit === undefined) {
      units.set(key, { rows: [row], value, tokens: member.tokens })
      return
    }
    if (unit.value !== value)
      throw new PaddockError(
        'invalid_request',
        `rollout "${key}" of group "${group.id}" has rewards ${unit.value} and ${value}; ` +
          'rows of one rollout share one reward, or choose statistics_unit row',
      )
    unit.rows.push(row)
    unit.tokens += member.tokens
  })
  return [...units.values()]
}

function refuseSharedRollouts(groups: readonly GroupScores[]): void {
  const groupOf = new Map<string, string>()
  for (const group of groups)
    for (const { rollout } of group.members) {
      if (rollout === undefined) continue
      const other = groupOf.get(rollout) ?? group.id
      if (other !== group.id)
        throw new PaddockError(
          'invalid_request',
          `rollout "${rollout}" is in groups "${other}" and "${group.id}"; a rollout belongs to one group`,
        )
      groupOf.set(rollout, group.id)
    }
}

/** MaxRL, arXiv:2602.02710: the centred reward over the group's mean. For rewards that are not negative. */
function divideByMean(result: Standardised, settings: ScalarSettings): void {
  const mean = result.mean ?? 0
  const bare = settings.epsilon_mode === 'none_and_skip_if_zero' || settings.epsilon === 0
  const by = bare ? mean : mean + settings.epsilon
  result.divisor = { value: finite(by), name: bare ? 'mean' : `mean + ${settings.epsilon}` }
  result.values = result.values.map((centred) => {
    if (centred === null || centred === 0) return centred
    if (mean <= 0 && settings.nonpositive_mean === 'zero') return 0
    return centred / by
  })
}

/** Replaces the values of all stages by what the batch makes of them; says by which mean and deviation. */
function scaleOverBatch(
  stages: readonly Stage[],
  settings: ScalarSettings,
): GroupFigures['batch'] | undefined {
  if (settings.scale === 'batch_std') return divideByBatchStd(stages, settings)
  if (settings.scale !== 'batch_whiten' && settings.scale !== 'batch_std_of_advantages')
    return undefined
  const whole = settings.scale === 'batch_whiten'
  const places = stages.flatMap(({ result, units }) =>
    result.values.flatMap((value, index) =>
      isVote(value) ? [{ result, index, value, tokens: units[index]!.tokens }] : [],
    ),
  )
  const { values, mean, std } = whiten(
    places.map(({ value }) => value),
    places.map(({ tokens }) => tokens),
    { ...settings, level: whole ? settings.level : 'sample' },
    whole || settings.centre_batch,
  )
  places.forEach(({ result, index }, place) => {
    result.values[index] = values[place]!
  })
  return { mean: finite(mean), std: finite(std) }
}

function divideByBatchStd(
  stages: readonly Stage[],
  settings: ScalarSettings,
): GroupFigures['batch'] {
  const votes = stages.flatMap(({ units }) => units.map((unit) => unit.value))
  const scale = unitOf(votes)
  const kind = settings.std === 'population' ? 'population' : 'sample'
  const { mean, std } = moments(over(votes, scale), kind)
  // A batch of one vote has no deviation: 1, as for a singleton group.
  const by = votes.length < 2 ? 1 / scale : std
  for (const { result } of stages)
    result.values = result.values.map((value) =>
      value === null ? null : divide(value / scale, by, settings, scale),
    )
  return { mean: finite(mean * scale), std: finite(std * scale) }
}

/** What is no double votes in no batch: one group beyond the doubles must not take the others along. */
function isVote(value: number | null): value is number {
  return value !== null && Number.isFinite(value)
}

function finish(
  { group, readings, shaping, units, result }: Stage,
  settings: ScalarSettings,
  batch: GroupFigures['batch'] | undefined,
): GroupAdvantages {
  const unitOf = new Map(units.flatMap(({ rows }, unit) => rows.map((row) => [row, unit] as const)))
  const members = readings.map((reading, row) => {
    if (reading.value === null) return excludedAdvantage(reading.reason, settings)
    const value = result.values[unitOf.get(row)!]!
    return emitted(value, result.singleton ? 'singleton_group' : null)
  })
  const explain: GroupFigures = {
    votes: units.length,
    excluded: excludedMembers(group, readings),
    mean: result.mean,
    std: result.std,
    divisor: result.divisor,
    zero_variance: result.constant,
    loss_normalizer: settings.loss_normalizer,
    ...(batch === undefined ? {} : { batch }),
    ...(settings.overlong_shaping === undefined ? {} : { shaping }),
  }
  return { id: group.id, members, explain }
}
