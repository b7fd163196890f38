// Wrong episodes made from a right one: writes of the reference path dropped, misdirected, repeated, or copied over others.

import type { JsonObject, JsonValue } from '../../../protocol/json.ts'
import { ENTITIES, TOOLS } from '../catalogue/registry.ts'
import { sameJson } from '../kernel/values.ts'
import type { SpecStep, TaskSpec } from '../spec.ts'
import { type PlayedStep, writesOf } from './play.ts'
import { seededIds } from './seeds.ts'

export type MutationRule = 'V13' | 'V15' | 'V16' | 'V17'

/** One wrong episode: the reference path with `steps` in the place of its step `index`. */
export interface Mutant {
  rule: MutationRule
  index: number
  steps: SpecStep[]
  /** Where in the spec the mutated value stands. */
  path: string
  /** What was put there. */
  put: string
}

type CallStep = Extract<SpecStep, { call: string }>
interface Write {
  index: number
  step: CallStep
}

/** Every mutant of a played reference path; of each write the dropped one first. */
export function mutantsOf(spec: TaskSpec, played: readonly PlayedStep[]): Mutant[] {
  const writes = played.flatMap((one, index): Write[] =>
    'call' in one.step && writesOf(one).length > 0 ? [{ index, step: one.step }] : [],
  )
  const seeded = new Set([...ENTITIES.values()].flatMap((entity) => seededIds(spec, entity)))
  return writes.flatMap((write) => [
    dropped(write),
    ...misdirected(write, seeded),
    repeated(write),
    ...copied(write, writes),
  ])
}

const at = ({ index }: Write): string => `reference_path[${index}]`

const dropped = (write: Write): Mutant => ({
  rule: 'V13',
  index: write.index,
  steps: [],
  path: at(write),
  put: 'nothing',
})

/** A repetition counts only where it changes records again, which is seen when it is played. */
const repeated = (write: Write): Mutant => ({
  rule: 'V16',
  index: write.index,
  steps: [write.step, withArgs(write.step, write.step.args)],
  path: at(write),
  put: 'the same call twice',
})

function copied(write: Write, writes: readonly Write[]): Mutant[] {
  return writes
    .filter(({ step }) => step.call === write.step.call && !sameJson(step.args, write.step.args))
    .map((other) => ({
      rule: 'V17',
      index: write.index,
      steps: [withArgs(write.step, other.step.args)],
      path: at(write),
      put: at(other),
    }))
}

/** Each id among the arguments, replaced by each other seeded id, be it of another entity. */
function misdirected(write: Write, seeded: ReadonlySet<string>): Mutant[] {
  const { step } = write
  return [...TOOLS.get(step.call)!.params].flatMap(([name, { t }]) => {
    const value = step.args[name]
    const variants = (id: string, member: string, replace: (other: string) => JsonValue) =>
      [...seeded]
        .filter((other) => other !== id && !(Array.isArray(value) && value.includes(other)))
        .map((other): Mutant => {
          const args = { ...step.args, [name]: replace(other) }
          const path = `${at(write)}.args.${name}${member}`
          return {
            rule: 'V15',
            index: write.index,
            steps: [withArgs(step, args)],
            path,
            put: other,
          }
        })
    if (Array.isArray(value))
      return value.flatMap((id, i) =>
        typeof id === 'string' && seeded.has(id)
          ? variants(id, `[${i}]`, (other) => value.with(i, other))
          : [],
      )
    const isId = typeof value === 'string' && (t === 'id' || t === 'ref' || seeded.has(value))
    return isId ? variants(value, '', (other) => other) : []
  })
}

/** The same call with other arguments; what it answers is no longer known. */
const withArgs = ({ call }: CallStep, args: JsonObject): SpecStep => ({ call, args })
