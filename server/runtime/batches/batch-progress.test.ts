// What the progress tells of costs: attempts that were tried again apart, and no dust where there were none.
import { expect, test } from 'vitest'
import type { GroupCost } from '../../../protocol/batch.ts'
import type { EpisodeOutcome } from '../../../protocol/outcomes.ts'
import type { BatchPlan } from './batch-plan.ts'
import { groupProgress } from './batch-progress.ts'
import { applyEvent, type GroupRun, newGroupRun } from './group-run.ts'

type Attempt = [index: number, outcome: EpisodeOutcome, cost: GroupCost]

const cost = (seconds: number, asked?: number): GroupCost => ({
  ...{ prompt_tokens: 10, completion_tokens: 1, seconds },
  ...(asked !== undefined && {
    asked: {
      user: { requests: 1, kept: 0, prompt_tokens: 1, completion_tokens: 1, seconds: asked },
    },
  }),
})

/** A group of `size` that is over, after its attempts in this order. */
function over(index: number, size: number, attempts: Attempt[]): GroupRun {
  const plan = {
    id: 'b',
    minScored: 1,
    policy: { sampling: { temperature: 1 } },
    request: {
      group_size: size,
      groups: { attempts: 2, on_short: 'retry', retry_timeouts: false, stop_early: false },
    },
  } as BatchPlan
  const known = { task: { id: 't' } } as GroupRun['known']
  const place = { index, taskIndex: index, known, seed: 0, metadata: {}, replacements: 0 }
  const group = newGroupRun(plan, place)
  const tries = new Map<number, number>()
  for (const [member, outcome, cost] of attempts) {
    const attempt = (tries.get(member) ?? 0) + 1
    tries.set(member, attempt)
    const end = { outcome, reason: null, header: null, cost, seconds: null } as never
    applyEvent(group, { type: 'start', group: index, index: member, attempt, turns: 0 } as never, 0)
    applyEvent(group, { type: 'end', group: index, index: member, attempt, end } as never, 1)
  }
  const settle = { type: 'settle', as: 'ready', verdict: 'valid', fault: null, replacement: null }
  applyEvent(group, { ...settle, group: index } as never, 2)
  return group
}

test('where nothing was tried again, that cost exactly nothing, in whatever order seconds are added up', () => {
  // 0.3 + (0.2 + 0.1) is more than 0.3 + 0.2 + 0.1 in binary fractions.
  const groups = [
    over(0, 1, [[0, 'ok', cost(0.3, 0.3)]]),
    over(1, 2, [
      [0, 'ok', cost(0.2, 0.2)],
      [1, 'ok', cost(0.1, 0.1)],
    ]),
  ]
  expect(groupProgress(groups).costs.retried).toEqual({
    ...{ prompt_tokens: 0, completion_tokens: 0, seconds: 0 },
  })
})

test('what was tried again costs what those attempts cost', () => {
  const groups = [
    over(0, 1, [
      [0, 'infra_worker', cost(0.7, 0.2)],
      [0, 'ok', cost(0.1, 0.1)],
    ]),
    over(1, 1, [[0, 'ok', cost(0.2)]]),
  ]
  expect(groupProgress(groups).costs.retried).toEqual(cost(0.7, 0.2))
})
