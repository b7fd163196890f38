// The tools of a turn by name, and what their schemas say of a parameter.
import type { ToolDefinition } from '../../protocol/conversation.ts'
import { additionalSchema, memberSchema, type SchemaTypes, schemaTypes } from './schema-types.ts'

export interface ParameterType extends SchemaTypes {
  /** Whether the tool's schema names the parameter. */
  isDeclared: boolean
}

export class Toolbox {
  readonly #tools = new Map<string, ToolDefinition>()
  readonly #parameters = new Map<string, ParameterType>()

  constructor(tools: readonly ToolDefinition[]) {
    for (const tool of tools) this.#tools.set(tool.function.name, tool)
  }

  has(name: string): boolean {
    return this.#tools.has(name)
  }

  /** What may stand for a parameter; a tool without a schema, and no tool at all, say nothing. */
  parameter(name: string, key: string): ParameterType {
    const cacheKey = JSON.stringify([name, key])
    const known = this.#parameters.get(cacheKey)
    if (known !== undefined) return known
    const root = this.#tools.get(name)?.function.parameters
    const declared = memberSchema(root, key)
    const schema = declared ?? additionalSchema(root)
    const parameter = { ...schemaTypes(schema, root), isDeclared: declared !== undefined }
    this.#parameters.set(cacheKey, parameter)
    return parameter
  }
}
