// Why each advantage of a group is what it is, for a person: the figures, and a sentence for each member.
import { figure } from '../protocol/figure.js'
import type { LossNormalizer } from '../protocol/group.ts'
import type {
  ComponentFigures,
  Divisor,
  GroupAdvantages,
  GroupFigures,
  GroupScores,
  MemberAdvantage,
  MemberScore,
} from './estimator.ts'

export interface GroupExplanation {
  group: string
  votes: number
  excluded: { id: string; reason: string }[]
  mean: number | null
  std: number | null
  /** What the estimator divides by within the group; null where nothing differs or there is no such step. */
  divisor: Divisor | null
  zero_variance: boolean
  loss_normalizer: LossNormalizer
  /** Whitening over the call, where there was any. */
  batch: GroupFigures['batch'] | null
  components: ({ name: string } & ComponentFigures)[]
  /** Step groups by anchor with their sizes; null where the estimator reads no anchors. */
  anchors: { anchor: string | null; steps: number }[] | null
  /** Share of steps in anchor groups larger than one; null as above. */
  shared_anchor_share: number | null
  members: { id: string; reward: number | null; advantage: number | null; because: string }[]
  /** What holds for the whole group. */
  remarks: string[]
}

/** An estimator's answer for one group, with its explanation. */
export interface EstimatedGroup extends GroupAdvantages {
  explanation: GroupExplanation
}

/** Explains one group from its scores and what an estimator made of them; members in their order. */
export function explainGroup(group: GroupScores, result: GroupAdvantages): GroupExplanation {
  const figures = result.explain
  const { votes, excluded, mean, std, zero_variance, loss_normalizer } = figures
  return {
    group: group.id,
    votes,
    excluded,
    mean,
    std,
    divisor: (votes > 1 && !zero_variance && figures.divisor) || null,
    zero_variance,
    loss_normalizer,
    batch: figures.batch ?? null,
    components: Object.entries(figures.components ?? {}).map(([name, component]) => ({
      name,
      ...component,
    })),
    anchors: figures.anchors ?? null,
    shared_anchor_share: figures.shared_anchor_share ?? null,
    members: group.members.map((member, index) => {
      const answer = result.members[index]!
      return {
        id: member.id,
        reward: member.reward,
        advantage: answer.advantage,
        because: because(member, answer, figures),
      }
    }),
    remarks: remarks(group, figures),
  }
}

function because(member: MemberScore, answer: MemberAdvantage, figures: GroupFigures): string {
  if (figures.excluded.some(({ id }) => id === member.id))
    return `outside all statistics: ${answer.reason}`
  if (answer.reason === 'singleton_group')
    return 'the only vote of its group: there is no one to compare with'
  if (answer.advantage === null) return `no advantage: ${answer.reason}`
  if (figures.zero_variance) return `all ${figures.votes} votes are equal`
  if (figures.pre_batch) return 'weighted sum of its components, each against its group'
  if (figures.mean === null) return 'mean over its steps, each against the steps of its group'
  const side = (member.reward ?? 0) >= figures.mean ? 'above' : 'below'
  const distance = Math.abs((member.reward ?? 0) - figures.mean)
  return `reward ${figure(member.reward)} is ${figure(distance)} ${side} the mean ${figure(figures.mean)} of ${figures.votes} votes`
}

function remarks(group: GroupScores, figures: GroupFigures): string[] {
  const said: string[] = []
  const { votes, excluded, components, shared_anchor_share, batch } = figures
  said.push(
    `${votes} votes from ${group.members.length} members, ${excluded.length} of them left out`,
  )
  if (votes === 0) said.push('no member votes: there is no advantage')
  if (figures.zero_variance) said.push('nothing that is read differs: every advantage is exactly 0')
  for (const [name, component] of Object.entries(components ?? {}))
    said.push(
      component.flat
        ? `component "${name}" is flat in this group and adds 0`
        : `component "${name}": ${centred(component)}`,
    )
  if (batch)
    said.push(`whitened over the batch: mean ${figure(batch.mean)}, std ${figure(batch.std)}`)
  if (shared_anchor_share !== undefined) said.push(anchorRemark(shared_anchor_share))
  return said
}

/** `less the mean 0.375, divided by 0.518 (sample std + 0.000001)` */
function centred({ mean, divisor }: { mean: number | null; divisor: Divisor }): string {
  const by = divisor.value === null ? divisor.name : `${figure(divisor.value)} (${divisor.name})`
  return `less the mean ${figure(mean)}, divided by ${by}`
}

function anchorRemark(share: number): string {
  if (share === 0) return 'GiGPO is GRPO here: no two steps were taken in the same state'
  return `${figure(100 * share)} % of steps were taken in a state that another step shares`
}
