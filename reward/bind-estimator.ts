// May an estimator run over this contract: what it reads must be there before a single episode is played.
import type { RewardContract } from '../protocol/contract.ts'
import { PaddockError } from '../protocol/errors.ts'
import { isPlainObject } from '../protocol/json.ts'
import { nearestName } from './nearest.ts'

/**
 * Throws `contract_mismatch` for an estimator that reads components which the contract does not list: all of them for
 * gdpo, and those that `settings.weights` names for any.
 */
export function bindEstimator(
  contract: RewardContract,
  estimator: string,
  settings: Readonly<Record<string, unknown>>,
): void {
  const { components, name, version } = contract
  const label = `${name}@${version}`
  if (estimator === 'gdpo' && components.length < (settings.allow_single === true ? 1 : 2))
    refuse(
      `gdpo normalises each component and contract ${label} lists ${components.length}; ` +
        'list two or more in components, or use grpo',
      'advantage.estimator',
    )
  if (!isPlainObject(settings.weights)) return
  for (const weighted of Object.keys(settings.weights))
    if (!components.includes(weighted))
      refuse(
        `"${weighted}" is no component of contract ${label}; the nearest is ` +
          `"${nearestName(weighted, components)}" (it lists: ${components.join(', ')})`,
        `advantage.settings.weights.${weighted}`,
      )
}

function refuse(message: string, path: string): never {
  throw new PaddockError('contract_mismatch', message, { path })
}
