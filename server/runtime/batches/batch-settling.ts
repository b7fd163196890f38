// How the groups of a batch end: judged, given their advantages, and kept, all that belong together at once.
import type { WhitenedSet } from '../../../protocol/group.ts'
import type { GroupVerdict } from '../../../protocol/outcomes.ts'
import type { EstimatedGroup } from '../../../reward/explain.ts'
import type { Judgement } from '../../../reward/verdict.ts'
import { deliveredMembers, isFinished } from '../../../rollout/group.ts'
import { StoreFailed } from '../../ledger/store.ts'
import type { BatchPlan } from './batch-plan.ts'
import { firstReason } from './batch-progress.ts'
import { replacementOf } from './batch-replay.ts'
import type { UnderWay } from './batch-world.ts'
import {
  applyEvent,
  endByFault,
  type GroupRun,
  greedySuspect,
  groupRecord,
  judge,
  scoresOf,
} from './group-run.ts'

export interface Settling {
  /** The group is over: judged now, given its advantages when the estimator has seen all that it must see. */
  finish(group: GroupRun): Promise<void>
  /** A fault of our own under groups: they settle as `infra` with the fault's words, and their batch goes on. */
  fail(groups: readonly GroupRun[], error: unknown): Promise<void>
  /** What is thrown by the work is a fault of ours under the group, unless the ledger has failed: that ends the server. */
  guarded(work: Promise<void>, group: GroupRun): Promise<void>
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

/** `onSettled` is told each time after groups were kept. */
export function createSettling(batch: UnderWay, onSettled: () => void): Settling {
  const { plan, world, groups, events, admission } = batch
  const { ledger, metrics } = world
  const { mode, group_size } = plan.request
  const settling = new Set<GroupRun>()
  let nextIndex = Math.max(...groups.map(({ index }) => index)) + 1

  async function finish(group: GroupRun): Promise<void> {
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
      await fail(seen, error)
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
        whitened: advantages[voting.indexOf(one)] ? whitenedSet(plan, advantages) : null,
        replacement: null,
      })),
    )
    onSettled()
  }

  async function fail(failed: readonly GroupRun[], error: unknown): Promise<void> {
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
    onSettled()
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
    const fresh = finished.flatMap(({ replacement }) => replacement ?? [])
    await ledger.settle(plan.id, settled, () => {
      // First the new groups: a batch must not look done in between.
      groups.push(...fresh)
      for (const [at, { group, judgement }] of finished.entries()) {
        const event = settled[at]?.event
        if (!event) continue
        applyEvent(group, event, ledger.now())
        told(group, judgement, event.as)
      }
    })
    if (fresh.length > 0) admission.arrive(fresh)
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
      seconds: ledger.now() - (group.startedAt ?? batch.startedAt),
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
    const wanted = zero_variance.startsWith('replace') && mode === 'train' && !batch.cancelled
    return verdict === 'zero_variance' && wanted && group.replacements < MAX_REPLACEMENTS
  }

  return {
    finish,
    fail,
    async guarded(work, group) {
      try {
        await work
      } catch (error) {
        if (!(error instanceof StoreFailed)) await fail([group], error)
      }
    },
  }
}

function whitenedSet(plan: BatchPlan, estimated: readonly EstimatedGroup[]): WhitenedSet | null {
  const [first] = estimated
  if (!plan.seesBatch || !first) return null
  const { mean = null, std = null } = first.explain.batch ?? {}
  const over = plan.request.advantage.window === undefined ? 'batch' : 'window'
  return { over, groups: estimated.length, first: first.id, mean, std }
}

/** A failed group never reaches a trainer; an evaluation wants to see every group. */
function isDelivered(plan: BatchPlan, verdict: GroupVerdict): boolean {
  if (plan.request.mode === 'eval') return true
  if (verdict === 'zero_variance') return plan.request.groups.zero_variance === 'deliver'
  return verdict === 'valid' || verdict === 'partial'
}
