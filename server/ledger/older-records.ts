// What an older Paddock kept, as today's code reads it: what was not known then is filled in with what it stood for.
import type { LossNormalizer } from '../../protocol/group.ts'
import { NO_COUNTS } from '../../protocol/turn-counts.ts'
import type { BatchEntry, BatchEvent, GroupRecord } from '../../rollout/ports.ts'

type Head = GroupRecord['head']
type Episode = GroupRecord['episodes'][number]

/**
 * `entryOf` reads the group's batch, whose plan had the loss normalizer before its groups did. What nobody counted is 0;
 * the counts of such a group stand in its batch's progress.
 */
export function todaysGroup(
  record: GroupRecord,
  entryOf: () => BatchEntry | undefined,
): GroupRecord {
  const { head } = record
  const episodes = record.episodes.map((episode: Episode) => lacking(episode, { seconds: null }))
  if ((head as Partial<Head>).loss_normalizer) return { ...record, episodes }
  return {
    ...record,
    head: {
      ...lacking(head, { whitened: null, counts: NO_COUNTS, greedy_suspect: false }),
      loss_normalizer: plannedNormalizer(entryOf()),
      policy: lacking(head.policy, { logprobs_mode: 'unknown' }),
      stats: lacking(head.stats, { components: {}, shared_anchor_share: null }),
    },
    episodes: episodes.map((episode) => lacking(episode, { shaping: [], counts: NO_COUNTS })),
    explanation: null,
  }
}

export function todaysEvent(event: BatchEvent): BatchEvent {
  if (event.type !== 'end' || event.end.header === null) return event
  const header = lacking(event.end.header, { shaping: [], text_mismatches: 0 })
  return { ...event, end: { ...event.end, header } }
}

/** `value` with what of `later` it has not. */
function lacking<Value extends object>(value: Value, later: Partial<Value>): Value {
  return { ...later, ...value }
}

function plannedNormalizer(entry: BatchEntry | undefined): LossNormalizer {
  const unsaid: LossNormalizer = { kind: 'tokens_in_sample', value: null }
  if (!entry) return unsaid
  const { loss_normalizer = unsaid } = entry.plan.estimatorSettings as {
    loss_normalizer?: LossNormalizer
  }
  const { kind, value } = loss_normalizer
  const { limits } = JSON.parse(entry.request) as { limits: { max_tokens: number } }
  return { kind, value: kind === 'constant' ? (value ?? limits.max_tokens) : value }
}
