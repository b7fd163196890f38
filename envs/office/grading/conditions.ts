// Conditions on values (SPEC section d): one table of operators, used to evaluate and to find what is wrong in a spec.
import { PaddockError } from '../../../protocol/errors.ts'
import { isPlainObject, type JsonObject, type JsonValue } from '../../../protocol/json.ts'
import type { Field } from '../catalogue/declare.ts'
import { instantOf, isDate, isDateTime } from '../kernel/instant.ts'
import { holdsNumber, normalised } from './text.ts'

/** What relative times and dates without an offset refer to. */
export interface Moment {
  nowMs: number
  offsetMinutes: number
}

export type Fields = ReadonlyMap<string, Field>
export type Value = JsonValue | undefined

/** What an operator's operand must be; `condition` is a literal or operators again. */
export type OperandKind =
  | 'literal'
  | 'literals'
  | 'number'
  | 'size'
  | 'range'
  | 'text'
  | 'texts'
  | 'pattern'
  | 'flag'
  | 'instant'
  | 'condition'
  | 'near'

interface Around {
  field: Field | undefined
  moment: Moment
  /** `tol` beside `number` and `approx`. */
  tolerance: number | undefined
}

interface Operator {
  operand: OperandKind
  holds(value: Value, operand: JsonValue, around: Around): boolean
}

const HOUR_MS = 3_600_000
const NUMBER_TOLERANCE = 1e-9
/** Half a cent, included: 10 and 10.005 differ by a little more than that in floating point. */
const MONEY_TOLERANCE = 0.005 + NUMBER_TOLERANCE

const comparing = (passes: (order: number) => boolean): Operator => ({
  operand: 'literal',
  holds: (value, operand, around) => {
    const order = orderOf(value, operand, around)
    return order !== null && passes(order)
  },
})

const pattern: Operator = {
  operand: 'pattern',
  holds: (value, operand) =>
    textsOf(value).some((text) => new RegExp(String(operand), 'iu').test(text)),
}

const aged = (passes: (ageMs: number, limitMs: number) => boolean): Operator => ({
  operand: 'number',
  holds: (value, hours, { moment }) => {
    const at = typeof value === 'string' ? instantOf(value, moment.offsetMinutes) : null
    return at !== null && passes(moment.nowMs - at, Number(hours) * HOUR_MS)
  },
})

export const OPERATORS: ReadonlyMap<string, Operator> = new Map<string, Operator>(
  Object.entries({
    eq: { operand: 'condition', holds: equals },
    ne: {
      operand: 'condition',
      holds: (value, operand, around) => !equals(value, operand, around),
    },
    in: {
      operand: 'literals',
      holds: (value, operand, around) => items(operand).some((one) => equals(value, one, around)),
    },
    nin: {
      operand: 'literals',
      holds: (value, operand, around) => !items(operand).some((one) => equals(value, one, around)),
    },
    gt: comparing((order) => order > 0),
    gte: comparing((order) => order >= 0),
    lt: comparing((order) => order < 0),
    lte: comparing((order) => order <= 0),
    before: { ...comparing((order) => order < 0), operand: 'instant' },
    after: { ...comparing((order) => order > 0), operand: 'instant' },
    between: {
      operand: 'range',
      holds: (value, operand, around) => {
        const [low, high] = items(operand).map((end) => orderOf(value, end, around))
        return low != null && high != null && low >= 0 && high <= 0
      },
    },
    contains: { operand: 'text', holds: containsText },
    contains_all: {
      operand: 'texts',
      holds: (value, operand) => items(operand).every((one) => containsText(value, one)),
    },
    contains_any: {
      operand: 'texts',
      holds: (value, operand) => items(operand).some((one) => containsText(value, one)),
    },
    contains_none: {
      operand: 'texts',
      holds: (value, operand) => !items(operand).some((one) => containsText(value, one)),
    },
    matches: pattern,
    re: pattern,
    exists: { operand: 'flag', holds: (value, operand) => isPresent(value) === operand },
    approx: {
      operand: 'near',
      holds: (value, operand, { tolerance }) => {
        const [wanted, within] = Array.isArray(operand) ? operand : [operand, tolerance]
        if (typeof value !== 'number') return false
        return Math.abs(value - Number(wanted)) <= Number(within ?? MONEY_TOLERANCE)
      },
    },
    older_than_h: aged((age, limit) => age > limit),
    newer_than_h: aged((age, limit) => age < limit),
    set_eq: {
      operand: 'literals',
      holds: (value, operand, around) =>
        Array.isArray(value) &&
        includesAll(value, items(operand), around) &&
        includesAll(items(operand), value, around),
    },
    superset: {
      operand: 'literals',
      holds: (value, operand, around) =>
        Array.isArray(value) && includesAll(value, items(operand), around),
    },
    subset: {
      operand: 'literals',
      holds: (value, operand, around) =>
        Array.isArray(value) && includesAll(items(operand), value, around),
    },
    has: {
      operand: 'condition',
      holds: (value, operand, { field, moment }) =>
        Array.isArray(value) &&
        value.some((member) => holds(member, operand, memberField(field), moment)),
    },
    len: {
      operand: 'size',
      holds: (value, operand, { moment }) =>
        (Array.isArray(value) || typeof value === 'string') &&
        holds(value.length, operand, { t: 'int' }, moment),
    },
    number: {
      operand: 'number',
      holds: (value, operand, { tolerance }) =>
        textsOf(value).some((text) =>
          holdsNumber(text, Number(operand), tolerance ?? MONEY_TOLERANCE),
        ),
    },
  } satisfies Record<string, Operator>),
)

