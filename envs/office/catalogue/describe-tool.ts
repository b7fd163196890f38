// A tool's description for the model, made from its declaration so that it cannot say what the tool does not do.
import type { ServiceDeclaration, ToolDeclaration } from './declare.ts'

/** One or two sentences: what the tool does, to what, and under which condition. */
export function describeTool(
  service: ServiceDeclaration,
  entity: { key: string; id: string },
  tool: ToolDeclaration,
): string {
  return `${service.title}. ${actOf(tool, entity.key.replaceAll('_', ' '), entity.id)}`
}

const PAGING = '20 a page, 50 at most, and next_offset tells where to go on'

function actOf(tool: ToolDeclaration, noun: string, idField: string): string {
  switch (tool.op) {
    case 'list':
      return `Lists ${noun} records that meet all given filters${defaultsOf(tool.defaults)}; ${PAGING}.`
    case 'search':
      return `Searches ${noun} records by words, best match first; ${PAGING}.`
    case 'get':
      return `Gets one ${noun} with all its fields.`
    case 'delete':
      return `Deletes one ${noun}.`
    case 'create':
      return `Creates one ${noun}${fixedOf(tool)}${presetsOf(tool)}.`
    case 'update':
      return `Changes the given fields of one ${noun}; the others stay.`
    case 'append':
      return `Adds to the list ${Object.keys(tool.append).join(', ')} of one ${noun}.`
    case 'set':
      return `Sets ${assignmentsOf(tool.set)} on the ${noun} with that ${idField}${guardOf(tool.guard)}.`
    case 'custom':
      return tool.about
  }
}

const defaultsOf = (defaults: Record<string, unknown> = {}): string =>
  Object.entries(defaults)
    .map(([name, value]) => ` (${name}: ${value} unless given)`)
    .join('')

type Creation = ToolDeclaration & { op: 'create' }

/** What every new record holds, as far as a word of the catalogue says it. */
function fixedOf({ params, defaults = {} }: Creation): string {
  const fixed = Object.entries(defaults)
    .filter(([name, value]) => !Object.hasOwn(params, name) && isWord(value))
    .map(([name, value]) => `${name} ${value}`)
  return fixed.length === 0 ? '' : ` with ${fixed.join(', ')}`
}

/** What optional parameters are where they are not given. */
function presetsOf({ params, defaults = {} }: Creation): string {
  const presets = Object.entries(defaults)
    .filter(([name, value]) => Object.hasOwn(params, name) && typeof value === 'string')
    .map(([name, value]) => `${name}: ${isWord(value) ? value : 'the person you act for'}`)
  return presets.length === 0 ? '' : ` (${presets.join(', ')}, unless given)`
}

const isWord = (value: unknown): boolean => typeof value === 'string' && !value.startsWith('@')

const assignmentsOf = (set: Record<string, string | null>): string =>
  Object.entries(set)
    .map(([field, value]) => {
      if (value === null) return `${field} to nothing`
      return value.startsWith('@')
        ? `${field} to the given ${value.slice(1)}`
        : `${field} to ${value}`
    })
    .join(', ')

const guardOf = (guard: Record<string, readonly string[]> = {}): string =>
  Object.entries(guard)
    .map(([field, values]) => `, only while its ${field} is ${values.join(' or ')}`)
    .join('')
