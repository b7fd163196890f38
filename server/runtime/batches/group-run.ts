// One group under way: its reducer's state, what its attempts cost, and the record that is delivered at its end.
import { setMaxListeners } from 'node:events'
import type { GroupCost } from '../../../protocol/batch.ts'
import type { DeliveredEpisode, DeliveredGroup, LossNormalizer } from '../../../protocol/group.ts'
import type { JsonObject } from '../../../protocol/json.ts'
import { type EpisodeOutcome, type GroupVerdict, isScored } from '../../../protocol/outcomes.ts'
import type { EpisodeHeader } from '../../../protocol/sealed.ts'
import { NO_COUNTS, sumCounts, type TurnCounts } from '../../../protocol/turn-counts.ts'
import { countedRewards } from '../../../reward/compose.ts'
import type { GroupAdvantages, GroupScores, MemberScore } from '../../../reward/estimator.ts'
import type { EvaluatedTask } from '../../../reward/evaluation.ts'
import type { EstimatedGroup } from '../../../reward/explain.ts'
import { isGreedySuspect } from '../../../reward/greedy-suspect.ts'
import { groupVerdict, type Judgement } from '../../../reward/verdict.ts'
import {
  allEnded,
  deliveredMembers,
  type GroupState,
  groupReducer,
  type Member,
  newGroup,
} from '../../../rollout/group.ts'
import type { AttemptEnd, BatchEvent, GroupRecord } from '../../../rollout/ports.ts'
import { addTotals } from '../asking/asked-cost.ts'
import type { KnownTask } from '../packs/tasks.ts'
import type { BatchPlan } from './batch-plan.ts'

/** What the last attempt of a member came to. */
interface Result extends Omit<AttemptEnd, 'cost'> {
  attempt: number
  /** Absent where it was never played. */
  cost?: GroupCost
}

/** An attempt that has begun, as it is found after a restart. */
interface Begun {
  attempt: number
  /** Seconds of the ledger's clock. */
  at: number
  /** Replies that were kept when it was begun last, and how often it was begun with as many. */
  turns: number
  lives: number
  /** How often the process died with as many while a thread played it, as far as that was watched. */
  deaths: number
  /** A thread plays it now, or did so when the process died. */
  plays: boolean
}

export interface GroupRun {
  id: string
  /** Place in the batch, from 0; a replacement gets a place of its own. */
  index: number
  known: KnownTask
  seed: number
  metadata: JsonObject
  /** Which of the plan's tasks it plays. */
  taskIndex: number
  /** How often a flat group in this place was replaced before. */
  replacements: number
  state: GroupState
  results: Map<number, Result>
  /** By member, until its attempt ends. */
  begun: Map<number, Begun>
  /** Attempts that failed and were tried again, by outcome. */
  retried: Partial<Record<EpisodeOutcome, number>>
  cost: GroupCost
  /** The part of it that went to attempts after which another one was made. */
  retriedCost: GroupCost
  /** Over all attempts, as the cost is. */
  counts: TurnCounts
  /** Of the batch's sampling. */
  temperature: number
  /** Seconds of the ledger's clock; null until the first attempt starts. */
  startedAt: number | null
  /** Withdraws the attempts that run. */
  controller: AbortController
  deadline: NodeJS.Timeout | null
  /** Words of a fault of our own that ended the group; null for every other end. */
  fault: string | null
  /** Its events one after another: what one says is durable, and seen, before the next is looked at. */
  last: Promise<void>
  /** Set once the group is in the ledger. */
  settled: {
    replaced: boolean
    seconds: number
    verdict: GroupVerdict
    as: 'ready' | 'dropped'
    greedySuspect: boolean
  } | null
}

type GroupRunEvent = Extract<BatchEvent, { group: number }>

export function newGroupRun(
  plan: BatchPlan,
  place: Pick<GroupRun, 'index' | 'taskIndex' | 'known' | 'seed' | 'metadata' | 'replacements'>,
): GroupRun {
  const { group_size, groups } = plan.request
  const controller = new AbortController()
  // Every attempt under way listens, which may be more than Node takes for a leak.
  setMaxListeners(0, controller.signal)
  return {
    ...place,
    id: `${plan.id}.g${place.index}`,
    state: newGroup({
      size: group_size,
      attempts: groups.attempts,
      minScored: plan.minScored,
      onShort: groups.on_short,
      retryTimeouts: groups.retry_timeouts,
      stopEarly: groups.stop_early,
      ...(groups.enough !== undefined && { enough: groups.enough }),
    }),
    results: new Map(),
    begun: new Map(),
    last: Promise.resolve(),
    retried: {},
    cost: { prompt_tokens: 0, completion_tokens: 0, seconds: 0 },
    retriedCost: { prompt_tokens: 0, completion_tokens: 0, seconds: 0 },
    counts: NO_COUNTS,
    temperature: plan.policy.sampling.temperature,
    startedAt: null,
    controller,
    deadline: null,
    fault: null,
    settled: null,
  }
}

