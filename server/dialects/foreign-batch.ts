// A native batch request made of a foreign one: what the trainer says, over what the settings say for its dialect.
import { type BatchRequest, batchRequestSchema } from '../../protocol/batch.ts'
import { MAX_TURN_TOKENS } from '../../protocol/limits.ts'
import type { Backend } from '../config.ts'
import { invalidRequest } from '../problems.ts'
import { checkSchema } from '../schema-issues.ts'
import type { ForeignBatch } from './settings.ts'

/** What a foreign request says of a batch. */
export interface ForeignAsk {
  id: string
  tasks: { task: string; seed?: number; metadata: BatchRequest['tasks'][number]['metadata'] }[]
  group_size: number
  /** The trainer's own engine; null asks the backend at its address. */
  url: string | null
  sampling: Partial<BatchRequest['policy']['sampling']>
}

/** Throws PaddockError `invalid_request` where the two together are no batch request. */
export function foreignBatch(
  ask: ForeignAsk,
  settings: ForeignBatch,
  backends: Record<string, Backend>,
): BatchRequest {
  const backend = foreignBackend(settings, backends)
  const mode = settings.policy.mode ?? (backends[backend]?.model_dir ? 'tokens' : 'chat')
  const { id, tasks, group_size } = ask
  const request = {
    ...settings,
    id,
    tasks,
    group_size,
    policy: {
      ...settings.policy,
      backend,
      mode,
      sampling: withinLimits({ ...settings.policy.sampling, ...ask.sampling }),
      ...(ask.url !== null && { url: ask.url }),
    },
  }
  const checked = checkSchema(batchRequestSchema, request)
  if (!checked.ok) throw invalidRequest(checked.issues)
  return checked.value
}

/** Whose policy plays: the settings' own choice, else one that speaks SGLang's wire, as a foreign trainer's engine mostly does. */
export function foreignBackend(settings: ForeignBatch, backends: Record<string, Backend>): string {
  const names = Object.keys(backends)
  const chosen =
    settings.policy.backend ?? names.find((name) => backends[name]?.dialect === 'sglang')
  return chosen ?? names[0] ?? 'main'
}

/** A limit of ours that foreign servers do not have: more is cut, as a refusal ends the training. */
function withinLimits(sampling: BatchRequest['policy']['sampling']) {
  return { ...sampling, max_tokens: Math.min(sampling.max_tokens, MAX_TURN_TOKENS) }
}
