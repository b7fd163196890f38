// A batch under way: starts its groups' attempts in order, feeds the reducers, and hands finished groups to the ledger.
import type { AdmissionPause, BatchProgress } from '../../protocol/batch.ts'
import type { WhitenedSet } from '../../protocol/group.ts'
import { type GroupVerdict, SETTLEMENTS } from '../../protocol/outcomes.ts'
import { sumCounts } from '../../protocol/turn-counts.ts'
import type { EvaluatedTask } from '../../reward/evaluation.ts'
import type { EstimatedGroup } from '../../reward/explain.ts'
import type { Judgement } from '../../reward/verdict.ts'
import type { EpisodePlan } from '../../rollout/episode.ts'
import {
  deliveredMembers,
  groupReducer,
  isFinished,
  type Member,
  waitingMembers,
} from '../../rollout/group.ts'
import type { BatchEvent, EpisodePlace, Ledger, ResumedBatch } from '../../rollout/ports.ts'
import type { TurnEvent } from '../../rollout/turn-events.ts'
import { StoreFailed } from '../ledger/store.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Admission } from './admission.ts'
import { askedTotals } from './asked-cost.ts'
import type { BatchPlan } from './batch-plan.ts'
import { episodeProgress, firstReason, groupProgress, total } from './batch-progress.ts'
import { replacementOf, replayBatch } from './batch-replay.ts'
import { createEventLog, type WritableEventLog } from './event-log.ts'
import {
  applyEvent,
  endByFault,
  episodeId,
  evaluatedTask,
  type GroupRun,
  greedySuspect,
  groupRecord,
  judge,
  scoresOf,
} from './group-run.ts'
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
  /** The tasks of its groups that are over, with their episodes' rewards. */
  evaluated(): EvaluatedTask[]
  /** In their order; replacements come after the batch's own. */
  groups(): readonly GroupRun[]
  /** Nothing is running, ready or leased any more. */
  isDone(): boolean
  /** No group is under way any more: all that will ever be ready is. */
  isPlayed(): boolean
  /** When a group's first attempt began, seconds of the ledger's clock; null for a group that has none. */
  begunAt(group: string): number | null
  /** Why no further group of it starts until it is resumed. */
  pause(): AdmissionPause | null
  resume(): void
  /** Withdraws what has not finished; finished groups stay to be leased. Resolves when that is kept. */
  cancel(): Promise<void>
  /** Stops without an end: what is under way goes on when its ledger is opened again. */
  halt(): void
}

/** A group at its end; `replacement` is played in its stead. */
interface Finished {
  group: GroupRun
  judgement: Judgement
  advantages: EstimatedGroup | null
  whitened: WhitenedSet | null
  replacement: GroupRun | null
}

/** Flat groups in one place are replaced at most this often: a task that is always solved would never end. */
const MAX_REPLACEMENTS = 3
/** An attempt that has seen so many restarts without a reply between them is taken for their cause (OPS R5). */
const MAX_LIVES = 20

