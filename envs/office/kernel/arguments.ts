// The arguments of a call, checked against a tool's parameters before anything runs.
import { isPlainObject, type JsonObject, type JsonValue } from '../../../protocol/json.ts'
import type { Tool } from '../catalogue/derive.ts'
import { ENTITIES } from '../catalogue/registry.ts'
import type { Args, Transaction } from './transaction.ts'
import { misfit, shown } from './values.ts'

/** Characters of all arguments of one call; a policy's whole turn is rarely as long. */
const MAX_ARGUMENT_CHARS = 100_000
/** Declared parameters are two levels deep at most; what is deeper is not even kept. */
const MAX_ARGUMENT_DEPTH = 16
/** Least values of the paging parameters; a limit above the greatest page only gets that page. */
const LEAST: ReadonlyMap<string, number> = new Map([
  ['limit', 1],
  ['offset', 0],
])

/** The arguments as the audit may keep them: all that is not absurdly large or deep, else nothing. */
export function keptArguments(given: unknown): JsonObject {
  return isPlainObject(given) && excessOf(given) === null ? (given as JsonObject) : {}
}

/**
 * Declared parameters only, each of its type, all required ones there; null counts as absent and is left out. The
 * message names the first parameter that is wrong, and what was expected.
 */
export function checkArguments(
  { name, params }: Tool,
  given: unknown,
): { ok: true; args: Args } | { ok: false; message: string } {
  const wrong = (message: string) => ({ ok: false, message }) as const
  if (!isPlainObject(given)) return wrong('expected an object of arguments, got something else')
  const excess = excessOf(given)
  if (excess) return wrong(excess)
  for (const key of Object.keys(given))
    if (!params.has(key))
      return wrong(
        `unknown parameter ${shown(key)}; ${name} takes ${[...params.keys()].join(', ') || 'none'}`,
      )
  const args: { [parameter: string]: JsonValue } = {}
  for (const [key, field] of params) {
    const value = Object.hasOwn(given, key) ? given[key] : null
    if (value === null || value === undefined) {
      if (!field.opt) return wrong(`missing parameter ${key}`)
      continue
    }
    const expected = misfit(value, field)
    if (expected) return wrong(`${key}: expected ${expected}, got ${shown(value)}`)
    const least = LEAST.get(key)
    if (least !== undefined && Number(value) < least)
      return wrong(`${key}: expected ${least} or more, got ${shown(value)}`)
    args[key] = value as JsonValue
  }
  return { ok: true, args }
}

/** The first argument that refers to a record which is not there; a service that the task lacks is not looked into. */
export function missingReference(
  { params }: Tool,
  transaction: Transaction,
  args: Args,
): string | null {
  for (const [key, field] of params) {
    if (field.t !== 'ref' || args[key] === undefined || !transaction.tables[field.to]) continue
    if (!transaction.find(field.to, String(args[key])))
      return `${key}: there is no ${ENTITIES.get(field.to)?.key} ${shown(args[key])}`
  }
  return null
}

/** Why arguments are too large or too deep to look at, or null. Iterative: depth must not overflow the stack here. */
function excessOf(given: object): string | null {
  let chars = 0
  let level: unknown[] = [given]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_ARGUMENT_DEPTH)
      return `expected arguments nested at most ${MAX_ARGUMENT_DEPTH} deep, got more`
    const next: unknown[] = []
    for (const value of level) {
      if (typeof value === 'string') chars += value.length
      else if (typeof value !== 'object' || value === null) chars += 8
      else
        for (const [key, member] of Object.entries(value)) {
          chars += key.length
          next.push(member)
        }
    }
    if (chars > MAX_ARGUMENT_CHARS)
      return `expected at most ${MAX_ARGUMENT_CHARS} characters of arguments, got more`
    level = next
  }
  return null
}
