// A batch under way: starts its groups' attempts in order, feeds the reducers, and hands finished groups to the ledger.
import type { AdmissionPause, BatchProgress } from '../../protocol/batch.ts'
import { type GroupVerdict, SETTLEMENTS } from '../../protocol/outcomes.ts'
import type { GroupAdvantages } from '../../reward/estimator.ts'
import type { Judgement } from '../../reward/verdict.ts'
import type { EpisodePlan } from '../../rollout/episode.ts'
import {
  allEnded,
  deliveredMembers,
  groupReducer,
  isFinished,
  type Member,
  waitingMembers,
} from '../../rollout/group.ts'
import type { Ledger } from '../../rollout/ports.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Admission } from './admission.ts'
import type { BatchPlan } from './batch-plan.ts'
import { episodeProgress, firstReason, groupProgress, total } from './batch-progress.ts'
import { createEventLog, type WritableEventLog } from './event-log.ts'
import { episodeId, type GroupRun, groupRecord, judge, newGroupRun, scoresOf } from './group-run.ts'
import { type PlayedAttempt, type PlayerWorld, playAttempt } from './player.ts'
import type { Scheduler } from './scheduler.ts'

export interface BatchWorld {
  pool: PlayerWorld['pool']
  client: PlayerWorld['client']
  beside: PlayerWorld['beside']
  scheduler: Scheduler
  ledger: Ledger
  metrics: Metrics
  /** Unix seconds, for display only. */
  now(): number
  admission: Admission
  maxEvents: number
  onError(error: unknown): void
  /** A group that reaches no trainer. */
  onDropped(group: string, verdict: GroupVerdict, reason: string | null): void
  /** A group became ready, was leased, or left. */
  onDelivery(): void
}

export interface BatchRun {
  plan: BatchPlan
  events: WritableEventLog
  progress(): BatchProgress
  /** Nothing is running, ready or leased any more. */
  isDone(): boolean
  /** No group is under way any more: all that will ever be ready is. */
  isPlayed(): boolean
  /** Why no further group of it starts until it is resumed. */
  pause(): AdmissionPause | null
  resume(): void
  /** Withdraws what has not finished; finished groups stay to be leased. */
  cancel(): void
}

/** Flat groups in one place are replaced at most this often: a task that is always solved would never end. */
const MAX_REPLACEMENTS = 3

