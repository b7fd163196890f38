// What follows from one declaration: an entity's or a tool's fields, parameters, JSON Schema and error codes.
import type { ToolDefinition } from '../../../protocol/conversation.ts'
import { PaddockError } from '../../../protocol/errors.ts'
import type { JsonObject } from '../../../protocol/json.ts'
import type {
  CallErrorCode,
  Comparison,
  EntityDeclaration,
  EntityName,
  Field,
  Primitive,
  ServiceDeclaration,
  ToolDeclaration,
} from './declare.ts'
import { describeTool } from './describe-tool.ts'

export type Fields = ReadonlyMap<string, Field>

export interface Entity {
  /** `<service>.<key>` */
  name: EntityName
  service: string
  /** Its name within the service. */
  key: string
  id: string
  prefix: string
  fields: Fields
  /** Fields that list and search show; null for all. */
  summary: readonly string[] | null
  search: readonly string[]
  sort: readonly [field: string, direction: 'asc' | 'desc']
  /** Fields that only tell the time of an act. */
  stamps: ReadonlySet<string>
}

export interface Tool {
  name: string
  service: string
  entity: Entity
  declaration: ToolDeclaration
  /** Whether it can change records. */
  write: boolean
  /** All parameters, the understood ones (id, query, limit, offset) in their place. */
  params: Fields
  filters: ReadonlyMap<string, readonly [field: string, comparison: Comparison]>
  errors: readonly CallErrorCode[]
  /** As the model sees it. */
  definition: ToolDefinition
  /** The same with the `offset` of a long record: of `get`, in tasks that have a record longer than one observation. */
  longDefinition: ToolDefinition
}

/** Throws where the declaration names a field that it does not declare. */
export function toEntity(
  service: ServiceDeclaration,
  key: string,
  { id, prefix, fields, summary, search, sort, stamps }: EntityDeclaration,
): Entity {
  const name: EntityName = `${service.name}.${key}`
  const named = [id, ...(summary ?? []), ...(search ?? []), ...(stamps ?? [])]
  if (sort) named.push(sort[0])
  for (const field of named) expectField(name, fields, field)
  return {
    name,
    service: service.name,
    key,
    id,
    prefix,
    fields: new Map(Object.entries(fields)),
    summary: summary ?? null,
    search: search ?? [],
    sort: sort ?? [id, 'asc'],
    stamps: new Set(['created_at', 'updated_at', ...(stamps ?? [])]),
  }
}

/** Throws where the declaration names a field that the entity does not have. */
export function toTool(
  service: ServiceDeclaration,
  name: string,
  declaration: ToolDeclaration,
  entity: Entity,
): Tool {
  for (const field of assignedFields(declaration))
    expectField(name, Object.fromEntries(entity.fields), field)
  const params = parametersOf(declaration, entity)
  const description = describeTool(service, entity, declaration)
  const isGet = declaration.op === 'get'
  const usual = isGet ? [...params].filter(([key]) => key !== 'offset') : [...params]
  const definition = definitionOf(name, description, usual)
  const longDefinition = isGet
    ? definitionOf(name, `${description} ${LONG_RECORD}`, [...params])
    : definition
  return {
    name,
    service: service.name,
    entity,
    declaration,
    write:
      declaration.op === 'custom'
        ? declaration.write
        : !['list', 'search', 'get'].includes(declaration.op),
    params,
    filters: new Map('filters' in declaration ? Object.entries(declaration.filters ?? {}) : []),
    errors: errorsOf(declaration, params),
    definition,
    longDefinition,
  }
}

function definitionOf(
  name: string,
  description: string,
  params: readonly (readonly [string, Field])[],
): ToolDefinition {
  const parameters = {
    type: 'object',
    properties: Object.fromEntries(params.map(([key, field]) => [key, schemaOf(field)])),
    required: params.filter(([, field]) => !field.opt).map(([key]) => key),
    additionalProperties: false,
  }
  return { type: 'function', function: { name, description, parameters } }
}

const LONG_RECORD = 'A long text comes in parts: offset goes on from the last next_offset.'

const ID: Field = { t: 'id' }
const PAGING: Record<string, Field> = {
  limit: { t: 'int', opt: true },
  offset: { t: 'int', opt: true },
}

function parametersOf(declaration: ToolDeclaration, entity: Entity): Fields {
  const declared = 'params' in declaration ? (declaration.params ?? {}) : {}
  switch (declaration.op) {
    case 'list':
      return new Map(Object.entries({ ...declared, ...PAGING }))
    case 'search':
      return new Map(Object.entries({ query: { t: 'str' } as Field, ...declared, ...PAGING }))
    case 'get':
      return new Map(Object.entries({ [entity.id]: ID, offset: PAGING.offset! }))
    case 'delete':
    case 'update':
    case 'set':
    case 'append':
      return new Map(Object.entries({ [entity.id]: ID, ...declared }))
    case 'create':
    case 'custom':
      return new Map(Object.entries(declared))
  }
}

/** Fields of the entity that a declaration names as its own. */
function assignedFields(declaration: ToolDeclaration): string[] {
  switch (declaration.op) {
    case 'list':
    case 'search':
      return [
        ...Object.values(declaration.filters ?? {}).map(([field]) => field),
        ...Object.keys(declaration.params ?? {}).filter((name) => !declaration.filters?.[name]),
      ]
    case 'create':
      return [...Object.keys(declaration.params), ...Object.keys(declaration.defaults ?? {})]
    case 'update':
      return Object.keys(declaration.params)
    case 'set':
      return [...Object.keys(declaration.set), ...Object.keys(declaration.guard ?? {})]
    case 'append':
      return Object.keys(declaration.append)
    default:
      return []
  }
}

function errorsOf(declaration: ToolDeclaration, params: Fields): CallErrorCode[] {
  const codes = new Set<CallErrorCode>(['INVALID_ARGUMENT'])
  if (!['list', 'search', 'create'].includes(declaration.op)) codes.add('NOT_FOUND')
  if (declaration.op === 'custom') for (const code of declaration.errors ?? []) codes.add(code)
  const refers = [...params.values()].some(({ t }) => t === 'ref')
  if (declaration.op === 'create' || refers) codes.add('REF_NOT_FOUND')
  if (declaration.op === 'set' && declaration.guard) codes.add('INVALID_STATE')
  return [...codes]
}

const PRIMITIVE_SCHEMAS: Record<Primitive | 'obj', JsonObject> = {
  id: { type: 'string' },
  str: { type: 'string' },
  text: { type: 'string' },
  secret: { type: 'string' },
  int: { type: 'integer' },
  num: { type: 'number' },
  money: { type: 'number' },
  bool: { type: 'boolean' },
  date: { type: 'string', format: 'date' },
  datetime: { type: 'string', format: 'date-time' },
  email: { type: 'string', format: 'email' },
  obj: { type: 'object' },
}

function schemaOf(field: Field): JsonObject {
  if (field.t === 'enum') return { type: 'string', enum: [...field.values] }
  if (field.t === 'list') return { type: 'array', items: PRIMITIVE_SCHEMAS[field.of] }
  return PRIMITIVE_SCHEMAS[field.t === 'ref' ? 'id' : field.t]
}

function expectField(where: string, fields: Record<string, Field>, field: string): void {
  if (!Object.hasOwn(fields, field)) throw misdeclared(`${where} names the field ${field}`)
}

const misdeclared = (what: string) =>
  new PaddockError('internal', `${what}, which is not declared: correct the declaration`)
