// Settings that estimators share: their closed lists, and how defaults, a preset and single keys become one object.
import { type ZodType, z } from 'zod'
import { isPlainObject } from '../../protocol/json.ts'
import { strictObject } from '../strict.ts'

export const baselineSchema = z.enum(['group_mean', 'leave_one_out', 'length_weighted_mean'])
const stdSchema = z.enum(['sample', 'population', 'none'])
export const stdScopeSchema = z.enum(['group', 'leave_one_out'])
const epsilonModeSchema = z.enum([
  'added_to_std',
  /** 1 / sqrt(variance + epsilon) */
  'added_to_variance',
  'added_to_mean',
  'none_and_skip_if_zero',
])
/** A group with one vote: its reward as it is, 0, or no advantage (`nan` and `null` mean the same: never a NaN). */
export const singletonSchema = z.enum(['raw_reward', 'zero', 'nan', 'null']).nullable()
export const zeroStdSchema = z.enum(['divide', 'skip_division', 'error'])
/**
 * A member without a usable reward. Outside all statistics, with advantage null (`excluded`) or 0
 * (`excluded_then_zero`); `fail_group` gives its whole group null; `score_as` makes it an ordinary vote.
 */
const missingSchema = z.union(
  [
    z.enum(['excluded', 'excluded_then_zero', 'error', 'fail_group']),
    z.strictObject({ score_as: z.number() }),
  ],
  {
    error:
      'expected "excluded", "excluded_then_zero", "error", "fail_group" or {"score_as": number}',
  },
)
export const componentMissingSchema = z.enum([
  /** Rejects the member, with the component's name in the reason. */
  'error',
  'zero_fill',
  'excluded_from_that_component',
  'exclude_component',
  'counts_as_zero_unless_all_missing',
])
export const weightsSchema = z.record(z.string().min(1), z.number())
export const levelSchema = z.enum(['sample', 'token', 'none'])
export const lossNormalizerSchema = strictObject({
  kind: z.enum(['constant', 'tokens_in_sample', 'tokens_in_batch']),
  value: z.number().gt(0).nullable().default(null),
})

/** Who is left out and what becomes of them: the part that every estimator has. */
export const eligibilityShape = {
  missing: missingSchema,
  /** Lets members vote that were scored but are marked not eligible. */
  vote: z.boolean(),
}

/** How one list of votes is divided. */
export const divisionShape = {
  std: stdSchema,
  epsilon: z.number().min(0),
  epsilon_mode: epsilonModeSchema,
  variance_floor: z.number().min(0).optional(),
}

type Missing = z.output<typeof missingSchema>
export type ComponentMissing = z.output<typeof componentMissingSchema>
export interface Eligibility {
  missing: Missing
  vote: boolean
}
export interface Division {
  std: z.output<typeof stdSchema>
  epsilon: number
  epsilon_mode: z.output<typeof epsilonModeSchema>
  variance_floor?: number | undefined
}

type Raw = Record<string, unknown>

/**
 * A schema whose input may leave out anything: defaults first, then the preset, then the keys that were given.
 * Nested objects (GDPO's `group` and `batch`) are completed key by key. `profile` is a label without effect.
 */
export function settingsSchema<Shape extends Record<string, ZodType>>(
  name: string,
  shape: Shape,
  defaults: Raw,
  presets: Record<string, Raw>,
) {
  const choices: Record<string, Raw> = { [name]: {}, ...presets }
  const strict = strictObject({
    ...shape,
    profile: z.string().optional(),
    preset: z.enum(Object.keys(choices)).optional(),
  })
  return z.preprocess((raw) => {
    if (!isPlainObject(raw)) return raw ?? defaults
    const preset = typeof raw.preset === 'string' ? (choices[raw.preset] ?? {}) : {}
    return complete(complete(defaults, preset), raw)
  }, strict)
}

function complete(base: Raw, over: Raw): Raw {
  const merged: Raw = { ...base }
  for (const [key, value] of Object.entries(over)) {
    const below = merged[key]
    merged[key] = isPlainObject(below) && isPlainObject(value) ? { ...below, ...value } : value
  }
  return merged
}
