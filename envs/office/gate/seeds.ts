// V02, V03 and V09: services and their seeded records, each value of its field's type, each reference to a record that is there.
import type { JsonObject } from '../../../protocol/json.ts'
import type { TaskProblem } from '../../environment.ts'
import type { EntityName } from '../catalogue/declare.ts'
import type { Entity } from '../catalogue/derive.ts'
import { ENTITIES, ENTITIES_OF } from '../catalogue/registry.ts'
import { isDateTime } from '../kernel/instant.ts'
import { misfit, shown } from '../kernel/values.ts'
import type { TaskSpec } from '../spec.ts'
import { problem, repeated } from './problem.ts'

/** The form that only created records have. */
export const GENERATED_ID = /^[A-Z]{2}-N\d+$/

/** What is wrong with a spec's clock, services and seeded records. */
export function seedProblems(spec: TaskSpec): TaskProblem[] {
  return [
    ...clockProblems(spec),
    ...serviceProblems(spec),
    ...Object.entries(spec.initial_state).flatMap(([service, tables]) =>
      Object.entries(tables).flatMap(([key, records]) => {
        const path = `initial_state.${service}.${key}`
        const entity = ENTITIES.get(`${service}.${key}`)
        if (entity) return tableProblems(spec, entity, records, path)
        const known = ENTITIES_OF.get(service)?.map((one) => one.key) ?? []
        return [problem('V03', path, `an entity of ${service} (${known.join(', ')})`, key)]
      }),
    ),
  ]
}

function clockProblems({ clock }: TaskSpec): TaskProblem[] {
  const problems: TaskProblem[] = []
  if (!isDateTime(clock.now))
    problems.push(
      problem('V09', 'clock.now', 'a date-time with seconds and offset', shown(clock.now)),
    )
  if (clock.tick_s !== undefined && clock.tick_s < 0)
    problems.push(problem('V09', 'clock.tick_s', '0 or more seconds', shown(clock.tick_s)))
  return problems
}

function serviceProblems({ services, initial_state }: TaskSpec): TaskProblem[] {
  return [
    ...services
      .filter((service) => !Object.hasOwn(initial_state, service))
      .map((service) =>
        problem('V02', `initial_state.${service}`, `records of the service ${service}`, 'nothing'),
      ),
    ...Object.keys(initial_state)
      .filter((service) => !services.includes(service))
      .map((service) =>
        problem('V02', `initial_state.${service}`, 'a service of the task', shown(service)),
      ),
  ]
}

function tableProblems(
  spec: TaskSpec,
  entity: Entity,
  records: readonly JsonObject[],
  path: string,
): TaskProblem[] {
  const ids = records.map((record) => String(record[entity.id]))
  return [
    ...repeated(ids).map(({ value, index }) =>
      problem('V03', `${path}[${index}].${entity.id}`, 'an id that occurs once', shown(value)),
    ),
    ...records.flatMap((record, i) => recordProblems(spec, entity, record, `${path}[${i}]`)),
  ]
}

function recordProblems(
  spec: TaskSpec,
  { id, fields }: Entity,
  record: JsonObject,
  path: string,
): TaskProblem[] {
  const problems = Object.keys(record)
    .filter((name) => !fields.has(name))
    .map((name) =>
      problem('V03', `${path}.${name}`, `a field (${[...fields.keys()].join(', ')})`, name),
    )
  for (const [name, field] of fields) {
    const value = Object.hasOwn(record, name) ? record[name] : null
    const at = `${path}.${name}`
    if (value === null || value === undefined) {
      if (!field.opt) problems.push(problem('V03', at, 'a value', 'nothing'))
      continue
    }
    const expected = misfit(value, field)
    if (expected) problems.push(problem('V03', at, expected, shown(value)))
    else if (field.t === 'ref' && !isSeeded(spec, field.to, String(value)))
      problems.push(problem('V03', at, `the id of a seeded ${field.to}`, shown(value)))
  }
  if (GENERATED_ID.test(String(record[id])))
    problems.push(
      problem('V03', `${path}.${id}`, 'an id that no created record can get', shown(record[id])),
    )
  return problems
}

/** Whether a record is seeded; what belongs to a service that the task lacks is taken to be. */
function isSeeded(spec: TaskSpec, name: EntityName, recordId: string): boolean {
  const entity = ENTITIES.get(name)
  if (!entity || !spec.services.includes(entity.service)) return true
  return seededIds(spec, entity).includes(recordId)
}

/** Ids of an entity's seeded records. */
export const seededIds = (spec: TaskSpec, entity: Entity): string[] =>
  (spec.initial_state[entity.service]?.[entity.key] ?? []).map((record) =>
    String(record[entity.id]),
  )
