// How the groups of a kept batch stand, for people who look into its ledger: by their records, else by what happened to them.
import type { EpisodeOutcome, GroupVerdict } from '../../protocol/outcomes.ts'
import type { BatchEntry, BatchEvent, GroupRecord } from '../../rollout/ports.ts'
import { keys } from './keys.ts'
import type { LedgerReader } from './open-reader.ts'
import type { DeliveryRecord, EventRecord } from './resume.ts'

interface ShownEpisode {
  id: string
  /** Null while none of its attempts has ended, and while another one is under way. */
  outcome: EpisodeOutcome | null
  reward: number | null
}

interface ShownGroup {
  id: string
  /** Null for one that replaces another and whose record is not there. */
  task: string | null
  /** Null until it is over. */
  verdict: GroupVerdict | null
  /** Waiting or running; once it is over ready, leased, or how it left; damaged where that cannot be read. */
  state: string
  episodes: ShownEpisode[]
}

type Happened = Pick<ShownGroup, 'verdict'> & { episodes: Map<number, ShownEpisode> }

/** In the order of the batch. */
export function batchGroups(ledger: LedgerReader, { id: batch, plan }: BatchEntry): ShownGroup[] {
  const tasks = Array.isArray(plan.tasks) ? (plan.tasks as { id?: string }[]) : []
  const happened = history(ledger, batch)
  const places = Math.max(tasks.length, ...[...happened.keys()].map((place) => place + 1))
  return Array.from({ length: places }, (_, place) => {
    const id = `${batch}.g${place}`
    const own = happened.get(place)
    const record = ledger.json<GroupRecord>(keys.group(batch, id))
    const verdict = record?.head.verdict ?? own?.verdict ?? null
    const stands = ledger.json<DeliveryRecord>(keys.delivery(batch, id))?.state
    const unsettled = verdict ? 'damaged' : own ? 'running' : 'waiting'
    return {
      id,
      task: record?.head.task ?? tasks[place]?.id ?? null,
      verdict,
      state: stands ? (stands.settlement ?? stands.phase) : unsettled,
      episodes: record
        ? record.episodes.map(({ id, outcome, reward }) => ({ id, outcome, reward }))
        : [...(own?.episodes ?? [])].sort(([a], [b]) => a - b).map(([, episode]) => episode),
    }
  })
}

/** Groups that have begun and are not over. */
export function groupsUnderWay(ledger: LedgerReader, batch: string): number {
  return [...history(ledger, batch).values()].filter(({ verdict }) => verdict === null).length
}

/** What is known of each group by its place; one of which nothing is has not started. */
function history(ledger: LedgerReader, batch: string): Map<number, Happened> {
  const groups = new Map<number, Happened>()
  for (const key of ledger.keys(`event/${batch}/`)) {
    const event = ledger.json<EventRecord>(key)?.event
    if (!event || !('group' in event)) continue
    const group = groups.get(event.group) ?? { verdict: null, episodes: new Map() }
    groups.set(event.group, group)
    tell(group, event, `${batch}.g${event.group}`)
  }
  return groups
}

function tell(group: Happened, event: BatchEvent, id: string): void {
  if (event.type === 'settle') group.verdict = event.verdict
  if (event.type !== 'start' && event.type !== 'end') return
  const { outcome = null, header = null } = event.type === 'end' ? event.end : {}
  const episode = `${id}.e${event.index}`
  group.episodes.set(event.index, { id: episode, outcome, reward: header?.reward ?? null })
}
