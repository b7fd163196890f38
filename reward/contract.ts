// The reward contract at work: is it consistent, may this consumer read it, and does this record keep it.
import type { RewardContract, RewardField } from '../protocol/contract.ts'
import { PaddockError } from '../protocol/errors.ts'
import { digest, isPlainObject } from '../protocol/json.ts'
import { nearestName } from './nearest.ts'

/** How a record can break a contract; a closed list, and a label of the metrics. */
export const CONTRACT_KINDS = [
  'missing',
  'unknown',
  'alias',
  'type',
  'nan',
  'range',
  'length_mismatch',
  'duplicate',
] as const
export type ContractKind = (typeof CONTRACT_KINDS)[number]

/** `message` names the field, what was expected, what came and what to do. */
interface ContractViolation {
  ok: false
  field: string
  kind: ContractKind
  message: string
}

export type CheckedRewards =
  | { ok: true; reward: number; rewards: Record<string, number | null> }
  | ContractViolation

/** What one consumer of a batch states it will read. */
export interface ConsumerBinding {
  reads: readonly string[]
  /** Contract field -> the name under which the consumer gets it. */
  rename: Readonly<Record<string, string>>
}

/** Words that producers use for the one total reward. Each is wrong where the contract has another. */
const TOTAL_ALIASES = ['reward', 'score', 'value', 'total', 'total_reward', 'reward_score']

/** `name@version#<12 hexadecimal digits>` of the contract's canonical JSON: equal labels mean equal contracts. */
export function contractLabel(contract: RewardContract): string {
  return `${contract.name}@${contract.version}#${digest(contract, 12)}`
}

/** Throws `contract_mismatch` for a contract that is inconsistent in itself; the path points into the contract. */
export function checkContract(contract: RewardContract): void {
  const names = Object.keys(contract.fields)
  if (names.length === 0) refuse('a contract needs at least one field, got none', 'fields')
  for (const name of names) checkField(name, contract.fields[name]!)
  for (const name of scalarNames(contract)) checkScalarField(contract, name)
  contract.conditions?.forEach(({ component, requires }, index) => {
    for (const [key, name] of Object.entries({ component, requires }))
      if (!hasField(contract, name))
        refuse(unknownName(`condition's ${key}`, name, contract), `conditions[${index}].${key}`)
  })
  const seen = new Set<string>()
  contract.components.forEach((name, index) => {
    const path = `components[${index}]`
    if (!hasField(contract, name)) refuse(unknownName('component', name, contract), path)
    if (seen.has(name)) refuse(`component "${name}" is listed twice; name it once`, path)
    seen.add(name)
  })
}

/**
 * Throws `contract_mismatch` when a consumer reads or renames what the contract does not have. `reads` may name a
 * contract field or the new name of a renamed one; two fields never come under one name.
 */
export function bindConsumer(contract: RewardContract, { reads, rename }: ConsumerBinding): void {
  const taken = new Map<string, string>()
  for (const [from, to] of Object.entries(rename)) {
    const path = `reward.rename.${from}`
    if (!hasField(contract, from)) refuse(unknownName('rename', from, contract), path)
    if (to === '') refuse(`rename of "${from}": expected a name, got an empty string`, path)
    if (to !== from && hasField(contract, to))
      refuse(
        `rename "${from}" to "${to}": the contract has a field "${to}"; choose a free name`,
        path,
      )
    const other = taken.get(to)
    if (other !== undefined)
      refuse(
        `rename "${from}" to "${to}": "${other}" has that name already; choose a free name`,
        path,
      )
    taken.set(to, from)
  }
  reads.forEach((name, index) => {
    if (!hasField(contract, name) && !taken.has(name))
      refuse(unknownName('reads', name, contract, [...taken.keys()]), `reward.reads[${index}]`)
  })
}

