// A batch's plan across a restart: what of it is kept, and whether the plan that is made again is still the same.
import { batchRequestSchema } from '../../../protocol/batch.ts'
import { canonicalJson, isPlainObject, type JsonObject } from '../../../protocol/json.ts'
import type { BatchEntry } from '../../../rollout/ports.ts'
import type { KnownTask } from '../packs/tasks.ts'
import { type BatchPlan, type PlanWorld, planBatch } from './batch-plan.ts'

/** All of a plan but the request and the tasks' specs, which the hash of their pack stands for. */
type PlanFacts = Omit<BatchPlan, 'id' | 'request' | 'tasks'> & {
  packs: Record<string, string>
  tasks: { id: string; environment: string; seed: number }[]
}

/** Facts that plans of older ledgers lack, as they were before there was a choice. */
const AT_FIRST = { stream: false, firstPrompt: 'template', version: null }

export interface RestoredPlan {
  plan: BatchPlan
  /** Why nothing of the batch can be played on; null where it can. */
  obstacle: string | null
}

/** What is kept of a plan with its batch. */
export function planFacts(plan: BatchPlan, packHash: (pack: string) => string | null): JsonObject {
  const { id: _, request, tasks, ...rest } = plan
  const packs = request.tasks.flatMap(({ task }) => task?.split('/')[0] ?? [])
  const facts: PlanFacts = {
    ...rest,
    packs: Object.fromEntries([...new Set(packs)].map((pack) => [pack, packHash(pack) ?? ''])),
    tasks: tasks.map(({ known: { task }, seed }) => ({
      id: task.id,
      environment: task.environment,
      seed,
    })),
  }
  return JSON.parse(JSON.stringify(facts)) as JsonObject
}

/**
 * Plans a kept batch again. Where that fails, or gives another plan, the plan is the kept one without its specs: good
 * for what is finished, and `obstacle` says in a sentence why the rest cannot go on.
 */
export async function restorePlan(entry: BatchEntry, world: PlanWorld): Promise<RestoredPlan> {
  try {
    const request = batchRequestSchema.parse(JSON.parse(entry.request))
    const plan = await planBatch(entry.id, request, world)
    const was = { ...entry.plan, policy: { ...AT_FIRST, ...(entry.plan.policy as JsonObject) } }
    const difference = firstDifference(was, planFacts(plan, world.tasks.packHash), '')
    if (difference === null) return { plan, obstacle: null }
    return { plan: keptPlan(entry), obstacle: `${difference} since the batch was submitted` }
  } catch (error) {
    const obstacle = `the batch cannot be planned again: ${(error as Error).message}`
    return { plan: keptPlan(entry), obstacle }
  }
}

function keptPlan({ id, request, plan }: BatchEntry): BatchPlan {
  const parsed: unknown = JSON.parse(request)
  // A request of an older ledger lacks what could not be asked for yet.
  const asked = batchRequestSchema.safeParse(parsed).data ?? (parsed as BatchPlan['request'])
  const { packs: _, tasks, ...rest } = plan as unknown as PlanFacts
  return {
    ...rest,
    id,
    request: asked,
    tasks: tasks.map(({ id, environment, seed }, index) => {
      const known: KnownTask = {
        task: { id, environment, spec: {} },
        description: { title: '', limits: {} },
        contract: rest.contract,
        graders: '',
      }
      return { known, seed, metadata: asked.tasks[index]?.metadata ?? {} }
    }),
  }
}

/** A sentence about the first value that is not what it was, by its path. */
function firstDifference(was: unknown, is: unknown, path: string): string | null {
  if (canonicalJson(was) === canonicalJson(is)) return null
  if (!isPlainObject(was) || !isPlainObject(is)) {
    if (path.startsWith('packs.')) return `pack ${path.slice('packs.'.length)} has changed`
    return `${path || 'the plan'} has changed from ${text(was)} to ${text(is)}`
  }
  for (const key of new Set([...Object.keys(was), ...Object.keys(is)])) {
    const found = firstDifference(was[key], is[key], path === '' ? key : `${path}.${key}`)
    if (found !== null) return found
  }
  return null
}

function text(value: unknown): string {
  return (JSON.stringify(value) ?? 'nothing').slice(0, 200)
}
