// One question about advantages as a line of JSON, one answer: the command line and the HTTP route speak through this.
import { z } from 'zod'
import { PaddockError } from '../protocol/errors.ts'
import { isPlainObject } from '../protocol/json.ts'
import { answerRows, type Question } from './answer-rows.ts'
import { answerLoss, answerOverlong, answerSampling } from './answer-shaping.ts'
import { answerSteps, answerTrajectories } from './answer-steps.ts'
import { chooseEstimator, estimatorNames } from './estimators.ts'
import { nearestName } from './nearest.ts'
import { fit, strictObject } from './strict.ts'

/** The keys that a golden vector has beside the question are taken and not read. */
const lineSchema = strictObject({
  name: z.string(),
  estimator: z.string(),
  settings: z.unknown().optional(),
  input: z.unknown(),
  /** Adds the figures of each group to the answer. */
  explain: z.boolean().optional(),
  kind: z.unknown().optional(),
  source: z.unknown().optional(),
  note: z.unknown().optional(),
  expected: z.unknown().optional(),
  tolerance: z.unknown().optional(),
  expected_f64: z.unknown().optional(),
  tolerance_f64: z.unknown().optional(),
})

/** Questions that are no estimators: they shape rewards, choose groups, or compute a loss. */
const OTHERS: Record<string, (settings: unknown, input: unknown) => object> = {
  dr_grpo_loss: answerLoss,
  overlong_shaping: answerOverlong,
  dynamic_sampling: answerSampling,
}

const BY_STEPS = ['gigpo', 'hgpo']

/**
 * Answers `{name, estimator, settings, input}`: `{name, advantages, …}` with one entry per row of the input, in its
 * order, or `{name, error: {code, message, path}}` for a question that cannot be answered. A null reward in the input
 * is a missing one. `reasons`, by row, stands beside where any advantage is null or bare. Never throws for any value.
 */
export function answerAdvantages(line: unknown): object {
  const name = isPlainObject(line) && typeof line.name === 'string' ? line.name : null
  try {
    const { estimator, settings, input, explain } = fit(lineSchema, line, 'line')
    return { name, ...answer({ estimator, input, explain: explain ?? false }, settings ?? {}) }
  } catch (error) {
    if (!(error instanceof PaddockError)) throw error
    return { name, error: { code: error.code, message: error.message, path: error.path } }
  }
}

function answer(question: Question, settings: unknown): object {
  const { estimator, input } = question
  if (Object.hasOwn(OTHERS, estimator)) return OTHERS[estimator]!(settings, input)
  if (!estimatorNames.includes(estimator)) refuseName(estimator)
  const chosen = chooseEstimator(estimator, settings)
  if (BY_STEPS.includes(estimator)) return answerSteps(chosen, question)
  if (estimator === 'grpo_process') return answerTrajectories(chosen, question)
  return answerRows(chosen, question)
}

function refuseName(name: string): never {
  const names = [...estimatorNames, ...Object.keys(OTHERS)]
  throw new PaddockError(
    'invalid_request',
    `estimator "${name.slice(0, 80)}" does not exist; the nearest is "${nearestName(name, names)}" ` +
      `(there are: ${names.join(', ')})`,
    { path: 'estimator' },
  )
}
