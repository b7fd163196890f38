// The form of `dialects:` in paddock.yaml: what trainers with wire forms of their own do not say in their requests.
import { z } from 'zod'
import { batchRequestSchema, policySchema } from '../../protocol/batch.ts'
import { idSchema, taskIdSchema } from '../../protocol/ids.ts'
import { estimators } from '../../reward/estimators.ts'
import { LOGPROB_FORMS } from './polar-logprobs.ts'

/** What a native batch request has beside tasks and group size; the engine's address comes with the foreign request. */
const foreignBatchSchema = z.strictObject({
  policy: policySchema
    .omit({ backend: true, url: true, mode: true, version: true })
    .extend({
      /** Default: the first backend that speaks SGLang's wire, else the first of all. */
      backend: idSchema.optional(),
      /** Default: `tokens` where the backend names a model_dir, else `chat`. */
      mode: z.enum(['chat', 'tokens']).optional(),
    })
    .prefault({}),
  ...batchRequestSchema.pick({ reward: true, advantage: true, limits: true, groups: true }).shape,
})
export type ForeignBatch = z.output<typeof foreignBatchSchema>

/** Short for every dialect: `open` routes ask for no token, which some clients cannot send. */
const openSchema = z.boolean().default(false)

const slimeSchema = z
  .strictObject({
    open: openSchema,
    /** Whose policy plays: the engine that the request names (`remote_engine_url`), or the backend at its own address. */
    engine: z.enum(['request', 'backend']).default('request'),
    /** Task types that are called otherwise than the pack they stand for. */
    packs: z.record(z.string().min(1), idSchema).default({ math: 'arithmetic' }),
    /** Folder of prompt files: an `input_file` in it selects tasks, any other is the trainer's own and ignored. */
    data_dir: z.string().min(1).optional(),
    /** slime's --rollout-batch-size: with it no answer has more groups than slime takes, which throws the rest away. */
    rollout_batch_size: z.int().min(1).max(10_000).nullable().default(null),
    /** What `reward` of an item is: for --disable-rewards-normalization the advantage. */
    reward: z.enum(['reward', 'advantage']).default('reward'),
    batch: foreignBatchSchema
      .refine(({ groups: { on_short, min_scored, zero_variance } }) => {
        return on_short !== 'close' && min_scored === undefined && zero_variance !== 'replace'
      }, 'slime takes whole groups: groups.on_short is retry, top_up or drop, zero_variance deliver or drop, min_scored left out')
      .prefault({}),
  })
  .refine(({ reward, batch }) => {
    return reward !== 'advantage' || !estimators[batch.advantage.estimator]?.perTurn
  }, 'an item of slime has one reward: choose an estimator that gives an episode one advantage, or reward: reward')
export type SlimeSettings = z.output<typeof slimeSchema>

const polarSchema = z.strictObject({
  /** `polls`: every route but the submit, which Polar's client sends a token with (X-Polar-Control-Token). */
  open: z.union([z.boolean(), z.literal('polls')]).default(false),
  /** Where `agent.settings.task` names none: the key of the task's metadata that does. */
  task_key: z.string().min(1).default('task'),
  /** What stands there, where it is no id of a task itself, and the task that it means. */
  tasks: z.record(z.string().min(1), taskIdSchema).default({}),
  /** `entries` for the first generation of the client; `auto` finds it out by callback, which an evaluation has none of. */
  logprobs: z.enum(['auto', ...LOGPROB_FORMS]).default('auto'),
  batch: foreignBatchSchema.prefault({}),
})

export const dialectsSchema = z.strictObject({
  /** Hosts of engines that a request may name, beside the addresses of the backends. */
  engine_hosts: z.array(z.string().min(1)).default(['127.0.0.1', 'localhost', '::1']),
  slime: slimeSchema.prefault({}),
  polar: polarSchema.prefault({}),
})