/** Whether a record (or the arguments of a call) meets all conditions of a `where`. */
export function meets(
  row: { readonly [field: string]: Value },
  where: JsonObject,
  fields: Fields,
  moment: Moment,
): boolean {
  return Object.entries(where).every(([name, condition]) => {
    if (name === '$or')
      return items(condition).some((one) => meets(row, one as JsonObject, fields, moment))
    if (name === '$not') return !meets(row, condition as JsonObject, fields, moment)
    if (name === '$text') return holds(joinedText(row), condition, { t: 'text' }, moment)
    return holds(
      Object.hasOwn(row, name) ? row[name] : undefined,
      condition,
      fields.get(name),
      moment,
    )
  })
}

/** Whether a value meets a condition: a literal that it equals, or operators that all hold. */
export function holds(
  value: Value,
  condition: JsonValue,
  field: Field | undefined,
  moment: Moment,
): boolean {
  const around: Around = { field, moment, tolerance: undefined }
  if (!isPlainObject(condition)) return equals(value, condition, around)
  if (typeof condition.tol === 'number') around.tolerance = condition.tol
  return Object.entries(condition as JsonObject).every(([name, operand]) => {
    if (name === 'tol') return true
    const operator = OPERATORS.get(name)
    // `problems` refuses such a spec; a score must not come of it all the same.
    if (!operator) throw new PaddockError('invalid_task', `unknown operator "${name}"`)
    return operator.holds(value, operand, around)
  })
}

/** All string fields of a record, joined by line breaks. */
function joinedText(row: { readonly [field: string]: Value }): string {
  return Object.values(row)
    .filter((value) => typeof value === 'string')
    .join('\n')
}

/** Literal equality; an operand with operators is a condition. A scalar is sought in a list, two lists are sets. */
function equals(value: Value, wanted: JsonValue, around: Around): boolean {
  if (isPlainObject(wanted)) return holds(value, wanted as JsonValue, around.field, around.moment)
  if (!isPresent(value)) return wanted === null
  if (Array.isArray(value)) {
    const inner = { ...around, field: memberField(around.field) }
    if (!Array.isArray(wanted)) return value.some((member) => equals(member, wanted, inner))
    return includesAll(value, wanted, around) && includesAll(wanted, value, around)
  }
  if (typeof value === 'string' && typeof wanted === 'string') {
    const order = isTime(around.field, value, wanted) ? orderOf(value, wanted, around) : null
    return order === null ? normalised(value) === normalised(wanted) : order === 0
  }
  if (typeof value === 'number' && typeof wanted === 'number')
    return Math.abs(value - wanted) <= toleranceOf(around.field)
  return value === wanted
}

/** Negative, zero or positive: numbers by size, dates as instants, other text folded; null where they do not compare. */
function orderOf(value: Value, operand: JsonValue, { field, moment }: Around): number | null {
  if (typeof value === 'number' && typeof operand === 'number') {
    const difference = value - operand
    return Math.abs(difference) <= toleranceOf(field) ? 0 : difference
  }
  if (typeof value !== 'string' || typeof operand !== 'string') return null
  const at = instantOf(value, moment.offsetMinutes)
  const other = instantOf(operand, moment.offsetMinutes)
  if (at !== null && other !== null) return at - other
  const [one, two] = [normalised(value), normalised(operand)]
  return one < two ? -1 : one > two ? 1 : 0
}

const toleranceOf = (field: Field | undefined): number =>
  field?.t === 'money' ? MONEY_TOLERANCE : NUMBER_TOLERANCE

/** Dates and date-times compare as instants where the field says so, or where both sides are such. */
function isTime(field: Field | undefined, value: string, wanted: string): boolean {
  if (field?.t === 'date' || field?.t === 'datetime') return true
  return [value, wanted].every((text) => isDate(text) || isDateTime(text))
}

const isPresent = (value: Value): value is Exclude<JsonValue, null> =>
  value !== null && value !== undefined

const items = (operand: JsonValue): readonly JsonValue[] =>
  Array.isArray(operand) ? operand : [operand]

const memberField = (field: Field | undefined): Field | undefined =>
  field?.t === 'list' && field.of !== 'obj' ? { t: field.of } : undefined

function includesAll(
  list: readonly JsonValue[],
  wanted: readonly JsonValue[],
  around: Around,
): boolean {
  const inner = { ...around, field: memberField(around.field) }
  return wanted.every((one) => list.some((member) => equals(member, one, inner)))
}

/** The strings of a value: itself, its members, or its digits. */
function textsOf(value: Value): string[] {
  if (Array.isArray(value)) return value.flatMap(textsOf)
  return isPresent(value) && typeof value !== 'object' ? [String(value)] : []
}

function containsText(value: Value, part: JsonValue): boolean {
  const wanted = normalised(String(part))
  return textsOf(value).some((text) => normalised(text).includes(wanted))
}
