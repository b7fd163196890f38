// Answers for estimators that give each row one advantage: rows bound to groups by id, never by position.
import { z } from 'zod'
import { PaddockError } from '../protocol/errors.ts'
import type { GroupScores, MemberAdvantage, MemberScore } from './estimator.ts'
import { conditioned } from './estimators/gdpo.ts'
import type { GdpoSettings } from './estimators/gdpo-settings.ts'
import type { ScalarSettings } from './estimators/scalar-settings.ts'
import type { ChosenEstimator } from './estimators.ts'
import { fit, strictObject } from './strict.ts'

/** What an estimator's answer is built from. */
export interface Question {
  estimator: string
  input: unknown
  /** Adds the figures of each group. */
  explain: boolean
}

const id = z.string({ error: 'expected a string: ids bind rows to groups' }).min(1)

/** Rewards and components are taken as they come: what is no finite number costs its row, not the whole question. */
const rowsSchema = strictObject({
  rewards: z.array(z.unknown()).optional(),
  components: z.array(z.record(z.string(), z.unknown()).nullable()).optional(),
  groups: z.array(id),
  /** 1 where a token is the policy's own and trained on. */
  response_mask: z
    .array(z.array(z.union([z.literal(0), z.literal(1)], { error: 'expected 0 or 1' })))
    .optional(),
  /** Sampled tokens by row; default: what the mask counts. */
  response_lengths: z.array(z.number().min(0)).optional(),
  rollouts: z.array(id).optional(),
  /** False for a row that was scored but must not vote (cut short); `settings.vote` lets it. */
  eligible: z.array(z.boolean()).optional(),
})
type Rows = z.output<typeof rowsSchema>

/** `{advantages, token_advantages?, pre_batch?, conditioned_components?, reasons?, explain?}`, by row of the input. */
export function answerRows(
  { estimator, settings }: ChosenEstimator,
  { estimator: name, input, explain }: Question,
): object {
  const rows = fit(rowsSchema, input, 'input')
  checkRows(rows, name, settings as Partial<ScalarSettings & GdpoSettings>)
  const { groups, places } = bind(rows)
  const results = estimator.advantages(groups, settings)
  const byRow = places.map(({ group, member }) => results[group]!.members[member]!)
  const preBatch = places.map(({ group, member }) => results[group]!.explain.pre_batch?.[member])
  const { conditions } = settings as Partial<GdpoSettings>
  return {
    advantages: byRow.map((row) => row.advantage),
    ...(rows.response_mask && { token_advantages: broadcast(byRow, rows.response_mask) }),
    ...(name === 'gdpo' && { pre_batch: preBatch }),
    ...(conditions?.length && {
      conditioned_components: rows.components?.map((row) =>
        conditioned(componentsOf(row), conditions),
      ),
    }),
    ...reasonsOf(byRow),
    ...(explain && { explain: results.map((group) => ({ group: group.id, ...group.explain })) }),
  }
}

/** `reasons` by row, where any row has one. */
export function reasonsOf(rows: readonly MemberAdvantage[]): { reasons?: (string | null)[] } {
  const reasons = rows.map((row) => row.reason)
  return reasons.some((reason) => reason !== null) ? { reasons } : {}
}

/** The advantage where the mask is 1, 0 elsewhere. */
function broadcast(
  rows: readonly MemberAdvantage[],
  masks: readonly (readonly number[])[],
): (number | null)[][] {
  return rows.map(({ advantage }, row) => masks[row]!.map((mask) => (mask === 1 ? advantage : 0)))
}

function checkRows(
  rows: Rows,
  name: string,
  settings: Partial<ScalarSettings & GdpoSettings>,
): void {
  const byComponents = name === 'gdpo' || settings.weights !== undefined
  if (byComponents && rows.components === undefined)
    refuse('input.components', `${name} with weights reads components; give one object per row`)
  if (!byComponents && rows.rewards === undefined)
    refuse(
      'input.rewards',
      rows.components === undefined
        ? `${name} reads rewards; give one per row, null where it is missing`
        : `${name} reads one reward per row; give settings.weights to sum components`,
    )
  for (const [key, list] of Object.entries(rows))
    if (list !== undefined && list.length !== rows.groups.length)
      refuse(
        `input.${key}`,
        `expected ${rows.groups.length} rows, as groups has, got ${list.length}`,
      )
  const lengths = rows.response_lengths ?? rows.response_mask
  if (readsLengths(settings) && lengths === undefined)
    refuse('input.response_lengths', `these settings weigh by length; give sampled tokens by row`)
}

function readsLengths(settings: Partial<ScalarSettings & GdpoSettings>): boolean {
  const whitens = settings.scale === 'batch_whiten' && settings.level === 'token'
  return (
    whitens ||
    settings.batch?.level === 'token' ||
    settings.baseline === 'length_weighted_mean' ||
    settings.group?.baseline === 'length_weighted_mean' ||
    settings.overlong_shaping !== undefined
  )
}

/** Rows as groups in order of first appearance, and where each row went. */
function bind(rows: Rows): { groups: GroupScores[]; places: { group: number; member: number }[] } {
  const groups: GroupScores[] = []
  const indexOf = new Map<string, number>()
  const places = rows.groups.map((id, row) => {
    const group = groupIndex(id, groups, indexOf)
    const member = groups[group]!.members.push(memberOf(rows, row)) - 1
    return { group, member }
  })
  return { groups, places }
}

/** The place of the group of this id, which is made where it is new. */
export function groupIndex(
  id: string,
  groups: GroupScores[],
  indexOf: Map<string, number>,
): number {
  const known = indexOf.get(id)
  if (known !== undefined) return known
  indexOf.set(id, groups.length)
  return groups.push({ id, members: [] }) - 1
}

function memberOf(rows: Rows, row: number): MemberScore {
  const mask = rows.response_mask?.[row]
  return {
    id: `row ${row}`,
    // Without rewards the estimator reads components, and whether they suffice is for it to say.
    reward: (rows.rewards === undefined ? 0 : (rows.rewards[row] ?? null)) as number | null,
    reason: null,
    components: componentsOf(rows.components?.[row]),
    tokens: rows.response_lengths?.[row] ?? mask?.reduce<number>((sum, bit) => sum + bit, 0) ?? 0,
    steps: [],
    ...(rows.rollouts && { rollout: rows.rollouts[row]! }),
    ...(rows.eligible && { eligible: rows.eligible[row]! }),
  }
}

function componentsOf(row: Record<string, unknown> | null | undefined): MemberScore['components'] {
  return (row ?? {}) as MemberScore['components']
}

function refuse(path: string, message: string): never {
  throw new PaddockError('invalid_request', `${path}: ${message}`, { path })
}
