// A batch after a restart: its groups as the events in the ledger left them, ready to go on.
import { groupReducer } from '../../../rollout/group.ts'
import type { ResumedBatch } from '../../../rollout/ports.ts'
import type { BatchPlan } from './batch-plan.ts'
import { applyEvent, type GroupRun, newGroupRun } from './group-run.ts'

export interface ReplayedBatch {
  groups: GroupRun[]
  cancelled: boolean
  /** Seconds of the ledger's clock of its first event and of its last; null where nothing has happened. */
  span: { first: number; last: number } | null
  /** Why it cannot go on; null where it can. */
  damage: string | null
}

/** Plays the events of a batch over its plan. Attempts that were under way wait to go on. */
export function replayBatch(plan: BatchPlan, events: ResumedBatch['events']): ReplayedBatch {
  const groups = new Map<number, GroupRun>()
  for (const [index, place] of plan.tasks.entries())
    groups.set(index, newGroupRun(plan, { ...place, index, taskIndex: index, replacements: 0 }))
  const cancelled = events.some(({ event }) => event.type === 'cancel')
  let damage: string | null = null
  for (const { at, event } of events) {
    if (event.type === 'cancel') continue
    const group = groups.get(event.group)
    try {
      if (!group) throw new Error(`there is no group ${event.group}`)
      if (event.type === 'settle' && event.replacement !== null)
        groups.set(event.replacement, replacementOf(plan, group, event.replacement))
      applyEvent(group, event, at)
    } catch (error) {
      damage ??= `what happened to batch ${plan.id} does not fit together: ${(error as Error).message}`
    }
  }
  for (const group of groups.values()) if (!group.settled) interrupt(group, cancelled)
  const [first, last] = [events[0], events.at(-1)]
  const span = first && last ? { first: first.at, last: last.at } : null
  return { groups: [...groups.values()], cancelled, span, damage }
}

function interrupt(group: GroupRun, cancelled: boolean): void {
  for (const { index, phase } of group.state.members)
    if (phase === 'running') group.state = groupReducer(group.state, { type: 'interrupt', index })
  if (cancelled) group.state = groupReducer(group.state, { type: 'close', why: 'cancel' })
}

/** A fresh group of the same task, or of the batch's next one, in the place of a flat one. */
export function replacementOf(plan: BatchPlan, flat: GroupRun, index: number): GroupRun {
  const next = plan.request.groups.zero_variance === 'replace_next'
  const taskIndex = (flat.taskIndex + (next ? 1 : 0)) % plan.tasks.length
  const { known, seed, metadata } = plan.tasks[taskIndex] ?? flat
  const replacements = flat.replacements + 1
  return newGroupRun(plan, { known, seed, metadata, index, taskIndex, replacements })
}
