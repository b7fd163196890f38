// What slime's /start_rollout says, read as its own server does: numbers as text or as numbers, unknown keys ignored.
import { z } from 'zod'
import type { BatchRequest } from '../../protocol/batch.ts'

/** `"8"` or 8. */
const number = z.union([
  z.number(),
  z
    .string()
    .trim()
    .regex(/^[+-]?\d+(\.\d+)?([eE][+-]?\d+)?$/, 'expected a number')
    .transform(Number),
])
const whole = number.pipe(z.int().min(1))

/** More is cut: no training comes so far. */
const MOST_PASSES = 1_000_000

/** Keys and types: slime_plugins/rollout_buffer/rollout_buffer_example.py, start_rollout. */
export const startRequestSchema = z
  .object({
    task_type: z.string().min(1),
    num_repeat_per_sample: whole.pipe(z.int().max(1024)),
    num_epoch: whole.transform((passes) => Math.min(passes, MOST_PASSES)).default(1),
    remote_engine_url: z.string().nullish(),
    input_file: z.string().nullish(),
    max_tokens: whole.nullish(),
    sampling_params: z
      .object({
        max_tokens: whole.nullish(),
        temperature: number.nullish(),
        top_p: number.nullish(),
      })
      .nullish(),
    skip_instance_ids: z.array(z.unknown()).nullish(),
  })
  .meta({ id: 'SlimeStart' })
export type StartRequest = z.output<typeof startRequestSchema>

/** What a run is played with; its tasks are kept apart. */
export interface SlimeStart {
  pack: string
  group_size: number
  epochs: number
  /** The trainer's engine; null asks the backend at its own address. */
  url: string | null
  sampling: Partial<
    Pick<BatchRequest['policy']['sampling'], 'temperature' | 'top_p' | 'max_tokens'>
  >
}

export interface SelectedTask {
  task: string
  seed?: number
}

/** The sampling that the request asks for; what it leaves out is the settings'. */
export function samplingOf({ sampling_params, max_tokens }: StartRequest): SlimeStart['sampling'] {
  const { temperature, top_p, max_tokens: own } = sampling_params ?? {}
  const tokens = own ?? max_tokens
  return {
    ...(temperature != null && { temperature }),
    ...(top_p != null && { top_p }),
    ...(tokens != null && { max_tokens: tokens }),
  }
}

/** The ids of `skip_instance_ids` that can be ours. */
export function skippedInstances(skip: readonly unknown[]): number[] {
  const ids = skip.map((id) => (typeof id === 'string' && /^\d+$/.test(id) ? Number(id) : id))
  return [...new Set(ids.filter((id): id is number => Number.isSafeInteger(id) && Number(id) >= 0))]
}
