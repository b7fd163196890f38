// The groups of a batch for people to look over: how each stands, and each member's outcome, reward and advantage.
import type { GroupCost } from '../../../protocol/batch.ts'
import type { EpisodeSeconds } from '../../../protocol/group.ts'
import type { EpisodeOutcome, GroupVerdict, Level } from '../../../protocol/outcomes.ts'
import { hasStarted } from '../../../rollout/group.ts'
import type { GroupRecord } from '../../../rollout/ports.ts'
import { firstReason } from './batch-progress.ts'
import { episodeId, type GroupRun } from './group-run.ts'

interface ListedMember {
  id: string
  index: number
  attempt: number
  phase: 'waiting' | 'running' | 'ended'
  outcome: EpisodeOutcome | null
  /** Why, for every outcome but ok. */
  reason: string | null
  reward: number | null
  advantage: number | null
  /** Of the attempt that ended; null before, and where it was never played. */
  seconds: EpisodeSeconds | null
}

export interface ListedGroup {
  id: string
  task: string
  seed: number
  state: 'waiting' | 'running' | 'finished'
  verdict: GroupVerdict | null
  level: Level | null
  /** Of the first member that failed; null where none did. */
  reason: string | null
  delivered: boolean
  /** From first attempt to verdict; null while it runs. */
  seconds: number | null
  cost: GroupCost
  members: ListedMember[]
}

/** `record` is null while the group runs, and once its record is no longer kept: then its advantages are not known. */
export function listedGroup(group: GroupRun, record: GroupRecord | null): ListedGroup {
  const { settled, state } = group
  return {
    id: group.id,
    task: group.known.task.id,
    seed: group.seed,
    state: settled ? 'finished' : hasStarted(state) ? 'running' : 'waiting',
    verdict: settled?.verdict ?? null,
    level: record?.head.level ?? null,
    reason: firstReason(group),
    delivered: settled?.as === 'ready',
    seconds: settled?.seconds ?? null,
    cost: group.cost,
    members: record ? record.episodes.map(endedMember) : playedMembers(group),
  }
}

function endedMember(episode: GroupRecord['episodes'][number]): ListedMember {
  const { id, index, attempt, outcome, reason, reward, advantage, seconds } = episode
  return { id, index, attempt, phase: 'ended', outcome, reason, reward, advantage, seconds }
}

function playedMembers(group: GroupRun): ListedMember[] {
  return group.state.members.map(({ index, attempt, phase, outcome }) => ({
    id: episodeId(group, index),
    index,
    attempt,
    phase,
    outcome,
    reason: phase === 'ended' ? (group.results.get(index)?.reason ?? null) : null,
    reward: phase === 'ended' ? (group.results.get(index)?.header?.reward ?? null) : null,
    advantage: null,
    seconds: phase === 'ended' ? (group.results.get(index)?.seconds ?? null) : null,
  }))
}
