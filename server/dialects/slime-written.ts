// Items that workers of the trainer's own write into slime's buffer: whole, of one group, each once; anything else is refused.
import { z } from 'zod'
import { PaddockError } from '../../protocol/errors.ts'
import { canonicalJson, isPlainObject, type JsonObject } from '../../protocol/json.ts'
import { invalidRequest } from '../problems.ts'
import { checkSchema } from '../schema-issues.ts'

/** Groups of written items by the JSON text of their `instance_id`. */
export interface Written {
  groups: Record<string, JsonObject[]>
  /** Instances that have arrived: a late item of theirs would make a second group. */
  arrived: string[]
}

export const NOTHING_WRITTEN: Written = { groups: {}, arrived: [] }

/** Written items that wait for their group or for the trainer, characters of JSON. */
const MAX_WAITING = 16 * 2 ** 20

/** What slime's client reads of an item; whatever else is in it is kept. A message without text stops that client. */
const itemSchema = z.looseObject({
  uid: z.union([z.string(), z.int()]),
  instance_id: z.union([z.string(), z.int()]),
  messages: z.array(z.looseObject({ role: z.string(), content: z.string() })).min(1),
  reward: z.number(),
  extra_info: z.looseObject({}),
})

/**
 * The state with one item more. The same item twice is taken once, as workers try again. Throws PaddockError with what
 * is wrong: a missing key, a reward that is no number, a group that is whole already, an instance that the server plays.
 */
export function writeItem(
  written: Written,
  value: unknown,
  run: { groupSize: number; total: number },
): Written {
  const checked = checkSchema(itemSchema, value)
  if (!checked.ok) throw invalidRequest(checked.issues)
  const item = value as JsonObject
  const { instance_id, uid } = checked.value
  const key = JSON.stringify(instance_id)
  const known = written.groups[key] ?? []
  const twin = known.find((one) => one.uid === uid)
  if (twin && canonicalJson(twin) === canonicalJson(item)) return written
  if (twin) refuse('uid', `item ${JSON.stringify(uid)} was written before with other contents`)
  if (typeof instance_id === 'number' && instance_id < run.total)
    refuse(
      'instance_id',
      `${key} is played by the server: choose ids from ${run.total} on, or text`,
    )
  if (known.length >= run.groupSize || written.arrived.includes(key))
    refuse('instance_id', `the group ${key} is whole: expected ${run.groupSize} items`)
  const groups = { ...written.groups, [key]: [...known, item] }
  if (JSON.stringify(groups).length > MAX_WAITING)
    throw new PaddockError('queue_full', 'too many written items wait: poll, or write fewer')
  return { ...written, groups }
}

/** The groups that are whole, with their keys. */
export function wholeGroups(written: Written, groupSize: number): [string, JsonObject[]][] {
  return Object.entries(written.groups).filter(([, items]) => items.length === groupSize)
}

/** The state once these groups have arrived. */
export function withoutGroups(written: Written, keys: readonly string[]): Written {
  const groups = Object.entries(written.groups).filter(([key]) => !keys.includes(key))
  const gone = Object.keys(written.groups).filter((key) => keys.includes(key))
  return { groups: Object.fromEntries(groups), arrived: [...written.arrived, ...gone] }
}

/** The `instance_id` of a written group. */
export function idOf(items: readonly JsonObject[]): string | number {
  const id = isPlainObject(items[0]) ? items[0].instance_id : ''
  return id as string | number
}

function refuse(path: string, message: string): never {
  throw new PaddockError('invalid_request', message, { path })
}
