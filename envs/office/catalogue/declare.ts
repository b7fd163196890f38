// How a service is written down: fields, entities and tools as typed data, from which everything else is derived.
import type { JsonValue } from '../../../protocol/json.ts'
import type { Handler } from '../kernel/transaction.ts'

export type Primitive =
  | 'id'
  | 'str'
  | 'text'
  | 'int'
  | 'num'
  | 'money'
  | 'bool'
  | 'date'
  | 'datetime'
  | 'email'
  | 'secret'

/** What a record's field or a tool's parameter may hold. `opt`: it may be absent (null counts as absent). */
export type Field =
  | { t: Primitive; opt?: true }
  | { t: 'enum'; values: readonly string[]; opt?: true }
  | { t: 'list'; of: Primitive | 'obj'; opt?: true }
  | { t: 'ref'; to: EntityName; opt?: true }

/** `<service>.<entity>` */
export type EntityName = `${string}.${string}`

export const id = { t: 'id' } as const
export const str = { t: 'str' } as const
/** Prose: as `str`, but of any length. */
export const text = { t: 'text' } as const
export const int = { t: 'int' } as const
export const num = { t: 'num' } as const
/** An amount with two decimals; checks compare it within half a cent. */
export const money = { t: 'money' } as const
export const bool = { t: 'bool' } as const
/** `YYYY-MM-DD` */
export const date = { t: 'date' } as const
/** RFC 3339, with its offset. */
export const datetime = { t: 'datetime' } as const
export const email = { t: 'email' } as const
export const secret = { t: 'secret' } as const
/** Any JSON object; only within `list`. */
export const obj = { t: 'obj' } as const

export const oneOf = <const V extends readonly string[]>(...values: V) =>
  ({ t: 'enum', values }) as const
export const list = <const P extends Primitive | 'obj'>(member: { t: P }) =>
  ({ t: 'list', of: member.t }) as const
export const ref = <const N extends EntityName>(to: N) => ({ t: 'ref', to }) as const
export const opt = <const F extends Field>(field: F) => ({ ...field, opt: true }) as const

export interface EntityDeclaration {
  /** The field that holds the id. */
  id: string
  /** Created ids are `<prefix>-N<k>`. */
  prefix: string
  fields: Record<string, Field>
  /** What list and search show of a record; all of it where absent. */
  summary?: readonly string[]
  /** What a search looks into. */
  search?: readonly string[]
  /** Order of lists; by id where absent. Ties go by id. */
  sort?: readonly [field: string, direction: 'asc' | 'desc']
  /** Fields that only tell the time of an act (`created_at` and `updated_at` always do). */
  stamps?: readonly string[]
}

export type Comparison = 'eq' | 'has' | 'contains' | 'gte' | 'lte'
/** `@now` and `@actor` stand for the clock and the e-mail address of the person who is acted for. */
type Default = JsonValue | readonly string[] | '@now' | '@actor'
type Params = Record<string, Field>

export const ERROR_CODES = [
  'INVALID_ARGUMENT',
  'NOT_FOUND',
  'REF_NOT_FOUND',
  'INVALID_STATE',
  'CONFLICT',
  'LIMIT_EXCEEDED',
  'PERMISSION_DENIED',
  'UNKNOWN_TOOL',
  'RATE_LIMITED',
  'UNAVAILABLE',
  'TIMEOUT',
  'EPISODE_DONE',
] as const
/** Why a call failed, as the model is told. */
export type CallErrorCode = (typeof ERROR_CODES)[number]

/** One tool. The id parameter of `get`, `update`, `set`, `append` and `delete`, and paging, are understood. */
export type ToolDeclaration<Entity extends string = string> =
  | {
      op: 'list' | 'search'
      entity: Entity
      params?: Params
      /** How a parameter selects; by default a field of its name equals it. */
      filters?: Record<string, readonly [field: string, comparison: Comparison]>
      defaults?: Record<string, Default>
    }
  | { op: 'get' | 'delete'; entity: Entity }
  | {
      op: 'create'
      entity: Entity
      params: Params
      defaults?: Record<string, Default>
      /** Two date-times of which the first must come before the second. */
      ordered?: readonly [before: string, after: string]
    }
  | { op: 'update'; entity: Entity; params: Params }
  | {
      op: 'set'
      entity: Entity
      params?: Params
      /** What is assigned; `@name` is the parameter of that name, null takes the field away. */
      set: Record<string, string | null>
      /** Values of which a field must have one, else INVALID_STATE. */
      guard?: Record<string, readonly string[]>
    }
  | { op: 'append'; entity: Entity; params: Params; append: Record<string, `@${string}`> }
  | {
      op: 'custom'
      entity: Entity
      params: Params
      write: boolean
      /** Beyond INVALID_ARGUMENT, NOT_FOUND, and REF_NOT_FOUND where a parameter refers. */
      errors?: readonly CallErrorCode[]
      /** What the tool does, for its description. */
      about: string
      handler: Handler
    }

export interface ServiceDeclaration {
  name: string
  title: string
  entities: Record<string, EntityDeclaration>
  tools: Record<string, ToolDeclaration>
}

/**
 * Keeps the literal types of a declaration: a tool that names an undeclared entity, or that is not prefixed with the
 * service's name, does not compile. Names of fields are checked when the registry is built.
 */
export function defineService<
  const Name extends string,
  const Entities extends Record<string, EntityDeclaration>,
  const Tools extends Record<`${Name}_${string}`, ToolDeclaration<keyof Entities & string>>,
>(service: { name: Name; title: string; entities: Entities; tools: Tools }) {
  return service
}

type ValueOf<F> = F extends { t: 'enum'; values: readonly (infer V)[] }
  ? V
  : F extends { t: 'list'; of: infer P }
    ? ValueOf<{ t: P }>[]
    : F extends { t: 'int' | 'num' | 'money' }
      ? number
      : F extends { t: 'bool' }
        ? boolean
        : F extends { t: 'obj' }
          ? { [key: string]: JsonValue }
          : string

/** The type of an entity's records, from its declaration. */
export type RecordOf<E extends { fields: Record<string, unknown> }> = {
  [K in keyof E['fields'] as E['fields'][K] extends { opt: true } ? never : K]: ValueOf<
    E['fields'][K]
  >
} & {
  [K in keyof E['fields'] as E['fields'][K] extends { opt: true } ? K : never]?: ValueOf<
    E['fields'][K]
  >
}
