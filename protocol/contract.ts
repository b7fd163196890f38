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

export const rewardContractSchema = z
  .strictObject({
    name: idSchema,
    version: z.int().min(1),
    fields: z.record(z.string().min(1), fieldSchema),
    scalar: z.union([z.string(), z.strictObject({ weighted: z.record(z.string(), z.number()) })]),
    components: z.array(z.string()).default([]),
  })
  .meta({ id: 'RewardContract' })

export type RewardContract = z.output<typeof rewardContractSchema>
export type RewardField = z.output<typeof fieldSchema>
