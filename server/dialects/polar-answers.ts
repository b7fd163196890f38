// What a poll or a callback of one of Polar's tasks says: the sessions of its finished group, or how far it is.
import type { JsonObject } from '../../protocol/json.ts'
import { type EpisodeOutcome, type GroupVerdict, isScored } from '../../protocol/outcomes.ts'
import type { Service } from '../service.ts'
import type { LogprobForm, LogprobForms } from './polar-logprobs.ts'
import { toldName } from './polar-names.ts'
import { failedSession, polarBody } from './polar-results.ts'
import type { Task } from './polar-task.ts'

export interface PolarAnswers {
  /** The finished task's body. A group that failed as a whole was not kept: each of its sessions says why. */
  result(task: Task, logprobs?: LogprobForm): Promise<Uint8Array>
  running(task: Task): Uint8Array
  /** Where nothing more is known than that, and how many sessions it had. */
  bare(taskId: string, status: 'running' | 'cancelled', samples: number, done?: number): Uint8Array
}

export function createPolarAnswers(service: Service, forms: LogprobForms): PolarAnswers {
  async function result(
    task: Task,
    logprobs: LogprobForm = task.logprobs ?? forms.now(),
  ): Promise<Uint8Array> {
    const { metadata, samples, enough = null } = task
    const task_id = toldName(task)
    const form = { kind: 'polar', task_id, metadata, logprobs, enough } as const
    const kept = await service.peek(task.batch, form)
    if (kept) return kept
    const failure = failureOf(task)
    const { groups } = await service.groups(task.batch, { offset: 0, limit: 1 })
    const sessions = Array.from({ length: samples }, (_, index) => {
      const own = groups[0]?.members.find((member) => member.index === index)
      const failed = own?.outcome && !isScored(own.outcome) ? own.outcome : null
      const why = failed ? (own?.reason ?? null) : failure.reason
      const outcome = failed ?? failure.outcome
      const seconds = own?.seconds ?? null
      return failedSession(task_id, `${task.batch}.g0.e${index}`, outcome, why, metadata, seconds)
    })
    return encode(polarBody(task_id, 'completed', samples, samples, sessions))
  }

  /** Of those sessions of a group without a body that did not fail themselves. */
  function failureOf(task: Task): { outcome: EpisodeOutcome; reason: string | null } {
    const { dropped, settled } = service.progress(task.batch).groups
    const [first] = dropped
    if (first) return { outcome: outcomeOf(first.verdict), reason: first.reason }
    if (task.cancelled) return { outcome: 'aborted', reason: 'the task was cancelled' }
    return settled.undeliverable
      ? {
          outcome: 'infra_store',
          reason: 'its group could not be read or encoded, and was given up',
        }
      : { outcome: 'aborted', reason: 'it is no longer kept' }
  }

  function running(task: Task): Uint8Array {
    const finished = service.progress(task.batch).episodes.finished
    return encode(polarBody(toldName(task), 'running', task.samples, finished))
  }

  return {
    result,
    running,
    bare: (taskId, status, samples, done = 0) => encode(polarBody(taskId, status, samples, done)),
  }
}

function outcomeOf(verdict: GroupVerdict) {
  switch (verdict) {
    case 'timeout':
    case 'contract_violation':
    case 'verifier_error':
    case 'parse_error':
    case 'aborted':
      return verdict
    default:
      return 'infra_worker'
  }
}

function encode(value: JsonObject): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value))
}
