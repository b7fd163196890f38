// HGPO: each step against the steps that share its last states, the longer the shared history the heavier.
import { z } from 'zod'
import type { Estimator, GroupAdvantages, GroupScores, MemberAdvantage } from '../estimator.ts'
import { finite, sum } from '../statistics.ts'
import { emitted, excludedAdvantage, excludedMembers } from './members.ts'
import {
  divisionShape,
  eligibilityShape,
  lossNormalizerSchema,
  settingsSchema,
  singletonSchema,
} from './settings.ts'
import { type Standardised, standardise } from './standardise.ts'
import { byMember, readSteps, type StepRow, stepRows } from './step-returns.ts'

const shape = {
  ...eligibilityShape,
  ...divisionShape,
  gamma: z.number().min(0).max(1),
  /** Earlier states that a key may hold beside the step's own. */
  history_length: z.int().min(0).max(1000),
  mode: z.enum(['mean_std_norm', 'mean_norm']),
  length_weight_alpha: z.number(),
  /** Adds the episode term as one more item, of length 0: rows vote, sample deviation. */
  base_group: z.boolean(),
  episode_singleton: singletonSchema,
  anchor_missing: z.enum(['error', 'own_group']),
  loss_normalizer: lossNormalizerSchema,
}
const schema = z.strictObject(shape)
type HgpoSettings = z.output<typeof schema>

const DEFAULTS = {
  missing: 'excluded',
  vote: false,
  std: 'population',
  epsilon: 1e-6,
  epsilon_mode: 'added_to_std',
  gamma: 0.95,
  history_length: 2,
  mode: 'mean_std_norm',
  length_weight_alpha: 1,
  base_group: false,
  episode_singleton: 'raw_reward',
  anchor_missing: 'error',
  loss_normalizer: { kind: 'tokens_in_sample', value: null },
}

/** A step's standing among those that share its last `length` states (0: its episode among the group's). */
interface Item {
  length: number
  value: number
}

/**
 * For k = 1 to history_length + 1 the step's return is normalised among the steps of the group with the same last k
 * anchors; groups of one and values of exactly 0 are dropped; the rest is averaged with weights
 * `(k + 1)^alpha / (sum + epsilon)`. A member's own advantage is the mean over its steps.
 * Source: verl-agent, recipe/hgpo/core_hgpo.py.
 */
export const hgpo: Estimator<HgpoSettings> = {
  settings: settingsSchema('hgpo', shape, DEFAULTS, { verl_agent: {} }),
  perTurn: true,
  advantages: (groups, settings) => groups.map((group) => groupAdvantages(group, settings)),
}

function groupAdvantages(group: GroupScores, settings: HgpoSettings): GroupAdvantages {
  const readings = readSteps(group, settings)
  const rows = stepRows(group, readings, settings)
  const items: Item[][] = rows.map(() => [])
  if (settings.base_group) addEpisodeItems(group, rows, items, settings)
  for (const [length, members] of histories(rows, settings.history_length)) {
    const returns = members.map((index) => rows[index]!.return)
    const { values, mean } = term(returns, settings.std, settings, `group "${group.id}"`)
    members.forEach((index, vote) => {
      const value = isMean(returns[vote]!, mean, returns) ? 0 : values[vote]!
      items[index]!.push({ length, value })
    })
  }
  const values = items.map((own) => weightedMean(own, settings))
  const steps = byMember(group, rows, (_, index) => values[index]!)
  const members = readings.map((reading, member): MemberAdvantage => {
    if (reading.value === null) return excludedAdvantage(reading.reason, settings)
    const own = steps[member]!
    return emitted(own.length === 0 ? 0 : sum(own) / own.length, null, own)
  })
  const explain = {
    votes: rows.length,
    excluded: excludedMembers(group, readings),
    mean: null,
    std: null,
    zero_variance: values.every((value) => value === 0),
    loss_normalizer: settings.loss_normalizer,
    step_returns: byMember(group, rows, (row) => finite(row.return)),
  }
  return { id: group.id, members, explain }
}

function addEpisodeItems(
  group: GroupScores,
  rows: readonly StepRow[],
  items: Item[][],
  settings: HgpoSettings,
): void {
  const scores = rows.map((row) => row.reward)
  const { values } = term(scores, 'sample', settings, `the episodes of group "${group.id}"`)
  values.forEach((value, index) => {
    if (value !== null) items[index]!.push({ length: 0, value })
  })
}

/** Below this share of the largest return a distance from the mean is rounding, which must not keep an item. */
const NOISE = 1e-12

function isMean(value: number, mean: number | null, among: readonly number[]): boolean {
  const scale = among.reduce((a, b) => Math.max(a, Math.abs(b)), 0)
  return mean !== null && Math.abs(value - mean) <= NOISE * scale
}

/** Steps with the same last k anchors of their own trajectory, for every k; those that stand alone are left out. */
function histories(rows: readonly StepRow[], historyLength: number): [number, number[]][] {
  const anchorsOf = new Map<number, (string | null)[]>()
  for (const row of rows) {
    const anchors = anchorsOf.get(row.member) ?? []
    anchors[row.step] = row.anchor
    anchorsOf.set(row.member, anchors)
  }
  const groups = new Map<string, [number, number[]]>()
  rows.forEach((row, index) => {
    const anchors = anchorsOf.get(row.member)!
    for (let length = 1; length <= Math.min(historyLength + 1, row.step + 1); length++) {
      const past = anchors.slice(row.step - length + 1, row.step + 1)
      if (past.includes(null)) break
      const key = JSON.stringify(past)
      const known = groups.get(key)
      if (known === undefined) groups.set(key, [length, [index]])
      else known[1].push(index)
    }
  })
  return [...groups.values()].filter(([, members]) => members.length > 1)
}

function term(
  votes: readonly number[],
  std: HgpoSettings['std'],
  settings: HgpoSettings,
  where: string,
): Standardised {
  const fixed = { baseline: 'group_mean', std_scope: 'group', zero_std_group: 'divide' } as const
  const kind = settings.mode === 'mean_norm' ? 'none' : std
  const singleton_group = settings.episode_singleton
  return standardise(votes, [], { ...settings, ...fixed, std: kind, singleton_group }, where)
}

function weightedMean(items: readonly Item[], settings: HgpoSettings): number {
  const heard = items.filter(({ value }) => value !== 0)
  const weights = heard.map(({ length }) => (length + 1) ** settings.length_weight_alpha)
  const total = sum(weights) + settings.epsilon
  return sum(heard.map(({ value }, index) => (weights[index]! / total) * value))
}
