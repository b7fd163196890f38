// Whether a JSON value is what a field asks for, and how two values are compared without regard to case and space.
import { isPlainObject, type JsonObject, type JsonValue } from '../../../protocol/json.ts'
import type { Field, Primitive } from '../catalogue/declare.ts'
import { isDate, isDateTime } from './instant.ts'

const EMAIL = /^[^\s@,;<>]+@[^\s@,;<>]+\.[^\s@,;<>]+$/
/** RFC 5321, 4.5.3.1.3; it also bounds the time that the pattern takes. */
const MAX_EMAIL_CHARS = 254

/** One address, no spaces, a dot in the domain: enough to tell an address from a name. */
export const isEmail = (text: string): boolean => text.length <= MAX_EMAIL_CHARS && EMAIL.test(text)

/** What a field expects where the value is not that, else null. The value is present (neither null nor undefined). */
export function misfit(value: unknown, field: Field): string | null {
  if (field.t === 'enum')
    return typeof value === 'string' && field.values.includes(value)
      ? null
      : `one of ${field.values.join(', ')}`
  if (field.t === 'ref') return typeof value === 'string' ? null : `an id of ${field.to}`
  if (field.t !== 'list') return fits(value, field.t) ? null : EXPECTED[field.t]
  const member = field.of
  return Array.isArray(value) && value.every((item) => fits(item, member))
    ? null
    : `a list, each ${EXPECTED[member]}`
}

const MAX_SHOWN_CHARS = 80

/** A value in a sentence: short, and never more than was sent. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}…` : text
}

/** Text without surrounding space and case. */
export const folded = (text: string): string => text.trim().toLowerCase()

/** Equality of filters and lists: text ignores case and surrounding space, all else is exact. */
export function sameValue(a: JsonValue, b: JsonValue): boolean {
  if (typeof a === 'string' && typeof b === 'string') return folded(a) === folded(b)
  return sameJson(a, b)
}

/** Deep equality of JSON values; the order of keys does not matter. */
export function sameJson(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (a === b) return true
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((item, i) => sameJson(item, b[i]))
  if (!isPlainObject(a) || !isPlainObject(b)) return false
  const keys = Object.keys(a)
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && sameJson(a[key], (b as JsonObject)[key]))
  )
}

const EXPECTED: Record<Primitive | 'obj', string> = {
  id: 'a string (an id)',
  str: 'a string',
  text: 'a string',
  secret: 'a string',
  int: 'an integer',
  num: 'a number',
  money: 'a number',
  bool: 'true or false',
  date: 'a date that exists, as YYYY-MM-DD',
  datetime: 'a date-time with seconds and offset, as 2027-03-10T11:00:00+01:00',
  email: 'an e-mail address',
  obj: 'an object',
}

function fits(value: unknown, type: Primitive | 'obj'): boolean {
  switch (type) {
    case 'id':
    case 'str':
    case 'text':
    case 'secret':
      return typeof value === 'string'
    case 'int':
      return Number.isSafeInteger(value)
    case 'num':
    case 'money':
      return Number.isFinite(value)
    case 'bool':
      return typeof value === 'boolean'
    case 'date':
      return typeof value === 'string' && isDate(value)
    case 'datetime':
      return typeof value === 'string' && isDateTime(value)
    case 'email':
      return typeof value === 'string' && isEmail(value)
    case 'obj':
      return isPlainObject(value)
  }
}
