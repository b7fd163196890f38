// The reward contract on the wire: named, typed, versioned reward fields and what a consumer reads.
import { z } from 'zod'
import { idSchema } from './ids.ts'

const fieldSchema = z.strictObject({
  type: z.enum(['number', 'boolean']),
  min: z.number().optional(),
  max: z.number().optional(),
  required: z.boolean().optional(),
  nullable: z.boolean().optional(),
  description: z.string().optional(),
})

/** Soft overlong punishment (DAPO): what a long answer costs. */
export const overlongShape = {
  /** Sampled tokens that a member may have; observations in between are not the policy's and do not count. */
  max_length: z.int().min(1),
  /** The last tokens before `max_length`, over which the penalty grows. 0: none before it. */
  buffer: z.int().min(0),
  penalty_factor: z.number().min(0).default(1),
  /** Beyond `max_length`: stay at the full penalty (TRL), or go on falling (verl). */
  beyond: z.enum(['clamp', 'linear']).default('clamp'),
}

const conditionSchema = z.strictObject({
  /** Counts as `otherwise` unless `requires` is at least `at_least`. */
  component: z.string().min(1),
  requires: z.string().min(1),
  at_least: z.number(),
  otherwise: z.number().default(0),
})

const shapingSchema = z.strictObject({
  overlong: z.strictObject(overlongShape).optional(),
  /** What each sampled token beyond `free` costs. */
  length_penalty: z
    .strictObject({ per_token: z.number().min(0), free: z.int().min(0).default(0) })
    .optional(),
})

export const rewardContractSchema = z
  .strictObject({
    name: idSchema,
    version: z.int().min(1),
    fields: z.record(z.string().min(1), fieldSchema),
    scalar: z.union([z.string(), z.strictObject({ weighted: z.record(z.string(), z.number()) })]),
    components: z.array(z.string()).default([]),
    conditions: z.array(conditionSchema).optional(),
    /** Lowers the scalar by what an episode's length costs. */
    shaping: shapingSchema.optional(),
  })
  .meta({ id: 'RewardContract' })

export type RewardContract = z.output<typeof rewardContractSchema>
export type RewardField = z.output<typeof fieldSchema>
