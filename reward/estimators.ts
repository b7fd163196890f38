// Every advantage estimator by the name under which a batch asks for it.
import { PaddockError } from '../protocol/errors.ts'
import type { Estimator } from './estimator.ts'
import { drGrpo } from './estimators/dr-grpo.ts'
import { gdpo } from './estimators/gdpo.ts'
import { gigpo } from './estimators/gigpo.ts'
import { grpo } from './estimators/grpo.ts'
import { grpoPassK } from './estimators/grpo-passk.ts'
import { grpoProcess } from './estimators/grpo-process.ts'
import { hgpo } from './estimators/hgpo.ts'
import { maxrl } from './estimators/maxrl.ts'
import { opo } from './estimators/opo.ts'
import { reinforcePpBaseline } from './estimators/reinforce-pp-baseline.ts'
import { rloo } from './estimators/rloo.ts'
import { nearestName } from './nearest.ts'
import { fit } from './strict.ts'

export const estimators: Record<string, Estimator> = {
  grpo,
  dr_grpo: drGrpo,
  gdpo,
  gigpo,
  rloo,
  reinforce_pp_baseline: reinforcePpBaseline,
  opo,
  maxrl,
  grpo_passk: grpoPassK,
  grpo_process: grpoProcess,
  hgpo,
}

export const estimatorNames: readonly string[] = Object.keys(estimators)

export interface ChosenEstimator {
  estimator: Estimator
  /** Complete: defaults, preset and given keys together. */
  settings: unknown
}

/**
 * The estimator of a name with its settings parsed and completed. Throws `invalid_request` for an unknown name or
 * setting, with the nearest that exists; `path` is where the two stand in the caller's request.
 */
export function chooseEstimator(
  name: string,
  settings: unknown,
  path = { estimator: 'estimator', settings: 'settings' },
): ChosenEstimator {
  const estimator = Object.hasOwn(estimators, name) ? estimators[name] : undefined
  if (estimator === undefined)
    throw new PaddockError(
      'invalid_request',
      `estimator "${name.slice(0, 80)}" does not exist; the nearest is "${nearestName(name, estimatorNames)}" ` +
        `(there are: ${estimatorNames.join(', ')})`,
      { path: path.estimator },
    )
  return { estimator, settings: fit(estimator.settings, settings, path.settings) }
}
