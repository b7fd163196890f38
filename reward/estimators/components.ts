// Reading named components: which names have a weight, what a missing one means, and their weighted sum.
import { PaddockError } from '../../protocol/errors.ts'
import type { GroupScores, MemberScore } from '../estimator.ts'
import { nearestName } from '../nearest.ts'
import { type Reading, voting, without } from './members.ts'
import type { ComponentMissing } from './settings.ts'

export type Weights = Readonly<Record<string, number>>

/** By name: a number, or null where this component does not vote for this member. */
export type ComponentValues = Record<string, number | null>

/**
 * One member's components after the rule for missing ones, or the reason why the member is rejected (`component_*`,
 * with the name). A component of weight 0 is not read at all; one that is not a finite number is never filled.
 */
export function readComponents(
  components: MemberScore['components'],
  weights: Weights,
  rule: ComponentMissing,
): Reading<ComponentValues> {
  const names = activeNames(weights)
  const values: ComponentValues = {}
  for (const name of names) {
    const value = Object.hasOwn(components, name) ? components[name] : null
    if (value === null || value === undefined) values[name] = null
    else if (typeof value !== 'number') return without(`component_wrong_type:${name}`)
    else if (!Number.isFinite(value)) return without(`component_not_finite:${name}`)
    else values[name] = value
  }
  const missing = names.filter((name) => values[name] === null)
  if (missing.length === 0) return voting(values)
  if (rule === 'error') return without(`component_missing:${missing[0]}`)
  const fill =
    rule === 'zero_fill' ||
    (rule === 'counts_as_zero_unless_all_missing' && missing.length < names.length)
  if (fill) for (const name of missing) values[name] = 0
  return voting(values)
}

/** `sum(weight * component)`; a component that does not vote adds nothing, and a member without any has no sum. */
export function readWeightedSum(
  member: MemberScore,
  weights: Weights,
  rule: ComponentMissing,
): Reading {
  const read = readComponents(member.components, weights, rule)
  if (read.value === null) return read
  if (hasNoComponent(read.value)) return without('all_components_missing')
  let total = 0
  for (const [name, value] of Object.entries(read.value)) total += weights[name]! * (value ?? 0)
  return Number.isFinite(total) ? voting(total) : without('reward_not_finite')
}

/** True where a member was to have components and not one of them votes. */
export function hasNoComponent(values: ComponentValues): boolean {
  const all = Object.values(values)
  return all.length > 0 && all.every((value) => value === null)
}

/** The components that are read: those whose weight is not 0. */
export function activeNames(weights: Weights): string[] {
  return Object.keys(weights).filter((name) => weights[name] !== 0)
}

/** Every component that any member names, in order of appearance. */
export function componentNames(groups: readonly GroupScores[]): string[] {
  const names = new Set<string>()
  for (const group of groups)
    for (const member of group.members)
      for (const name of Object.keys(member.components)) names.add(name)
  return [...names]
}

/** Throws where weights and components do not name the same things: a typo must not drop a signal in silence. */
export function checkWeights(groups: readonly GroupScores[], weights: Weights): void {
  const names = componentNames(groups)
  const weighted = Object.keys(weights)
  if (names.length === 0) return
  const unweighted = names.find((name) => !weighted.includes(name))
  if (unweighted !== undefined)
    throw weightsError(
      `component "${unweighted}" has no weight; the nearest that has one is ` +
        `"${nearestName(unweighted, weighted)}". Give it a weight, 0 to leave it out`,
    )
  const absent = activeNames(weights).find((name) => !names.includes(name))
  if (absent !== undefined)
    throw weightsError(
      `settings.weights names "${absent}", which no member has; ` +
        `the nearest component is "${nearestName(absent, names)}"`,
    )
}

function weightsError(message: string): PaddockError {
  return new PaddockError('invalid_request', message, { path: 'settings.weights' })
}