/** Starts at once, or goes on after a restart; the batch is in the ledger already. */
export function startBatch(
  plan: BatchPlan,
  world: BatchWorld,
  past: { events: ResumedBatch['events']; obstacle: string | null; life: number } | null = null,
): BatchRun {
  const { ledger, scheduler, metrics } = world
  const { mode, limits, group_size } = plan.request
  const replayed = replayBatch(plan, past?.events ?? [])
  const { groups, span } = replayed
  const events = createEventLog(world.maxEvents, past?.life)
  const startedAt = span?.first ?? ledger.now()
  let { cancelled } = replayed
  let endedAt = isPlayed() ? (span?.last ?? startedAt) : null
  let nextIndex = Math.max(...groups.map(({ index }) => index)) + 1
  /** Set when the server stops: attempts under way are left as they are, to go on after a restart. */
  let halted = false
  const settling = new Set<GroupRun>()
  let stale = ledger.deliveries(plan.id).stale
  ledger.watch(plan.id, () => {
    tellStale()
    world.onDelivery()
    checkDone()
  })
  const byId = new Map(groups.map((group) => [group.id, group]))
  const admission = world.admission.open(plan, {
    start(id) {
      const group = byId.get(id)
      if (group) enqueueWaiting(group)
    },
    onPause(pause) {
      const told = { type: 'paused', batch: plan.id, ...pause }
      events.append('paused', JSON.stringify(told), world.now())
      world.onDelivery()
    },
  })
  goOn(past?.obstacle ?? replayed.damage)

  /** Every group from where it is: a fresh one from its start. */
  function goOn(obstacle: string | null): void {
    const open = groups.filter((group) => !group.settled)
    const begun = open.filter((group) => group.startedAt !== null)
    for (const group of begun) openGroup(group)
    if (obstacle !== null) void failGroups(open, new Error(obstacle))
    else {
      admission.arrive(open.filter((group) => group.startedAt === null))
      // What they are played with has been seen to work.
      for (const group of groups) if (group.settled?.as === 'ready') admission.end(group)
      for (const group of begun) enqueueWaiting(group)
      for (const group of open) if (isFinished(group.state)) guarded(finishGroup(group), [group])
    }
    checkDone()
  }

  function enqueueWaiting(group: GroupRun): void {
    for (const member of waitingMembers(group.state)) enqueue(group, member)
  }

  function enqueue(group: GroupRun, { index }: Member): void {
    const place = group.startedAt === null ? 'last' : 'first'
    scheduler.enqueue(
      plan.id,
      {
        opensGroup: () => group.startedAt === null,
        run: () => guarded(playMember(group, index), [group]),
      },
      place,
    )
  }

  /** What is thrown here is a fault of ours, unless the ledger has failed: that ends the server. */
  async function guarded(work: Promise<void>, touched: readonly GroupRun[]): Promise<void> {
    try {
      await work
    } catch (error) {
      if (!(error instanceof StoreFailed)) await failGroups(touched, error)
    }
  }

  /**
   * Keeps an event and then lets it be seen. Events of a group come one after another, so that the ledger has them in the
   * order in which they were applied. False where the event fits no more once it is its turn.
   */
  function tell(group: GroupRun, event: Told, keep: () => Promise<void>): Promise<boolean> {
    const told = group.last.then(async () => {
      if (group.settled || !fits(group, event)) return false
      await keep()
      applyEvent(group, event, ledger.now())
      return true
    })
    group.last = told.then(
      () => {},
      () => {},
    )
    return told
  }

  async function playMember(group: GroupRun, index: number): Promise<void> {
    const member = group.state.members[index]
    if (member?.phase !== 'waiting' || halted) return
    const { attempt } = member
    const place = placeOf(group, index)
    const goesOn = group.begun.get(index)?.attempt === attempt
    const journal = goesOn ? ledger.journal(place.episode, attempt) : []
    const isFirst = group.startedAt === null
    const start = {
      type: 'start' as const,
      group: group.index,
      index,
      attempt,
      turns: journal.length,
    }
    if (!(await tell(group, start, () => ledger.tell(plan.id, start)))) return
    if (isFirst && group.deadline === null) openGroup(group)
    const begun = group.begun.get(index)
    /** The end of an attempt is told once it is kept. */
    const held: TurnEvent[] = []
    const played =
      (begun?.lives ?? 1) > MAX_LIVES
        ? poisoned()
        : await playAttempt(
            episodePlan(group, index, attempt),
            deadlines(group, begun?.at ?? ledger.now()),
            playerWorld(place, held),
            group.controller.signal,
            journal,
          )
    if (!halted) await endAttempt(group, index, attempt, played, held)
  }

  /** The group's clock runs from its first attempt on, restarts left out. */
  function openGroup(group: GroupRun): void {
    metrics.groupStarted(group.known.task.environment, mode)
    const left = limits.group_timeout_s - (ledger.now() - (group.startedAt ?? ledger.now()))
    group.deadline = setTimeout(
      () => guarded(closeByDeadline(group), [group]),
      Math.max(0, left) * 1000,
    )
    group.deadline.unref()
  }

  async function endAttempt(
    group: GroupRun,
    index: number,
    attempt: number,
    { sealed, outcome, reason, seconds, policySeconds, askedSeconds }: PlayedAttempt,
    held: readonly TurnEvent[],
  ): Promise<void> {
    const header = sealed?.header ?? null
    const besides = askedTotals(header?.asked ?? {}, askedSeconds)
    const cost = {
      prompt_tokens: header?.prompt_tokens ?? 0,
      completion_tokens: header?.completion_tokens ?? 0,
      seconds: policySeconds,
      ...(besides && { asked: besides }),
    }
    const end = { outcome, reason, header, cost }
    const event = { type: 'end' as const, group: group.index, index, attempt, end }
    const known = group.state.members.length
    // The group may have been given up while this attempt was played.
    if (!(await tell(group, event, () => ledger.end(placeOf(group, index), event, sealed)))) return
    for (const { type, json } of held) events.append(type, json, world.now())
    const env = group.known.task.environment
    const asked = Object.values(askedSeconds).reduce((sum, one) => sum + one, policySeconds)
    const ended = {
      env,
      mode,
      outcome,
      header,
      seconds,
      playedSeconds: Math.max(0, seconds - asked),
      backend: plan.policy.backend,
      group: group.id,
      episode: episodeId(group, index),
    }
    metrics.attemptEnded(ended)
    const member = group.state.members[index]
    if (member?.phase === 'waiting') {
      metrics.episodeRetried(env, outcome)
      enqueue(group, member)
    } else metrics.episodeFinished(ended)
    for (const added of group.state.members.slice(known)) enqueue(group, added)
    if (group.state.closing === 'short' || group.state.closing === 'enough')
      group.controller.abort()
    if (isFinished(group.state)) await finishGroup(group)
  }

  /** The group is over: judged now, given its advantages when the estimator has seen all that it must see. */
  async function finishGroup(group: GroupRun): Promise<void> {
    if (group.deadline) clearTimeout(group.deadline)
    group.deadline = null
    if (group.startedAt === null) openedAtTheEnd(group)
    admission.end(group)
    const seen = plan.seesBatch ? nextSet(groups.filter((one) => !settling.has(one))) : [group]
    for (const one of seen) settling.add(one)
    try {
      await settle(seen)
    } catch (error) {
      if (error instanceof StoreFailed) throw error
      await failGroups(seen, error)
    } finally {
      for (const one of seen) settling.delete(one)
    }
  }

  /** The groups whose advantages can be known together: all of the batch, or the next of its windows; none yet. */
  function nextSet(free: readonly GroupRun[]): GroupRun[] {
    const open = free.filter((one) => !one.settled)
    const over = open.filter((one) => isFinished(one.state))
    const { window } = plan.request.advantage
    if (window !== undefined && over.length >= window) return over.slice(0, window)
    // What is still being settled may be replaced by a group that belongs to the set.
    if (window === undefined && settling.size > 0) return []
    return over.length === open.length ? over : []
  }

  /** A group that was closed before it started has started and finished at once. */
  function openedAtTheEnd(group: GroupRun): void {
    group.startedAt = ledger.now()
    metrics.groupStarted(group.known.task.environment, mode)
  }

  /** Judges and keeps; flat groups that are replaced leave first, and what sees the batch waits for their replacements. */
  async function settle(finished: readonly GroupRun[]): Promise<void> {
    const all = finished.map((group) => ({ group, judgement: judge(plan, group) }))
    const judged = all.filter(({ group, judgement }) => !isReplaced(group, judgement.verdict))
    const flat = all.filter((one) => !judged.includes(one))
    await keep(
      flat.map((one) => ({
        ...one,
        advantages: null,
        whitened: null,
        replacement: replacementOf(plan, one.group, nextIndex++),
      })),
    )
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
    await keep(
      judged.map((one) => ({
        ...one,
        advantages: advantages[voting.indexOf(one)] ?? null,
        whitened: advantages[voting.indexOf(one)] ? whitenedSet(advantages) : null,
        replacement: null,
      })),
    )
    checkDone()
  }

  /** A fault of our own under a group: it settles as `infra` with the fault's words, and its batch goes on. */
  async function failGroups(failed: readonly GroupRun[], error: unknown): Promise<void> {
    world.onError(error)
    const reason = error instanceof Error ? error.message : String(error)
    const open = failed.filter((one) => !one.settled)
    for (const group of open) {
      group.controller.abort()
      endByFault(group, reason)
      if (group.startedAt === null) openedAtTheEnd(group)
      admission.end(group)
    }
    const stats = { n: group_size, scored: 0, mean: null, std: null, distinct: 0 }
    const unread = { components: {}, shared_anchor_share: null }
    const judgement: Judgement = { verdict: 'infra', level: null, stats: { ...stats, ...unread } }
    const kept = open.map((group) => ({
      group,
      judgement,
      advantages: null,
      whitened: null,
      replacement: null,
    }))
    await keep(kept).catch(world.onError)
    checkDone()
  }

  /** Puts finished groups into the ledger, all at once: in the same step they are settled here. */
  async function keep(finished: readonly Finished[]): Promise<void> {
    if (finished.length === 0) return
    const settled = finished.map(({ group, judgement, advantages, whitened, replacement }) => ({
      record: groupRecord(plan, group, judgement, advantages, whitened),
      event: {
        type: 'settle' as const,
        group: group.index,
        verdict: judgement.verdict,
        as: isDelivered(plan, judgement.verdict) ? ('ready' as const) : ('dropped' as const),
        fault: group.fault,
        replacement: replacement?.index ?? null,
      },
    }))
    await ledger.settle(plan.id, settled, () => {
      // First the new groups: a batch must not look done in between.
      for (const { replacement } of finished) if (replacement) addGroup(replacement)
      for (const [at, { group, judgement }] of finished.entries()) {
        const event = settled[at]?.event
        if (!event) continue
        applyEvent(group, event, ledger.now())
        told(group, judgement, event.as)
      }
    })
    const fresh = finished.flatMap(({ replacement }) => replacement ?? [])
    if (fresh.length > 0) admission.arrive(fresh)
  }

  function whitenedSet(estimated: readonly EstimatedGroup[]): WhitenedSet | null {
    const [first] = estimated
    if (!plan.seesBatch || !first) return null
    const { mean = null, std = null } = first.explain.batch ?? {}
    const over = plan.request.advantage.window === undefined ? 'batch' : 'window'
    return { over, groups: estimated.length, first: first.id, mean, std }
  }

  function addGroup(group: GroupRun): void {
    groups.push(group)
    byId.set(group.id, group)
  }

  function told(group: GroupRun, judgement: Judgement, as: 'ready' | 'dropped'): void {
    const { verdict, level, stats } = judgement
    if (group.deadline) clearTimeout(group.deadline)
    group.deadline = null
    const suspect = greedySuspect(group)
    if (as === 'dropped') world.onDropped(group.id, verdict, firstReason(group))
    metrics.groupFinished({
      id: group.id,
      env: group.known.task.environment,
      mode,
      judgement,
      cost: group.cost,
      seconds: ledger.now() - (group.startedAt ?? startedAt),
      temperature: plan.policy.sampling.temperature,
      greedySuspect: suspect,
      components: plan.contract.components,
      headers: deliveredMembers(group.state).map(
        ({ index }) => group.results.get(index)?.header ?? null,
      ),
    })
    const json = { type: 'verdict', batch: plan.id, group: group.id, verdict, level, stats }
    const more = { greedy_suspect: suspect, delivered: as === 'ready' }
    events.append('verdict', JSON.stringify({ ...json, ...more }), world.now())
  }

  function isReplaced(group: GroupRun, verdict: GroupVerdict): boolean {
    const { zero_variance } = plan.request.groups
    const wanted = zero_variance.startsWith('replace') && plan.request.mode === 'train'
    return (
      verdict === 'zero_variance' && wanted && !cancelled && group.replacements < MAX_REPLACEMENTS
    )
  }

  function placeOf(group: GroupRun, index: number): EpisodePlace {
    return { batch: plan.id, group: group.id, episode: episodeId(group, index) }
  }

  async function closeByDeadline(group: GroupRun): Promise<void> {
    const event = { type: 'close' as const, group: group.index }
    if (!(await tell(group, event, () => ledger.tell(plan.id, event)))) return
    if (isFinished(group.state)) await finishGroup(group)
  }

  /** The cancellation is kept for the whole batch, so that here it is only seen. */
  async function closeByCancel(group: GroupRun): Promise<void> {
    await group.last
    if (isFinished(group.state)) return
    group.state = groupReducer(group.state, { type: 'close', why: 'cancel' })
    group.controller.abort()
    if (isFinished(group.state)) await finishGroup(group)
  }

  function episodePlan(group: GroupRun, index: number, attempt: number): EpisodePlan {
    const { description, task } = group.known
    const { user, reward } = plan.request
    return {
      episode: episodeId(group, index),
      batch: plan.id,
      group: group.id,
      groupIndex: group.index,
      index,
      attempt,
      task: user === 'model' ? { ...task, user } : task,
      seed: group.seed,
      policy: plan.policy,
      ...(plan.asked && { asked: plan.asked }),
      progress: reward.progress,
      contract: plan.contract,
      limits: {
        maxTurns: Math.min(limits.max_turns, description.limits.max_turns ?? limits.max_turns),
        maxTokens: limits.max_tokens,
      },
      onParseError: description.on_parse_error ?? 'feedback',
    }
  }

  /** `begunAt`: of the attempt, on the ledger's clock, which stands still while no server runs. */
  function deadlines(group: GroupRun, begunAt: number) {
    const at = (begin: number, seconds: number) =>
      performance.now() + (begin + seconds - ledger.now()) * 1000
    return {
      turnMs: limits.turn_timeout_s * 1000,
      episodeAt: at(begunAt, limits.episode_timeout_s),
      groupAt: at(group.startedAt ?? begunAt, limits.group_timeout_s),
    }
  }

  function playerWorld(place: EpisodePlace, held: TurnEvent[]): PlayerWorld {
    return {
      pool: world.pool,
      client: world.client,
      beside: world.beside,
      keepTurn: ({ attempt }, entry) => ledger.turn(place, attempt, entry),
      onEvents(told) {
        for (const event of told)
          if (event.type === 'outcome') held.push(event)
          else events.append(event.type, event.json, world.now())
      },
    }
  }

  /** Groups that were ready and are too old for the weights of now, or of a training before. */
  function tellStale(): void {
    const now = ledger.deliveries(plan.id).stale
    if (now === stale) return
    const told = { type: 'stale', batch: plan.id, groups: now - stale }
    stale = now
    events.append('stale', JSON.stringify(told), world.now())
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
      endedAt = ledger.now()
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
    groups: () => groups,
    evaluated: () => groups.filter((group) => group.settled).map(evaluatedTask),
    isPlayed,
    isDone,
    begunAt: (id) => groups.find((group) => group.id === id)?.startedAt ?? null,
    pause: admission.pause,
    resume() {
      admission.resume()
      world.onDelivery()
    },
    async cancel() {
      if (isPlayed() || cancelled) return
      await ledger.tell(plan.id, { type: 'cancel' })
      cancelled = true
      admission.leave()
      scheduler.remove(plan.id)
      await Promise.all(groups.map((group) => guarded(closeByCancel(group), [group])))
    },
    halt() {
      halted = true
      scheduler.remove(plan.id)
      for (const group of groups) {
        if (group.deadline) clearTimeout(group.deadline)
        group.controller.abort()
      }
    },
    progress() {
      const seconds = (endedAt ?? ledger.now()) - startedAt
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
        counts: sumCounts(groups.map((group) => group.counts)),
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

type Told = Extract<BatchEvent, { type: 'start' | 'end' | 'close' }>

function fits({ state }: GroupRun, event: Told): boolean {
  if (event.type === 'close') return state.closing === null && !isFinished(state)
  const member = state.members[event.index]
  return (
    member?.attempt === event.attempt &&
    member.phase === (event.type === 'start' ? 'waiting' : 'running')
  )
}

function poisoned(): PlayedAttempt {
  const reason = `the server ended ${MAX_LIVES} times while this attempt was played, without a reply between them`
  return {
    sealed: null,
    outcome: 'infra_worker',
    reason,
    seconds: 0,
    policySeconds: 0,
    askedSeconds: {},
  }
}