/** Starts at once; the batch is in the ledger already. */
export function startBatch(plan: BatchPlan, world: BatchWorld): BatchRun {
  const { ledger, scheduler, metrics } = world
  const { mode, limits, group_size } = plan.request
  const startedAt = performance.now()
  const events = createEventLog(world.maxEvents)
  const groups: GroupRun[] = []
  const byId = new Map<string, GroupRun>()
  let cancelled = false
  let endedAt: number | null = null
  ledger.watch(plan.id, () => {
    world.onDelivery()
    checkDone()
  })
  const admission = world.admission.open(plan, {
    start(id) {
      const group = byId.get(id)
      if (group) for (const member of waitingMembers(group.state)) enqueue(group, member)
    },
    onPause(pause) {
      const told = { type: 'paused', batch: plan.id, ...pause }
      events.append('paused', JSON.stringify(told), world.now())
      world.onDelivery()
    },
  })
  addGroups(
    plan.tasks.map((place, index) => newGroupRun(plan, { ...place, index, replacements: 0 })),
  )

  function addGroups(added: readonly GroupRun[]): void {
    for (const group of added) {
      groups.push(group)
      byId.set(group.id, group)
    }
    admission.arrive(added)
  }

  function enqueue(group: GroupRun, { index }: Member): void {
    const place = group.startedAt === null ? 'last' : 'first'
    scheduler.enqueue(
      plan.id,
      {
        opensGroup: () => group.startedAt === null,
        run: () => playMember(group, index).catch((error) => failGroups([group], error)),
      },
      place,
    )
  }

  async function playMember(group: GroupRun, index: number): Promise<void> {
    const member = group.state.members[index]
    if (member?.phase !== 'waiting') return
    if (group.startedAt === null) openGroup(group)
    group.state = groupReducer(group.state, { type: 'start', index })
    const episode = episodePlan(group, index, member.attempt)
    const played = await playAttempt(
      episode,
      deadlines(group),
      playerWorld(),
      group.controller.signal,
    )
    await endAttempt(group, index, member.attempt, played)
  }

  function openGroup(group: GroupRun): void {
    group.startedAt = performance.now()
    metrics.groupStarted(group.known.task.environment, mode)
    group.deadline = setTimeout(() => close(group, 'deadline'), limits.group_timeout_s * 1000)
    group.deadline.unref()
  }

  async function endAttempt(
    group: GroupRun,
    index: number,
    attempt: number,
    played: PlayedAttempt,
  ): Promise<void> {
    // The group may have been given up while this attempt was played.
    if (group.settled) return
    let { outcome, reason } = played
    let header = played.sealed?.header ?? null
    try {
      if (played.sealed) await ledger.seal(placeOf(group, index), played.sealed)
    } catch (error) {
      world.onError(error)
      ;[outcome, reason, header] = ['infra_store', (error as Error).message, null]
    }
    group.cost.prompt_tokens += header?.prompt_tokens ?? 0
    group.cost.completion_tokens += header?.completion_tokens ?? 0
    group.cost.seconds += played.policySeconds
    group.results.set(index, { attempt, outcome, reason, header })
    const known = group.state.members.length
    group.state = groupReducer(group.state, { type: 'end', index, outcome })
    const ended = {
      env: group.known.task.environment,
      mode,
      outcome,
      header,
      seconds: played.seconds,
      episode: episodeId(group, index),
    }
    metrics.attemptEnded(ended)
    const member = group.state.members[index]
    if (member?.phase === 'waiting') {
      group.retried[outcome] = (group.retried[outcome] ?? 0) + 1
      metrics.episodeRetried(group.known.task.environment, outcome)
      enqueue(group, member)
    } else metrics.episodeFinished(ended)
    for (const added of group.state.members.slice(known)) enqueue(group, added)
    if (group.state.closing === 'short') group.controller.abort()
    if (isFinished(group.state)) await finishGroup(group)
  }

  /** The group is over: judged now, given its advantages when the estimator has seen all that it must see. */
  async function finishGroup(group: GroupRun): Promise<void> {
    if (group.deadline) clearTimeout(group.deadline)
    group.deadline = null
    if (group.startedAt === null) openedAtTheEnd(group)
    admission.end(group)
    const seen = plan.seesBatch ? groups.filter((one) => !one.settled) : [group]
    if (!seen.every((one) => isFinished(one.state))) return
    await settle(seen).catch((error) => failGroups(seen, error))
  }

  /** A group that was closed before it started has started and finished at once. */
  function openedAtTheEnd(group: GroupRun): void {
    group.startedAt = performance.now()
    metrics.groupStarted(group.known.task.environment, mode)
  }

  /** Judges and keeps; flat groups that are replaced leave first, and what sees the batch waits for their replacements. */
  async function settle(finished: readonly GroupRun[]): Promise<void> {
    const all = finished.map((group) => ({ group, judgement: judge(plan, group) }))
    const judged = all.filter(({ group, judgement }) => !isReplaced(group, judgement.verdict))
    for (const { group, judgement } of all.filter((one) => !judged.includes(one))) {
      // First the new group: a batch must not look done in between.
      replace(group)
      await keep(group, judgement, null)
    }
    if (plan.seesBatch && judged.length < all.length) return
    const voting = judged.filter(({ judgement }) => judgement.stats.scored > 0)
    const advantages =
      voting.length === 0
        ? []
        : await world.pool.run('estimate', {
            estimator: plan.request.advantage.estimator,
            settings: plan.estimatorSettings,
            groups: voting.map(({ group }) => scoresOf(plan, group)),
          })
    for (const { group, judgement } of judged) {
      const at = voting.findIndex((one) => one.group === group)
      await keep(group, judgement, advantages[at] ?? null)
    }
    checkDone()
  }

  /** A fault of our own under a group: it settles as `infra` with the fault's words, and its batch goes on. */
  async function failGroups(failed: readonly GroupRun[], error: unknown): Promise<void> {
    world.onError(error)
    const reason = error instanceof Error ? error.message : String(error)
    for (const group of failed.filter((one) => !one.settled)) {
      group.controller.abort()
      for (const { index, attempt, phase } of group.state.members)
        if (phase !== 'ended')
          group.results.set(index, { attempt, outcome: 'infra_worker', reason, header: null })
      group.state = allEnded(group.state, 'infra_worker')
      if (group.startedAt === null) openedAtTheEnd(group)
      const stats = { n: group_size, scored: 0, mean: null, std: null, distinct: 0 }
      group.fault = reason
      admission.end(group)
      await keep(group, { verdict: 'infra', level: null, stats }, null).catch(world.onError)
    }
    checkDone()
  }

  async function keep(
    group: GroupRun,
    judgement: Judgement,
    advantages: GroupAdvantages | null,
  ): Promise<void> {
    const { verdict, level, stats } = judgement
    const as = isDelivered(plan, verdict) ? 'ready' : 'dropped'
    await ledger.settle(groupRecord(plan, group, judgement, advantages), as)
    group.settled = { verdict, as }
    if (as === 'dropped') world.onDropped(group.id, verdict, firstReason(group))
    const seconds = (performance.now() - (group.startedAt ?? startedAt)) / 1000
    metrics.groupFinished({
      env: group.known.task.environment,
      mode,
      judgement,
      cost: group.cost,
      seconds,
      temperature: plan.policy.sampling.temperature,
      components: plan.contract.components,
      headers: deliveredMembers(group.state).map(
        ({ index }) => group.results.get(index)?.header ?? null,
      ),
    })
    const told = {
      type: 'verdict',
      batch: plan.id,
      group: group.id,
      verdict,
      level,
      stats,
      delivered: as === 'ready',
    }
    events.append('verdict', JSON.stringify(told), world.now())
  }

  function isReplaced(group: GroupRun, verdict: GroupVerdict): boolean {
    const wanted = plan.request.groups.zero_variance === 'replace' && plan.request.mode === 'train'
    return (
      verdict === 'zero_variance' && wanted && !cancelled && group.replacements < MAX_REPLACEMENTS
    )
  }

  /** A fresh group of the same task in the place of a flat one. */
  function replace({ known, seed, metadata, replacements }: GroupRun): void {
    const place = { known, seed, metadata, index: groups.length, replacements: replacements + 1 }
    addGroups([newGroupRun(plan, place)])
  }

  function placeOf(group: GroupRun, index: number) {
    return { batch: plan.id, group: group.id, episode: episodeId(group, index) }
  }

  function close(group: GroupRun, why: 'cancel' | 'deadline'): void {
    if (isFinished(group.state)) return
    group.state = groupReducer(group.state, { type: 'close', why })
    if (why === 'cancel') group.controller.abort()
    if (isFinished(group.state)) finishGroup(group).catch((error) => failGroups([group], error))
  }

  function episodePlan(group: GroupRun, index: number, attempt: number): EpisodePlan {
    const { description, task } = group.known
    return {
      episode: episodeId(group, index),
      batch: plan.id,
      group: group.id,
      groupIndex: group.index,
      index,
      attempt,
      task,
      seed: group.seed,
      policy: plan.policy,
      contract: plan.contract,
      limits: {
        maxTurns: Math.min(limits.max_turns, description.limits.max_turns ?? limits.max_turns),
        maxTokens: limits.max_tokens,
      },
      onParseError: description.on_parse_error ?? 'feedback',
    }
  }

  function deadlines(group: GroupRun) {
    return {
      turnMs: limits.turn_timeout_s * 1000,
      episodeAt: performance.now() + limits.episode_timeout_s * 1000,
      groupAt: (group.startedAt ?? performance.now()) + limits.group_timeout_s * 1000,
    }
  }

  function playerWorld(): PlayerWorld {
    return {
      pool: world.pool,
      client: world.client,
      beside: world.beside,
      keepTurn: (episode, reply) => ledger.turn(episode.episode, episode.attempt, reply),
      onEvents(told) {
        for (const { type, json } of told) events.append(type, json, world.now())
      },
    }
  }

  function isPlayed(): boolean {
    return groups.every((group) => group.settled)
  }

  function isDone(): boolean {
    const { ready, leased } = ledger.deliveries(plan.id)
    return isPlayed() && ready === 0 && leased === 0
  }

  function checkDone(): void {
    if (isPlayed() && endedAt === null) {
      endedAt = performance.now()
      admission.leave()
      // Its share of the bounds is free for the others now.
      scheduler.gate(plan.id, 'open')
      world.onDelivery()
    }
    if (!events.ended && isDone()) {
      events.append('done', JSON.stringify({ type: 'done', batch: plan.id }), world.now())
      events.end()
    }
  }

  return {
    plan,
    events,
    isPlayed,
    isDone,
    pause: admission.pause,
    resume() {
      admission.resume()
      world.onDelivery()
    },
    cancel() {
      if (isPlayed()) return
      cancelled = true
      admission.leave()
      scheduler.remove(plan.id)
      for (const group of groups) close(group, 'cancel')
    },
    progress() {
      const seconds = ((endedAt ?? performance.now()) - startedAt) / 1000
      const state = cancelled ? 'cancelled' : isPlayed() ? 'finished' : 'running'
      const { ready, leased, ...left } = ledger.deliveries(plan.id)
      const settled = Object.fromEntries(
        SETTLEMENTS.flatMap((name) => (left[name] ? [[name, left[name]]] : [])),
      )
      return {
        id: plan.id,
        mode,
        state,
        admission: isPlayed() ? 'open' : admission.pause() ? 'paused' : scheduler.gateOf(plan.id),
        pause: admission.pause(),
        group_size,
        episodes: episodeProgress(groups),
        groups: { ...groupProgress(groups), ready, leased, settled },
        tokens: {
          prompt: total(groups, (group) => group.cost.prompt_tokens),
          completion: total(groups, (group) => group.cost.completion_tokens),
        },
        seconds,
        done: isDone(),
      }
    },
  }
}

/** A failed group never reaches a trainer; an evaluation wants to see every group. */
function isDelivered(plan: BatchPlan, verdict: GroupVerdict): boolean {
  if (plan.request.mode === 'eval') return true
  if (verdict === 'zero_variance') return plan.request.groups.zero_variance === 'deliver'
  return verdict === 'valid' || verdict === 'partial'
}
