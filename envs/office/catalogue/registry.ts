// The catalogue by name: every entity and every tool of the 28 services, derived once from their declarations.
import { type Entity, type Tool, toEntity, toTool } from './derive.ts'
import { SERVICES } from './services.ts'

export const ENTITIES: ReadonlyMap<string, Entity> = new Map(
  SERVICES.flatMap((service) =>
    Object.entries(service.entities).map(([key, declaration]) => {
      const entity = toEntity(service, key, declaration)
      return [entity.name, entity] as const
    }),
  ),
)

export const TOOLS: ReadonlyMap<string, Tool> = new Map(
  SERVICES.flatMap((service) =>
    Object.entries(service.tools).map(([name, tool]) => {
      const entity = entityNamed(`${service.name}.${tool.entity}`)
      return [name, toTool(service, name, tool, entity)] as const
    }),
  ),
)

export const ENTITIES_OF: ReadonlyMap<string, readonly Entity[]> = groupByService(ENTITIES)
const TOOLS_OF: ReadonlyMap<string, readonly Tool[]> = groupByService(TOOLS)

/** The entity of a name that the catalogue is known to hold; throws where it does not. */
export function entityNamed(name: string): Entity {
  const entity = ENTITIES.get(name)
  if (!entity) throw new Error(`expected an entity of the catalogue, got "${name}"`)
  return entity
}

/** The tools that a task offers, in the catalogue's order. */
export function toolsOf(spec: { services: string[]; tools?: string[] }): Tool[] {
  const offered = spec.tools && new Set(spec.tools)
  return spec.services
    .flatMap((service) => TOOLS_OF.get(service) ?? [])
    .filter((tool) => !offered || offered.has(tool.name))
}

function groupByService<T extends { service: string }>(things: ReadonlyMap<string, T>) {
  const groups = new Map<string, T[]>(SERVICES.map(({ name }) => [name, []]))
  for (const thing of things.values()) groups.get(thing.service)!.push(thing)
  return groups
}