/** What an event of its batch makes of a group, at the time or replayed; `at` is of the ledger's clock. */
export function applyEvent(group: GroupRun, event: GroupRunEvent, at: number): void {
  switch (event.type) {
    case 'start': {
      const { index, attempt, turns } = event
      group.startedAt ??= at
      const before = group.begun.get(index)
      const again = before?.attempt === attempt
      const stuck = again && before.turns === turns
      group.begun.set(index, {
        attempt,
        at: again ? before.at : at,
        turns,
        lives: stuck ? before.lives + 1 : 1,
        deaths: stuck ? before.deaths + (before.plays ? 1 : 0) : 0,
        plays: false,
      })
      if (group.state.members[index]?.phase === 'waiting')
        group.state = groupReducer(group.state, { type: 'start', index })
      return
    }
    case 'play': {
      const begun = group.begun.get(event.index)
      if (begun?.attempt === event.attempt) begun.plays = event.plays
      return
    }
    case 'end': {
      const { index, attempt, end } = event
      const { cost, outcome } = end
      group.begun.delete(index)
      spend(group.cost, cost)
      if (end.header) group.counts = sumCounts([group.counts, end.header])
      setResult(group, index, { ...end, attempt })
      group.state = groupReducer(group.state, { type: 'end', index, outcome })
      if (group.state.members[index]?.phase === 'waiting')
        group.retried[outcome] = (group.retried[outcome] ?? 0) + 1
      return
    }
    case 'close':
      group.state = groupReducer(group.state, { type: 'close', why: 'deadline' })
      return
    case 'settle':
      if (event.fault !== null) endByFault(group, event.fault)
      group.startedAt ??= at
      group.settled = {
        verdict: event.verdict,
        as: event.as,
        replaced: event.replacement !== null,
        seconds: at - group.startedAt,
        greedySuspect: greedySuspect(group),
      }
  }
}

function spend(sum: GroupCost, cost: GroupCost): void {
  sum.prompt_tokens += cost.prompt_tokens
  sum.completion_tokens += cost.completion_tokens
  sum.seconds += cost.seconds
  if (cost.asked) sum.asked = addTotals(sum.asked, cost.asked)
}

/** Where there was one, its attempt was not the member's last. */
function setResult(group: GroupRun, index: number, result: Result): void {
  const before = group.results.get(index)?.cost
  if (before) spend(group.retriedCost, before)
  group.results.set(index, result)
}

/** Every member that has not ended ends as `infra_worker`, with the words of the fault. */
export function endByFault(group: GroupRun, reason: string): void {
  group.fault = reason
  for (const { index, attempt, phase } of group.state.members)
    if (phase !== 'ended')
      setResult(group, index, { attempt, outcome: 'infra_worker', reason, header: null })
  group.state = allEnded(group.state, 'infra_worker')
}

/** An episode's id: its group's, and its place in it. */
export function episodeId(group: GroupRun, index: number): string {
  return `${group.id}.e${index}`
}

/** The verdict over the members that are delivered. */
export function judge(plan: BatchPlan, group: GroupRun): Judgement {
  const { group_size, groups, advantage } = plan.request
  return groupVerdict({
    groupSize: group_size,
    minScored: plan.minScored,
    acceptPartial: groups.on_short === 'close',
    contract: plan.contract,
    estimator: advantage.estimator,
    episodes: judgedMembers(group).map(({ index, outcome }) => {
      const header = group.results.get(index)?.header
      return {
        outcome: outcome ?? 'aborted',
        reward: header?.reward ?? null,
        rewards: header?.rewards ? countedRewards(plan.contract, header.rewards) : null,
        distinctKey: header?.completion_digest ?? '',
      }
    }),
  })
}

/** Whether the scored members all said the same where the sampling should have told them apart. */
export function greedySuspect(group: GroupRun): boolean {
  const scored = deliveredMembers(group.state).flatMap(({ index, outcome }) =>
    outcome && isScored(outcome) ? (group.results.get(index)?.header ?? []) : [],
  )
  return isGreedySuspect(
    group.temperature,
    scored.map(({ completion_digest: digest, completion_tokens: tokens }) => ({ digest, tokens })),
  )
}

/** Of a group that stopped since it was lost, those who decided it: who was withdrawn for that did not fail. */
function judgedMembers({ state }: GroupRun): Member[] {
  const members = deliveredMembers(state)
  return state.closing === 'short'
    ? members.filter(({ outcome }) => outcome !== 'aborted')
    : members
}

