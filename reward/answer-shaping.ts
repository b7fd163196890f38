// Answers to the questions that are no estimators: overlong penalties, dynamic sampling, the loss of Dr. GRPO.
import { z } from 'zod'
import { PaddockError } from '../protocol/errors.ts'
import { constantLoss, countedLoss } from './dr-grpo-loss.ts'
import { keepRules } from './dynamic-sampling.ts'
import { nearestName } from './nearest.ts'
import { overlongPenalty, overlongSchema } from './overlong.ts'
import { fit, strictObject } from './strict.ts'

const profile = z.string().optional()

const overlongSettings = overlongSchema.omit({ beyond: true }).extend({ profile })
const lengthsInput = strictObject({ lengths: z.array(z.number().min(0)) })

/** `{penalty: {trl, verl}}`: clamped at the full penalty beyond max_length, or falling on. */
export function answerOverlong(settings: unknown, input: unknown): object {
  const shaping = fit(overlongSettings, settings, 'settings')
  const { lengths } = fit(lengthsInput, input, 'input')
  const penalties = (beyond: 'clamp' | 'linear') =>
    lengths.map((length) => overlongPenalty(length, { ...shaping, beyond }))
  return { penalty: { trl: penalties('clamp'), verl: penalties('linear') } }
}

const samplingSettings = strictObject({
  profile,
  /** Names of rules; a value beside a name describes it and is not read. */
  rule: z.union([z.record(z.string(), z.unknown()), z.array(z.string())]).default(['paddock']),
  tolerance: z.number().min(0).default(0),
})
const samplingInput = strictObject({
  groups_of_rewards: z.array(z.array(z.number().nullable())),
})

/** `{keep: {<rule>: boolean[]}}`, one per group. A null reward does not vote. */
export function answerSampling(settings: unknown, input: unknown): object {
  const { rule, tolerance } = fit(samplingSettings, settings, 'settings')
  const { groups_of_rewards } = fit(samplingInput, input, 'input')
  const votes = groups_of_rewards.map((rewards) => rewards.filter((reward) => reward !== null))
  const names = Array.isArray(rule) ? rule : Object.keys(rule)
  const keep = names.map((name) => [name, keepRule(name)(votes, tolerance)] as const)
  return { keep: Object.fromEntries(keep) }
}

function keepRule(name: string) {
  if (Object.hasOwn(keepRules, name)) return keepRules[name]!
  const known = Object.keys(keepRules)
  throw new PaddockError(
    'invalid_request',
    `no rule "${name}"; the nearest is "${nearestName(name, known)}" (there are: ${known.join(', ')})`,
    { path: `settings.rule.${name}` },
  )
}

const lossSettings = strictObject({
  profile,
  normalizer: z.enum(['constant', 'tokens_in_sample', 'tokens_in_batch']).default('constant'),
  ratio_clip: z.literal('none').default('none'),
})
const tokens = z.array(z.array(z.number()))
const lossInput = strictObject({
  advantages: z.array(z.number()).min(1),
  response_mask: tokens,
  token_ratio: tokens,
  normalizer: z.number().gt(0).optional(),
})

/** `{loss: {oat, verl_main, 'verl_0.8.0.dev', trl}}` for a constant normaliser, `{loss: {<kind>}}` for the others. */
export function answerLoss(settings: unknown, input: unknown): object {
  const { normalizer: kind } = fit(lossSettings, settings, 'settings')
  const { normalizer, ...rows } = fit(lossInput, input, 'input')
  for (const key of ['response_mask', 'token_ratio'] as const) checkRows(rows, key)
  if (kind !== 'constant') return { loss: countedLoss(rows, kind) }
  if (normalizer === undefined)
    throw new PaddockError(
      'invalid_request',
      'a constant normaliser needs its value, the generation budget in tokens; give input.normalizer',
      { path: 'input.normalizer' },
    )
  return { loss: constantLoss(rows, normalizer) }
}

function checkRows(
  rows: { advantages: number[]; response_mask: number[][]; token_ratio: number[][] },
  key: 'response_mask' | 'token_ratio',
): void {
  const path = `input.${key}`
  if (rows[key].length !== rows.advantages.length)
    throw new PaddockError(
      'invalid_request',
      `${path}: expected ${rows.advantages.length} rows, one per advantage, got ${rows[key].length}`,
      { path },
    )
  rows.response_mask.forEach((mask, row) => {
    if (rows.token_ratio[row]?.length === mask.length) return
    throw new PaddockError(
      'invalid_request',
      `row ${row}: response_mask has ${mask.length} tokens, token_ratio ${rows.token_ratio[row]?.length}`,
      { path: `input.token_ratio[${row}]` },
    )
  })
}
