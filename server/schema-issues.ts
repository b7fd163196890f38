// What a zod schema refused, as sentences: the path, what was expected, what was found, and the nearest known key.
import type { z } from 'zod'
import { nearestName } from '../reward/nearest.ts'

/** Issues of one value that are put into words. */
const MAX_ISSUES = 20

export interface SchemaIssue {
  /** `tasks[0].seed`; empty for the whole value. */
  path: string
  /** The same as keys and indices; an unknown key is its last member. */
  keys: PropertyKey[]
  message: string
}

export type Checked<T> = { ok: true; value: T } | { ok: false; issues: SchemaIssue[] }

/** Parses `value` and tells each thing that does not fit. Never throws. */
export function checkSchema<S extends z.ZodType>(schema: S, value: unknown): Checked<z.output<S>> {
  const result = schema.safeParse(value, { reportInput: true })
  if (result.success) return { ok: true, value: result.data }
  // A sentence costs a search for the nearest name: a body with a hundred thousand mistakes gets no more of them.
  const issues = result.error.issues.slice(0, MAX_ISSUES)
  return {
    ok: false,
    issues: issues.flatMap((issue) => describe(schema, issue, [])).slice(0, MAX_ISSUES),
  }
}

/** `['tasks', 0, 'seed']` as `tasks[0].seed`. */
export function pathText(keys: readonly PropertyKey[]): string {
  return keys.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`
    return text === '' ? String(key) : `${text}.${String(key)}`
  }, '')
}

/** The schema that a path leads to inside `schema`, without optional and default wrappers; null where it leads nowhere. */
export function schemaAt(
  schema: z.core.$ZodType,
  keys: readonly PropertyKey[],
): z.core.$ZodTypes | null {
  const { type, ...def } = unwrap(schema)._zod.def as z.core.$ZodTypes['_zod']['def'] & {
    shape?: Record<string, z.core.$ZodType>
    valueType?: z.core.$ZodType
    element?: z.core.$ZodType
    options?: readonly z.core.$ZodType[]
  }
  const [key, ...rest] = keys
  if (key === undefined) return unwrap(schema)
  const name = String(key)
  if (type === 'object' && def.shape && Object.hasOwn(def.shape, name))
    return schemaAt(def.shape[name]!, rest)
  if (type === 'record' && def.valueType) return schemaAt(def.valueType, rest)
  if (type === 'array' && def.element && /^\d+$/.test(name)) return schemaAt(def.element, rest)
  if (type !== 'union') return null
  return def.options?.map((option) => schemaAt(option, keys)).find((found) => found) ?? null
}

function unwrap(schema: z.core.$ZodType): z.core.$ZodTypes {
  const def = schema._zod.def as { innerType?: z.core.$ZodType }
  return def.innerType ? unwrap(def.innerType) : (schema as z.core.$ZodTypes)
}

function describe(
  schema: z.core.$ZodType,
  issue: z.core.$ZodIssue,
  prefix: readonly PropertyKey[],
): SchemaIssue[] {
  const keys = [...prefix, ...issue.path]
  if (issue.code === 'unrecognized_keys')
    return issue.keys
      .slice(0, MAX_ISSUES)
      .map((key) => at([...keys, key], unknownKey(schema, keys, key)))
  if (issue.code === 'invalid_key')
    return [at(keys, issue.issues[0]?.message ?? 'expected another key')]
  if (issue.code === 'invalid_union') {
    const branch = closest(issue.errors)
    if (branch.length > 0) return branch.flatMap((inner) => describe(schema, inner, keys))
  }
  return [at(keys, sentence(issue))]
}

function at(keys: PropertyKey[], message: string): SchemaIssue {
  return { path: pathText(keys), keys, message }
}

/** Of a union's branches the one that came furthest into the value: the one that was meant. */
function closest(branches: readonly z.core.$ZodIssue[][]): z.core.$ZodIssue[] {
  const depth = (branch: readonly z.core.$ZodIssue[]) =>
    Math.max(...branch.map((issue) => issue.path.length + (issue.code === 'invalid_type' ? 0 : 1)))
  const deepest = Math.max(0, ...branches.map(depth))
  return deepest === 0 ? [] : (branches.find((branch) => depth(branch) === deepest) ?? [])
}

function unknownKey(schema: z.core.$ZodType, keys: readonly PropertyKey[], key: string): string {
  const def = schemaAt(schema, keys)?._zod.def as { shape?: object } | undefined
  const known = Object.keys(def?.shape ?? {})
  const meant = nearestName(key, known)
  const list = known.length > 0 ? `known keys: ${known.join(', ')}` : 'no key is known here'
  return `unknown key ${JSON.stringify(key)}${meant === null ? '' : `: did you mean ${meant}?`} (${list})`
}

function sentence(issue: z.core.$ZodIssue): string {
  const found = issue.code === 'custom' ? '' : `, found ${preview(issue.input)}`
  return `${expected(issue)}${found}`
}

function expected(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return `expected ${TYPE_NAMES[issue.expected] ?? issue.expected}`
    case 'too_small':
      return `expected ${issue.inclusive === false ? 'more than' : 'at least'} ${size(issue.minimum, issue.origin)}`
    case 'too_big':
      return `expected ${issue.inclusive === false ? 'less than' : 'at most'} ${size(issue.maximum, issue.origin)}`
    case 'invalid_value':
      return `expected ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.join(', ')}`
    default:
      return issue.message
  }
}

const TYPE_NAMES: Record<string, string> = {
  array: 'an array',
  boolean: 'true or false',
  int: 'an integer',
  number: 'a finite number',
  object: 'an object',
  record: 'an object',
  string: 'a string',
}

function size(limit: number | bigint, origin: string): string {
  const unit = { array: ' items', string: ' characters', set: ' items' }[origin] ?? ''
  return `${limit}${unit}`
}

/** A value as JSON, cut to what fits a sentence. */
function preview(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value)
  if (Array.isArray(value)) return `an array of ${value.length}`
  if (typeof value === 'object' && value !== null) return 'an object'
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 80 ? `${text.slice(0, 80)}… (${text.length} characters)` : text
}
