// What the nine kinds of tools do to the records. Arguments are checked and references exist when they come here.
import type { JsonValue } from '../../../protocol/json.ts'
import type { ToolDeclaration } from '../catalogue/declare.ts'
import type { Tool } from '../catalogue/derive.ts'
import { instantOf, offsetOf } from './instant.ts'
import { done, type Outcome, refuse } from './outcome.ts'
import { matchesFilters, pageOf, searched, tokensOf } from './query.ts'
import type { Row } from './state.ts'
import type { Args, Patch, Transaction } from './transaction.ts'
import { sameValue } from './values.ts'

/** Runs a tool. Only a throw is a fault of ours; whatever the arguments cause is a refusal. */
export function operate(tool: Tool, transaction: Transaction, args: Args): Outcome {
  const { declaration } = tool
  switch (declaration.op) {
    case 'list':
    case 'search':
      return query(tool, declaration, transaction, args)
    case 'create':
      return create(tool, declaration, transaction, args)
    case 'custom':
      return declaration.handler(transaction, args)
    default:
      return withRecord(tool, declaration, transaction, args)
  }
}

type Declared<Op extends ToolDeclaration['op']> = Extract<ToolDeclaration, { op: Op }>
type OnRecord =
  | Declared<'get' | 'delete'>
  | Declared<'update'>
  | Declared<'set'>
  | Declared<'append'>

function query(
  tool: Tool,
  { op, defaults }: Declared<'list' | 'search'>,
  transaction: Transaction,
  args: Args,
): Outcome {
  const filters = { ...(defaults as Args), ...args }
  const zone = offsetOf(transaction.now)
  const matching = transaction
    .rows(tool.entity.name)
    .filter((row) => matchesFilters(tool, row, filters, zone))
  if (op === 'list') return done(transaction.page(tool.entity.name, matching, args))
  const tokens = tokensOf(args.query as string)
  if (tokens.length === 0)
    return refuse('INVALID_ARGUMENT', 'query: expected at least one word, got none')
  const page = pageOf(tool.entity, searched(tool.entity, matching, tokens), args)
  transaction.reads.push(...page.reads)
  return done(page.result)
}

function create(
  { entity }: Tool,
  { defaults = {}, ordered }: Declared<'create'>,
  transaction: Transaction,
  args: Args,
): Outcome {
  if (ordered) {
    const [before, after] = ordered.map((name) => String(args[name])) as [string, string]
    if (instantOf(before, 0)! >= instantOf(after, 0)!)
      return refuse(
        'INVALID_ARGUMENT',
        `expected ${ordered[0]} before ${ordered[1]}, got ${before} and ${after}`,
      )
  }
  const presets = Object.entries(defaults).map(([field, value]) => {
    if (value === '@now') return [field, transaction.now] as const
    if (value === '@actor') return [field, transaction.actor.email] as const
    return [field, value as JsonValue] as const
  })
  const fields: Patch = { ...Object.fromEntries(presets), ...args }
  return done(transaction.create(entity.name, fields))
}

/** The operations on one existing record. */
function withRecord(
  { entity }: Tool,
  declaration: OnRecord,
  transaction: Transaction,
  args: Args,
): Outcome {
  const { [entity.id]: key, ...rest } = args
  const id = String(key)
  const fields = Object.keys(rest)
  if (declaration.op === 'update' && fields.length === 0)
    return refuse('INVALID_ARGUMENT', 'expected at least one field to change, got none')
  const row = transaction.find(entity.name, id)
  if (!row)
    return refuse('NOT_FOUND', `there is no ${entity.key} with ${entity.id} ${id.slice(0, 80)}`)
  switch (declaration.op) {
    case 'get':
      transaction.read(entity.name, id, 'full')
      return done(row)
    case 'delete':
      transaction.remove(entity.name, id)
      return done({ deleted: id })
    case 'update':
      return done(transaction.change(entity.name, id, rest))
    case 'append':
      return done(transaction.change(entity.name, id, additions(row, declaration.append, args)))
    case 'set': {
      const barrier = barrierOf(row, declaration.guard)
      if (barrier) return refuse('INVALID_STATE', `${id}: ${barrier}`)
      return done(transaction.change(entity.name, id, assignments(declaration.set, args)))
    }
  }
}

/** Lists with the members of a parameter that they do not have yet. */
function additions(row: Row, append: Record<string, `@${string}`>, args: Args): Patch {
  return Object.fromEntries(
    Object.entries(append).map(([field, parameter]) => {
      const members = [...((row[field] ?? []) as JsonValue[])]
      for (const item of (args[parameter.slice(1)] ?? []) as JsonValue[])
        if (!members.some((member) => sameValue(member, item))) members.push(item)
      return [field, members]
    }),
  )
}

/** Why a guard does not let a record through, or null. */
function barrierOf(row: Row, guard: Record<string, readonly string[]> = {}): string | null {
  for (const [field, values] of Object.entries(guard))
    if (!values.includes(String(row[field])))
      return `expected ${field} ${values.join(' or ')}, it is ${row[field]}`
  return null
}

/** A parameter that was not given assigns nothing; null takes the field away. */
function assignments(set: Record<string, string | null>, args: Args): Patch {
  return Object.fromEntries(
    Object.entries(set).flatMap(([field, value]) => {
      if (!value?.startsWith('@')) return [[field, value]]
      const given = args[value.slice(1)]
      return given === undefined ? [] : [[field, given]]
    }),
  )
}
