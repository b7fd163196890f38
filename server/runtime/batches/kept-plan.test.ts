// What is kept of a plan, and what is left of it where it cannot be made again.
import { expect, test } from 'vitest'
import type { BatchPlan, PlanWorld } from './batch-plan.ts'
import { planFacts, restorePlan } from './kept-plan.ts'

const task = { id: 'sums/one', environment: 'arithmetic', spec: { secret: 42 } }
const request = { tasks: [{ task: 'sums/one', metadata: { row: 1 } }], group_size: 2 }
const plan = {
  id: 'b',
  request,
  contract: { name: 'sum', version: 1 },
  contractLabel: 'sum@1',
  minScored: 2,
  tasks: [{ known: { task }, seed: 7, metadata: { row: 1 } }],
} as unknown as BatchPlan

test('facts have each pack by its hash and each task without its spec', () => {
  const facts = planFacts(plan, (pack) => `hash of ${pack}`)
  expect(facts.packs).toEqual({ sums: 'hash of sums' })
  expect(facts.tasks).toEqual([{ id: 'sums/one', environment: 'arithmetic', seed: 7 }])
  expect(facts).not.toHaveProperty('request')
  expect(JSON.stringify(facts)).not.toContain('secret')
})

test('a batch that cannot be planned again has its kept plan, and says why', async () => {
  const entry = {
    id: 'b',
    digest: 'd',
    request: JSON.stringify(request),
    plan: planFacts(plan, () => 'hash'),
  }
  const world = { backends: {}, engineHosts: [], asks: {}, tasks: {} } as unknown as PlanWorld
  const restored = await restorePlan(entry, world)
  expect(restored.obstacle).toMatch(/^the batch cannot be planned again: /)
  expect(restored.plan).toMatchObject({ id: 'b', request, contractLabel: 'sum@1', minScored: 2 })
  expect(restored.plan.tasks).toMatchObject([
    { known: { task: { id: 'sums/one', spec: {} } }, seed: 7, metadata: { row: 1 } },
  ])
})

test('a kept request that lacks what came later has its default', async () => {
  const entry = {
    id: 'b',
    digest: 'd',
    request: JSON.stringify(request),
    plan: planFacts(plan, () => ''),
  }
  const world = { backends: {}, engineHosts: [], asks: {}, tasks: {} } as unknown as PlanWorld
  const restored = await restorePlan(entry, world)
  expect(restored.plan.request).toMatchObject({ gate: 'load', groups: { stop_early: false } })
})
