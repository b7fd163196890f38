// Which JSON types a parameter's schema allows, as far as the schema says; values are not validated against it.
import { isPlainObject, type JsonValue } from '../../protocol/json.ts'

export type JsonType = 'null' | 'boolean' | 'integer' | 'number' | 'string' | 'object' | 'array'

/** `any`: the schema does not say. An empty set: nothing fits. */
export type TypeSet = ReadonlySet<JsonType> | 'any'

export interface SchemaTypes {
  types: TypeSet
  /** Whether a `$ref` on the way could not be followed (only `#` and `#/…` can). */
  hasUnresolvedRef: boolean
}

type Schema = Record<string, unknown>

const TYPE_NAMES: ReadonlySet<unknown> = new Set<JsonType>([
  'null',
  'boolean',
  'integer',
  'number',
  'string',
  'object',
  'array',
])

/** The types that `schema` allows; `root` is the document that its `$ref`s point into. */
export function schemaTypes(schema: unknown, root: unknown): SchemaTypes {
  const walk = new Walk(root)
  const types = walk.types(schema)
  return { types, hasUnresolvedRef: walk.hasUnresolvedRef }
}

/** The schema of a member of the objects that `schema` describes, through `$ref` and combinators; undefined if none. */
export function memberSchema(schema: unknown, key: string): unknown {
  return new Walk(schema).member(schema, (part) => {
    const properties = own(part, 'properties')
    return isPlainObject(properties) ? own(properties, key) : undefined
  })
}

/** The schema of members that have none of their own (`additionalProperties`); undefined if there is none. */
export function additionalSchema(schema: unknown): unknown {
  return new Walk(schema).member(schema, (part) => {
    const additional = own(part, 'additionalProperties')
    return isPlainObject(additional) ? additional : undefined
  })
}

class Walk {
  hasUnresolvedRef = false
  readonly #root: unknown
  /** What is known of each schema; one that is still being looked at says nothing yet, which ends cycles. */
  readonly #known = new Map<Schema, TypeSet>()

  constructor(root: unknown) {
    this.#root = root
  }

  types(schema: unknown): TypeSet {
    if (!isPlainObject(schema)) return 'any'
    const known = this.#known.get(schema)
    if (known !== undefined) return known
    this.#known.set(schema, 'any')
    const types = this.#typesOf(schema)
    this.#known.set(schema, types)
    return types
  }

  /** The first result of `look` on the schema or on what it refers to or is combined of. */
  member(schema: unknown, look: (part: Schema) => unknown, seen = new Set<unknown>()): unknown {
    if (!isPlainObject(schema) || seen.has(schema)) return undefined
    seen.add(schema)
    const found = look(schema)
    if (found !== undefined) return found
    for (const part of [
      this.#target(schema),
      ...COMBINATORS.flatMap((name) => list(schema, name)),
    ]) {
      const inner = this.member(part, look, seen)
      if (inner !== undefined) return inner
    }
    return undefined
  }

  #typesOf(schema: Schema): TypeSet {
    let types = intersect(ownTypes(schema), this.types(this.#target(schema)))
    for (const name of ['anyOf', 'oneOf']) {
      const branches = list(schema, name)
      if (branches.length > 0)
        types = intersect(types, branches.map((branch) => this.types(branch)).reduce(unite))
    }
    for (const part of list(schema, 'allOf')) types = intersect(types, this.types(part))
    if (types === 'any' && isPlainObject(own(schema, 'properties'))) types = new Set(['object'])
    if (types === 'any' && own(schema, 'items') !== undefined) types = new Set(['array'])
    return own(schema, 'nullable') === true && types !== 'any' ? new Set([...types, 'null']) : types
  }

  /** What `$ref` points to; undefined without one, or where it leads nowhere. */
  #target(schema: Schema): unknown {
    const ref = own(schema, '$ref')
    if (ref === undefined) return undefined
    const target = typeof ref === 'string' ? resolvePointer(this.#root, ref) : undefined
    if (target === undefined) this.hasUnresolvedRef = true
    return target
  }
}

const COMBINATORS = ['allOf', 'anyOf', 'oneOf']

function ownTypes(schema: Schema): TypeSet {
  const named = [own(schema, 'type')].flat().filter((name) => TYPE_NAMES.has(name))
  if (named.length > 0) return new Set(named as JsonType[])
  const members = Object.hasOwn(schema, 'const') ? [schema.const] : list(schema, 'enum')
  return members.length > 0 ? new Set(members.map((member) => typeOf(member as JsonValue))) : 'any'
}

/** The JSON type of a value. */
export function typeOf(value: JsonValue): JsonType {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value as JsonType
}

function unite(a: TypeSet, b: TypeSet): TypeSet {
  return a === 'any' || b === 'any' ? 'any' : new Set([...a, ...b])
}

/** An integer is a number: where one side allows numbers and the other integers, integers are left. */
function intersect(a: TypeSet, b: TypeSet): TypeSet {
  if (a === 'any') return b
  if (b === 'any') return a
  const allows = (types: ReadonlySet<JsonType>, type: JsonType) =>
    types.has(type) || (type === 'integer' && types.has('number'))
  return new Set([...a, ...b].filter((type) => allows(a, type) && allows(b, type)))
}

/** RFC 6901 as a URI fragment: `#` is the whole document. */
function resolvePointer(root: unknown, ref: string): unknown {
  if (ref !== '#' && !ref.startsWith('#/')) return undefined
  let target = root
  for (const step of ref.split('/').slice(1)) {
    const key = decode(step).replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof target !== 'object' || target === null || !Object.hasOwn(target, key))
      return undefined
    target = (target as Schema)[key]
  }
  return target
}

function decode(step: string): string {
  return step.replace(/(?:%[0-9a-fA-F]{2})+/g, (bytes) =>
    Buffer.from(bytes.replaceAll('%', ''), 'hex').toString('utf8'),
  )
}

function own(schema: Schema, key: string): unknown {
  return Object.hasOwn(schema, key) ? schema[key] : undefined
}

function list(schema: Schema, key: string): unknown[] {
  const value = own(schema, key)
  return Array.isArray(value) ? value : []
}
