// `paddock bench advantages`: groups a second of every estimator, beside a bare loop of mean and deviation.
import type { GroupScores } from '../../reward/estimator.ts'
import { chooseEstimator, estimatorNames } from '../../reward/estimators.ts'
import { aligned, type MeasureOptions, measurements, medians } from './measure.ts'
import type { Streams } from './streams.ts'

const GROUP_SIZE = 16
const TURNS = 8
/** Groups of one call: a training step. */
const GROUPS = 64
/** States of a group's first turns are shared, as where episodes begin alike and part later. */
const SHARED_TURNS = 4

/** Writes a table, or with `json` one object: medians over the rounds, per second on one core. */
export async function benchAdvantages(
  options: MeasureOptions,
  { stdout, stderr }: Pick<Streams, 'stdout' | 'stderr'> = process,
): Promise<void> {
  const groups = someGroups()
  const progress = measurements(2 * estimatorNames.length, options, stderr)
  const rows = estimatorNames.map((name) => {
    const { estimator, settings } = chooseEstimator(name, {})
    const ways = {
      bare: () => bareLoop(groups),
      estimator: () => estimator.advantages(groups, settings).length,
    }
    const groups_per_s = medians(ways, options, progress.measured)
    const { estimator: rate = 0, bare = 0 } = groups_per_s
    return {
      estimator: name,
      groups_per_s: rate,
      samples_per_s: rate * GROUP_SIZE,
      steps_per_s: rate * GROUP_SIZE * TURNS,
      bare_groups_per_s: bare,
    }
  })
  progress.stop()
  stdout.write(options.json ? `${JSON.stringify({ advantages: rows })}\n` : table(rows))
}

type Row = Record<
  'groups_per_s' | 'samples_per_s' | 'steps_per_s' | 'bare_groups_per_s',
  number
> & {
  estimator: string
}

/** The least that any of them does: each reward less its group's mean, over the deviation. */
function bareLoop(groups: readonly GroupScores[]): number {
  let total = 0
  for (const { members } of groups) {
    let [sum, squares] = [0, 0]
    for (const { reward } of members) sum += reward ?? 0
    const mean = sum / members.length
    for (const { reward } of members) squares += ((reward ?? 0) - mean) ** 2
    const std = Math.sqrt(squares / (members.length - 1))
    for (const { reward } of members) total += ((reward ?? 0) - mean) / (std + 1e-6)
  }
  if (Number.isNaN(total)) throw new Error('the bare loop has lost its numbers')
  return groups.length
}

/** Rewards in sixteenths, two components, and anchors that are shared at first. */
function someGroups(): GroupScores[] {
  return Array.from({ length: GROUPS }, (_, group) => ({
    id: `g${group}`,
    members: Array.from({ length: GROUP_SIZE }, (_, index) => {
      const reward = 1 + ((7 * group + 5 * index) % 16) / 16
      const steps = Array.from({ length: TURNS }, (_, turn) => ({
        reward: turn === TURNS - 1 ? reward : 0,
        anchor: turn < SHARED_TURNS ? `state ${turn}` : `state ${turn} of ${index}`,
      }))
      const components = { solved: (index + group) % 2, brief: ((3 * index + group) % 8) / 8 }
      return { id: `g${group}.e${index}`, reward, reason: null, components, tokens: 100, steps }
    }),
  }))
}

function table(rows: readonly Row[]): string {
  const lines = rows.map((row) => [
    row.estimator,
    row.groups_per_s.toFixed(0),
    row.samples_per_s.toFixed(0),
    row.steps_per_s.toFixed(0),
    row.bare_groups_per_s.toFixed(0),
    (row.groups_per_s / row.bare_groups_per_s).toFixed(3),
  ])
  const head = ['estimator', 'groups/s', 'samples/s', 'steps/s', 'bare groups/s', 'ratio']
  return `${GROUPS} groups of ${GROUP_SIZE} episodes of ${TURNS} turns, on one core\n\n${aligned([head, ...lines], 1)}\n`
}
