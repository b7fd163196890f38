// GDPO: each reward component is normalised inside its group, the weighted sum is whitened over the batch.
import { PaddockError } from '../../protocol/errors.ts'
import type {
  ComponentFigures,
  Estimator,
  GroupAdvantages,
  GroupScores,
  MemberAdvantage,
  MemberScore,
} from '../estimator.ts'
import { finite } from '../statistics.ts'
import {
  activeNames,
  type ComponentValues,
  checkWeights,
  componentNames,
  hasNoComponent,
  readComponents,
  type Weights,
} from './components.ts'
import { type GdpoSettings, gdpoSettings } from './gdpo-settings.ts'
import {
  applyMissing,
  emitted,
  excludedAdvantage,
  excludedMembers,
  type Reading,
  readMember,
  without,
} from './members.ts'
import { type Standardised, standardise } from './standardise.ts'
import { type Whitened, whiten } from './whiten.ts'

/**
 * `A_k = (r_k - mean_g) / (std_g + eps)` per component and group, `A = sum(w_k A_k)`, then `(A - mean) / (std + eps)`
 * over all members of all groups of the call. A component that is constant in a group adds exactly 0 there; where
 * none varies anywhere every advantage is 0. `explain.pre_batch` holds the sums before whitening, by member.
 *
 * Reads components only; a member's `reward` null still means not a member.
 * Source: arXiv:2601.05242, eq. 4 to 8; defaults of the authors' TRL fork and of TRL.
 */
export const gdpo: Estimator<GdpoSettings> = {
  settings: gdpoSettings,
  seesBatch: ({ batch }) => batch.level !== 'none',
  advantages(groups, settings) {
    const weights = settings.weights ?? equalWeights(groups)
    checkComponents(groups, weights, settings)
    const stages = groups.map((group) => stageOf(group, weights, settings))
    const batch = whitenSums(stages, settings)
    return stages.map((stage) => finish(stage, settings, batch))
  },
}

/** A member's components after Eq. 8. What is missing stays missing, and a missing requirement is not met. */
export function conditioned(
  components: MemberScore['components'],
  conditions: GdpoSettings['conditions'],
): MemberScore['components'] {
  const result = { ...components }
  for (const { component, requires, at_least, otherwise } of conditions) {
    const required = components[requires]
    const met = typeof required === 'number' && required >= at_least
    if (typeof components[component] === 'number' && !met) result[component] = otherwise
  }
  return result
}

interface Stage {
  group: GroupScores
  readings: Reading<ComponentValues>[]
  /** Weighted sums by member, null outside the statistics; whitened in place. */
  sums: (number | null)[]
  preBatch: (number | null)[]
  components: Record<string, ComponentFigures>
}

function stageOf(group: GroupScores, weights: Weights, settings: GdpoSettings): Stage {
  const readings = applyMissing(
    group,
    group.members.map((member) => readMemberComponents(member, weights, settings)),
    settings,
    (score) => Object.fromEntries(activeNames(weights).map((name) => [name, score])),
  )
  const sums: (number | null)[] = readings.map((reading) => (reading.value === null ? null : 0))
  const components: Record<string, ComponentFigures> = {}
  for (const name of activeNames(weights)) {
    const weight = weights[name]!
    const rows = sums.flatMap((_, row) => (voteOf(readings[row]!, name) === null ? [] : [row]))
    const result = standardise(
      rows.map((row) => voteOf(readings[row]!, name)!),
      rows.map((row) => group.members[row]!.tokens),
      settings.group,
      `component "${name}" in group "${group.id}"`,
    )
    rows.forEach((row, vote) => {
      const [sum, value] = [sums[row]!, result.values[vote]!]
      sums[row] = sum === null || value === null ? null : sum + weight * value
    })
    components[name] = figuresOf(result, weight)
  }
  return { group, readings, sums, preBatch: [...sums], components }
}

