// A finished group told for a person: what came of each member, and why each advantage is what it is.
import type { DeliveredEpisode, DeliveredGroup } from '../../../protocol/group.ts'
import type { GroupExplanation } from '../../../reward/explain.ts'
import type { GroupRecord } from '../../../rollout/ports.ts'

/** What of the delivered group is told again. */
type Told =
  | 'id'
  | 'batch'
  | 'task'
  | 'verdict'
  | 'level'
  | 'contract'
  | 'estimator'
  | 'loss_normalizer'
  | 'whitened'
  | 'stats'

export interface ExplainedGroup extends Pick<DeliveredGroup, Told> {
  members: (Pick<
    DeliveredEpisode,
    'id' | 'outcome' | 'reason' | 'reward' | 'rewards' | 'advantage'
  > & {
    because: string
  })[]
  /** Null where nobody voted, and for a group whose figures are not at hand. */
  explanation: GroupExplanation | null
}

/** `explanation` is missing in what was kept before there was one, and in a group as it was delivered. */
export function explainRecord({
  head,
  episodes,
  explanation,
}: Pick<GroupRecord, 'head' | 'episodes'> &
  Partial<Pick<GroupRecord, 'explanation'>>): ExplainedGroup {
  const { id, batch, task, verdict, level, contract, estimator, stats } = head
  const { loss_normalizer, whitened } = head
  return {
    ...{ id, batch, task, verdict, level, contract, estimator, loss_normalizer, whitened, stats },
    members: episodes.map(({ id, outcome, reason, reward, rewards, advantage }, index) => ({
      ...{ id, outcome, reason, reward, rewards, advantage },
      because: explanation?.members[index]?.because ?? plainly(outcome, reward, stats.mean),
    })),
    explanation: explanation ?? null,
  }
}

function plainly(outcome: string, reward: number | null, mean: number | null): string {
  if (reward === null || mean === null) return `outside all statistics: ${outcome}`
  if (reward === mean) return 'its reward is the mean of the scored episodes'
  return `its reward is ${reward > mean ? 'above' : 'below'} the mean of the scored episodes`
}