/**
 * Binds one producer's record to the contract. A boolean field becomes 1 or 0; an absent field that may be absent
 * becomes null. Nothing else is coerced and nothing has a default. A scalar that reads a null, alone or within a
 * weighted sum, is a violation `missing` that names the field: a sum without one of its terms is another reward.
 */
export function checkRewards(contract: RewardContract, record: unknown): CheckedRewards {
  if (!isPlainObject(record))
    return violation(
      'rewards',
      'type',
      `expected an object of reward fields, got ${describe(record)}`,
    )
  const stranger = strangerViolation(contract, record)
  if (stranger !== null) return stranger

  const rewards: Record<string, number | null> = {}
  for (const [name, field] of Object.entries(contract.fields)) {
    const read = readField(name, field, Object.hasOwn(record, name) ? record[name] : undefined)
    if (typeof read === 'object' && read !== null) return read
    rewards[name] = read
  }
  return scalarOf(contract, rewards)
}

/**
 * The contract's range of the scalar: `[min, max]`, either undefined where a field that it reads has no such bound.
 * A boolean ranges over 0 to 1; a negative weight swaps the ends.
 */
export function scalarRange(contract: RewardContract): { min?: number; max?: number } {
  if (typeof contract.scalar === 'string') return fieldRange(contract.fields[contract.scalar])
  let min: number | undefined = 0
  let max: number | undefined = 0
  for (const [name, weight] of Object.entries(contract.scalar.weighted)) {
    if (weight === 0) continue
    const range = fieldRange(contract.fields[name])
    const [low, high]: [number?, number?] =
      weight > 0 ? [range.min, range.max] : [range.max, range.min]
    min = min === undefined || low === undefined ? undefined : min + weight * low
    max = max === undefined || high === undefined ? undefined : max + weight * high
  }
  return { min, max }
}

function checkField(name: string, field: RewardField): void {
  const { type, min, max } = field
  if (name === '__proto__')
    refuse('a field cannot be named "__proto__"; rename it', `fields.${name}`)
  if (type === 'boolean' && (min !== undefined || max !== undefined))
    refuse(
      `field "${name}" is boolean and ranges over 0 and 1; leave out min and max`,
      `fields.${name}`,
    )
  if (min !== undefined && max !== undefined && min > max)
    refuse(`field "${name}": expected min <= max, got ${min} > ${max}`, `fields.${name}.min`)
}

function checkScalarField(contract: RewardContract, name: string): void {
  const weighted = typeof contract.scalar !== 'string'
  const path = weighted ? `scalar.weighted.${name}` : 'scalar'
  if (!hasField(contract, name)) refuse(unknownName('scalar', name, contract), path)
  if (contract.fields[name]!.required === false)
    refuse(
      `the scalar reads "${name}", which may be absent; make it required or read another`,
      path,
    )
  if (weighted && !Number.isFinite(weightOf(contract, name)))
    refuse(`weight of "${name}": expected a finite number, got ${weightOf(contract, name)}`, path)
}

function scalarNames(contract: RewardContract): string[] {
  if (typeof contract.scalar === 'string') return [contract.scalar]
  const names = Object.keys(contract.scalar.weighted)
  if (names.length > 0 && names.every((name) => weightOf(contract, name) === 0))
    refuse('a weighted scalar needs a weight that is not 0', 'scalar.weighted')
  if (names.length === 0)
    refuse('a weighted scalar needs at least one field, got none', 'scalar.weighted')
  return names
}

function weightOf(contract: RewardContract, name: string): number {
  return typeof contract.scalar === 'string' ? 1 : (contract.scalar.weighted[name] ?? 0)
}

function fieldRange(field: RewardField | undefined): { min?: number; max?: number } {
  if (field?.type === 'boolean') return { min: 0, max: 1 }
  return { min: field?.min, max: field?.max }
}

function hasField(contract: RewardContract, name: string): boolean {
  return Object.hasOwn(contract.fields, name)
}