/** What the estimator sees of a group. Where no turn of it was paid, each episode's reward is that of its last turn. */
export function scoresOf(plan: BatchPlan, group: GroupRun): GroupScores {
  const delivered = deliveredMembers(group.state)
  const paid = delivered.some(({ index }) =>
    group.results.get(index)?.header?.turns.some((turn) => turn.reward !== 0),
  )
  const members = delivered.map(({ index, outcome }): MemberScore => {
    const result = group.results.get(index)
    const header = result?.header
    const reward = header?.reward ?? null
    const counted = countedRewards(plan.contract, header?.rewards ?? {})
    const turns = header?.turns ?? []
    return {
      id: episodeId(group, index),
      reward,
      reason: reward === null ? (outcome ?? 'aborted') : null,
      components: Object.fromEntries(
        plan.contract.components.map((name) => [name, counted[name] ?? null]),
      ),
      tokens: header?.completion_tokens ?? 0,
      steps: turns.map((turn, k) => ({
        reward: paid ? turn.reward : k === turns.length - 1 ? (reward ?? 0) : 0,
        anchor: turn.anchor,
      })),
    }
  })
  return { id: group.id, members }
}

/** What an evaluation sees of a group; a task that names no family is of its environment's. */
export function evaluatedTask(group: GroupRun): EvaluatedTask {
  const { task, description } = group.known
  return {
    task: task.id,
    family: typeof description.family === 'string' ? description.family : task.environment,
    episodes: deliveredMembers(group.state).map(({ index, outcome }) => ({
      outcome: outcome ?? 'aborted',
      reward: group.results.get(index)?.header?.reward ?? null,
    })),
  }
}

/** The record that is kept and leased: verdict, advantages, and every member's head. */
export function groupRecord(
  plan: BatchPlan,
  group: GroupRun,
  judgement: Judgement,
  advantages: EstimatedGroup | null,
  whitened: DeliveredGroup['whitened'],
): GroupRecord {
  const members = deliveredMembers(group.state)
  const asked = plan.request.policy.version ?? null
  const headers = members.flatMap(({ index }) => group.results.get(index)?.header ?? [])
  return {
    id: group.id,
    batch: plan.id,
    head: {
      id: group.id,
      batch: plan.id,
      task: group.known.task.id,
      seed: group.seed,
      metadata: group.metadata,
      verdict: judgement.verdict,
      level: judgement.level,
      contract: plan.contractLabel,
      estimator: plan.request.advantage.estimator,
      loss_normalizer: lossNormalizer(plan),
      whitened,
      policy: {
        model: plan.policy.model,
        version_min: extreme(headers, (header) => header.version_min, Math.min) ?? asked,
        version_max: extreme(headers, (header) => header.version_max, Math.max) ?? asked,
        logprobs_mode: plan.policy.logprobsMode ?? 'unknown',
      },
      stats: {
        ...judgement.stats,
        shared_anchor_share: advantages?.explain.shared_anchor_share ?? null,
      },
      cost: group.cost,
      counts: sumCounts(headers),
      greedy_suspect: greedySuspect(group),
    },
    episodes: members.map(({ index }, place) =>
      episodeHead(plan, group, index, advantages?.members[place] ?? null),
    ),
    explanation: advantages?.explanation ?? null,
  }
}

/** A constant that nobody has set is the generation budget (Dr. GRPO, arXiv:2503.20783), which the batch names. */
function lossNormalizer({ estimatorSettings, request }: BatchPlan): LossNormalizer {
  const { kind, value } = (estimatorSettings as { loss_normalizer: LossNormalizer }).loss_normalizer
  return { kind, value: kind === 'constant' ? (value ?? request.limits.max_tokens) : value }
}

function episodeHead(
  plan: BatchPlan,
  group: GroupRun,
  index: number,
  advantage: GroupAdvantages['members'][number] | null,
): Omit<DeliveredEpisode, 'grade' | 'samples'> {
  const result = group.results.get(index)
  const header = result?.header ?? null
  const own = advantage?.advantage ?? null
  return {
    id: episodeId(group, index),
    index,
    attempt: result?.attempt ?? 0,
    outcome: result?.outcome ?? 'aborted',
    reason: result ? result.reason : 'the group was closed before this episode started',
    reward: header?.reward ?? null,
    rewards: header?.rewards ? renamed(header.rewards, plan.request.reward.rename) : null,
    shaping: header?.shaping ?? [],
    advantage: own,
    counts: header === null ? NO_COUNTS : sumCounts([header]),
    turns: (header?.turns ?? []).map(({ sample, start, end, anchor }, turn) => ({
      sample,
      start,
      end,
      advantage: advantage?.steps?.[turn] ?? own,
      anchor,
    })),
    seconds: result?.seconds ?? null,
  }
}

function renamed<T>(rewards: Record<string, T>, rename: Record<string, string>): Record<string, T> {
  return Object.fromEntries(
    Object.entries(rewards).map(([name, value]) => [
      Object.hasOwn(rename, name) ? rename[name] : name,
      value,
    ]),
  )
}

function extreme(
  headers: readonly EpisodeHeader[],
  value: (header: EpisodeHeader) => number | null,
  pick: (...values: number[]) => number,
): number | null {
  const known = headers.flatMap((header) => value(header) ?? [])
  return known.length === 0 ? null : pick(...known)
}