function readMemberComponents(
  member: MemberScore,
  weights: Weights,
  settings: GdpoSettings,
): Reading<ComponentValues> {
  const scored = readMember(member, settings)
  if (scored.value === null) return scored
  const components = conditioned(member.components, settings.conditions)
  const read = readComponents(components, weights, settings.component_missing)
  if (read.value === null || settings.all_components_missing === 'counts_as_zero') return read
  return hasNoComponent(read.value) ? without(ALL_MISSING) : read
}

const ALL_MISSING = 'all_components_missing'

function voteOf(reading: Reading<ComponentValues>, name: string): number | null {
  return reading.value === null ? null : (reading.value[name] ?? null)
}

function figuresOf(result: Standardised, weight: number): ComponentFigures {
  const { values, mean, std, divisor } = result
  const flat = result.constant || values.length < 2
  return { weight, votes: values.length, mean, std, divisor, flat }
}

function whitenSums(stages: readonly Stage[], { batch }: GdpoSettings): Whitened {
  const places = stages.flatMap(({ group, sums }) =>
    sums.flatMap((value, row) =>
      value === null || !Number.isFinite(value)
        ? []
        : [{ sums, row, value, tokens: group.members[row]!.tokens }],
    ),
  )
  const whitened = whiten(
    places.map(({ value }) => value),
    places.map(({ tokens }) => tokens),
    batch,
  )
  places.forEach(({ sums, row }, place) => {
    sums[row] = whitened.values[place]!
  })
  return whitened
}

function finish(stage: Stage, settings: GdpoSettings, batch: Whitened): GroupAdvantages {
  const { group, readings, sums, components } = stage
  const votes = readings.filter((reading) => reading.value !== null).length
  const members = readings.map((reading, row): MemberAdvantage => {
    if (reading.value === null) return leftOut(reading.reason, settings)
    if (votes === 1) return emitted(sums[row]!, 'singleton_group')
    // A component with one vote in this group has no value under singleton_group null, nor has the sum.
    return emitted(sums[row]!, sums[row] === null ? 'singleton_component' : null)
  })
  const flat = Object.values(components).every((component) => component.flat)
  const explain = {
    votes,
    excluded: excludedMembers(group, readings),
    mean: null,
    std: null,
    zero_variance: votes > 1 && flat,
    loss_normalizer: settings.loss_normalizer,
    ...(settings.batch.level === 'none'
      ? {}
      : { batch: { mean: finite(batch.mean), std: finite(batch.std) } }),
    components,
    pre_batch: stage.preBatch.map((value, row) =>
      readings[row]!.value === null ? members[row]!.advantage : finite(value),
    ),
  }
  return { id: group.id, members, explain }
}

function leftOut(reason: string, settings: GdpoSettings): MemberAdvantage {
  const zero = reason === ALL_MISSING && settings.all_components_missing === 'excluded_then_zero'
  return zero ? { advantage: 0, steps: null, reason } : excludedAdvantage(reason, settings)
}

function equalWeights(groups: readonly GroupScores[]): Weights {
  return Object.fromEntries(componentNames(groups).map((name) => [name, 1]))
}

function checkComponents(
  groups: readonly GroupScores[],
  weights: Weights,
  { conditions, allow_single }: GdpoSettings,
): void {
  checkWeights(groups, weights)
  const names = Object.keys(weights)
  const voters = groups.some((group) => group.members.some((member) => member.reward !== null))
  if (names.length === 0 && voters)
    throw new PaddockError(
      'invalid_request',
      'gdpo reads components and got none; name them in the reward contract, or use grpo',
      { path: 'settings.weights' },
    )
  if (names.length === 1 && !allow_single)
    throw new PaddockError(
      'invalid_request',
      `gdpo got the single component "${names[0]}"; use grpo, or set allow_single to whiten it all the same`,
      { path: 'settings.allow_single' },
    )
  const known = new Set([...names, ...componentNames(groups)])
  conditions.forEach(({ component, requires }, index) => {
    for (const name of [component, requires])
      if (known.size > 0 && !known.has(name))
        throw new PaddockError(
          'invalid_request',
          `conditions name "${name}", which no member has`,
          {
            path: `settings.conditions[${index}]`,
          },
        )
  })
}
