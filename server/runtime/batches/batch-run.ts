// A batch under way: its groups go on from where they are, and what is told of them while they do.
import type { AdmissionPause, BatchProgress } from '../../../protocol/batch.ts'
import { SETTLEMENTS } from '../../../protocol/outcomes.ts'
import { sumCounts } from '../../../protocol/turn-counts.ts'
import type { EvaluatedTask } from '../../../reward/evaluation.ts'
import { isFinished } from '../../../rollout/group.ts'
import type { ResumedBatch } from '../../../rollout/ports.ts'
import { createAttempts } from './batch-attempts.ts'
import type { BatchPlan } from './batch-plan.ts'
import { episodeProgress, groupProgress, total } from './batch-progress.ts'
import { replayBatch } from './batch-replay.ts'
import { createSettling } from './batch-settling.ts'
import type { BatchWorld, UnderWay } from './batch-world.ts'
import { createEventLog, type WritableEventLog } from './event-log.ts'
import { evaluatedTask, type GroupRun } from './group-run.ts'

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
  /** When it was submitted, seconds of the ledger's clock. */
  startedAt: number
  /** When a group's first attempt began, seconds of the ledger's clock; null for a group that has none. */
  begunAt(group: string): number | null
  /** Why no further group of it starts until it is resumed. */
  pause(): AdmissionPause | null
  /** Lets it start groups again; resolves when that is kept. */
  resume(): Promise<void>
  /** Withdraws what has not finished; finished groups stay to be leased. Resolves when that is kept. */
  cancel(): Promise<void>
  /** Stops without an end: what is under way goes on when its ledger is opened again. */
  halt(): void
}

/** Where a batch's pause is kept. */
export const pauseNote = (batch: string) => `pause/${batch}`

/** What is known of a batch from before a restart. */
interface Past {
  events: ResumedBatch['events']
  /** Why nothing of it can be played on. */
  obstacle: string | null
  life: number
  pause: AdmissionPause | null
}

/** Starts at once, or goes on after a restart; the batch is in the ledger already. */
export function startBatch(plan: BatchPlan, world: BatchWorld, past: Past | null = null): BatchRun {
  const { ledger, scheduler } = world
  const { groups, span, cancelled, damage } = replayBatch(plan, past?.events ?? [])
  const events = createEventLog(world.maxEvents, past?.life)
  const startedAt = span?.first ?? ledger.now()
  let endedAt = isPlayed() ? (span?.last ?? startedAt) : null
  let stale = ledger.deliveries(plan.id).stale
  ledger.watch(plan.id, () => {
    tellStale()
    world.onDelivery()
    checkDone()
  })
  const listener = {
    start: (group: GroupRun) => attempts.enqueue(group),
    onPause(pause: AdmissionPause) {
      const told = { type: 'paused', batch: plan.id, ...pause }
      keepPause(pause)
        .then(() => events.append('paused', JSON.stringify(told), world.now()))
        .catch(world.onError)
      world.onDelivery()
    },
  }
  const admission = world.admission.open(plan, listener, past?.pause ?? null)
  const batch: UnderWay = {
    plan,
    world,
    events,
    groups,
    admission,
    startedAt,
    cancelled,
    halted: false,
  }
  const settling = createSettling(batch, checkDone)
  const attempts = createAttempts(batch, settling)
  goOn(past?.obstacle ?? damage)

  /** Every group from where it is: a fresh one from its start. */
  function goOn(obstacle: string | null): void {
    const open = groups.filter((group) => !group.settled)
    const begun = open.filter((group) => group.startedAt !== null)
    for (const group of begun) attempts.open(group)
    if (obstacle !== null) void settling.fail(open, new Error(obstacle))
    else {
      admission.arrive(open.filter((group) => group.startedAt === null))
      // What they are played with has been seen to work.
      for (const group of groups) if (group.settled?.as === 'ready') admission.end(group)
      for (const group of begun) attempts.enqueue(group)
      for (const group of open)
        if (isFinished(group.state)) settling.guarded(settling.finish(group), group)
    }
    checkDone()
  }

  /** Null forgets it. A restart is no resume: what is wrong with a batch is so for the next server too. */
  function keepPause(pause: AdmissionPause | null): Promise<void> {
    return ledger.keepNote(pauseNote(plan.id), pause && { ...pause })
  }

  /** It starts nothing any more. */
  function leaveAdmission(): void {
    if (admission.pause()) keepPause(null).catch(world.onError)
    admission.leave()
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
      leaveAdmission()
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
    startedAt,
    begunAt: (id) => groups.find((group) => group.id === id)?.startedAt ?? null,
    pause: admission.pause,
    async resume() {
      if (admission.pause()) await keepPause(null)
      admission.resume()
      world.onDelivery()
    },
    async cancel() {
      if (isPlayed() || batch.cancelled) return
      await ledger.tell(plan.id, { type: 'cancel' })
      batch.cancelled = true
      leaveAdmission()
      scheduler.remove(plan.id)
      await Promise.all(groups.map(attempts.cancel))
    },
    halt() {
      batch.halted = true
      scheduler.remove(plan.id)
      for (const group of groups) {
        if (group.deadline) clearTimeout(group.deadline)
        group.controller.abort()
      }
    },
    progress() {
      const seconds = (endedAt ?? ledger.now()) - startedAt
      const state = batch.cancelled ? 'cancelled' : isPlayed() ? 'finished' : 'running'
      const silent = isPlayed()
        ? undefined
        : world.metrics.backendsDown().get(plan.request.policy.backend)
      const { ready, leased, ...left } = ledger.deliveries(plan.id)
      const settled = Object.fromEntries(
        SETTLEMENTS.flatMap((name) => (left[name] ? [[name, left[name]]] : [])),
      )
      return {
        id: plan.id,
        mode: plan.request.mode,
        state,
        admission: isPlayed() ? 'open' : admission.pause() ? 'paused' : scheduler.gateOf(plan.id),
        pause: admission.pause(),
        ...(silent !== undefined && { no_tokens_since: silent }),
        group_size: plan.request.group_size,
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