/** A key that the contract does not have: an alias where it stands for a missing total, else simply unknown. */
function strangerViolation(
  contract: RewardContract,
  record: Record<string, unknown>,
): ContractViolation | null {
  const unknown = Object.keys(record).filter((key) => !hasField(contract, key))
  if (unknown.length === 0) return null
  const missing = Object.entries(contract.fields)
    .filter(([name, field]) => !mayBeAbsent(field) && !Object.hasOwn(record, name))
    .map(([name]) => name)
  const alias = unknown.find((key) => TOTAL_ALIASES.includes(key))
  const meant = missing.find((name) => TOTAL_ALIASES.includes(name) || name === contract.scalar)
  if (alias !== undefined && meant !== undefined)
    return violation(meant, 'alias', `"${meant}" came as "${alias}"; send it as "${meant}"`)
  const name = unknown[0]!
  return violation(name, 'unknown', unknownName('reward field', name, contract))
}

/** The field's number, null where it may be absent and is, or how it breaks the contract. */
function readField(
  name: string,
  field: RewardField,
  value: unknown,
): number | null | ContractViolation {
  if (value === undefined || value === null) {
    const mayBeNull = field.nullable === true || field.required === false
    if (value === undefined ? mayBeAbsent(field) : mayBeNull) return null
    const came = value === null ? 'null' : 'nothing'
    return violation(name, 'missing', `"${name}": expected ${expected(field)}, got ${came}`)
  }
  if (field.type === 'boolean' && typeof value === 'boolean') return value ? 1 : 0
  if (field.type === 'boolean' || typeof value !== 'number')
    return violation(name, 'type', `"${name}": expected ${expected(field)}, got ${describe(value)}`)
  if (!Number.isFinite(value))
    return violation(name, 'nan', `"${name}": expected ${expected(field)}, got ${value}`)
  if (value < (field.min ?? value) || value > (field.max ?? value))
    return violation(name, 'range', `"${name}": expected ${expected(field)}, got ${value}`)
  return value
}

/** A field may be left out when it says so, or when it may be null and does not insist on being sent. */
function mayBeAbsent(field: RewardField): boolean {
  return field.required === undefined ? field.nullable === true : !field.required
}

/** The contract's scalar over these fields. */
export function scalarOf(
  contract: RewardContract,
  rewards: Record<string, number | null>,
): CheckedRewards {
  let reward = 0
  for (const name of scalarNames(contract)) {
    const value = rewards[name] ?? null
    if (value === null)
      return violation(name, 'missing', `the scalar reads "${name}": expected a number, got null`)
    reward += weightOf(contract, name) * value
  }
  if (Number.isFinite(reward)) return { ok: true, reward, rewards }
  return violation('reward', 'nan', `the weighted sum is ${reward}; make the weights smaller`)
}

function expected(field: RewardField): string {
  if (field.type === 'boolean') return 'true or false'
  const { min, max } = field
  if (min !== undefined && max !== undefined) return `a number from ${min} to ${max}`
  if (min !== undefined) return `a number of at least ${min}`
  return max === undefined ? 'a finite number' : `a number of at most ${max}`
}

function describe(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'string') return `the string ${JSON.stringify(value.slice(0, 40))}`
  return typeof value === 'boolean' ? String(value) : `a value of type ${typeof value}`
}

function unknownName(
  what: string,
  name: string,
  contract: RewardContract,
  more: readonly string[] = [],
): string {
  const names = [...Object.keys(contract.fields), ...more]
  const meansTotal = TOTAL_ALIASES.includes(name) && typeof contract.scalar === 'string'
  const nearest = meansTotal ? contract.scalar : nearestName(name, names)
  const label = `${contract.name}@${contract.version}`
  return `${what} "${name.slice(0, 80)}" is no field of contract ${label}; the nearest is "${nearest}" (it has: ${names.join(', ')})`
}

function violation(field: string, kind: ContractKind, message: string): ContractViolation {
  return { ok: false, field, kind, message }
}

function refuse(message: string, path: string): never {
  throw new PaddockError('contract_mismatch', message, { path })
}
