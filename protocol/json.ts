// JSON as a type, and the one canonical text that hashes are taken over.
import { hash } from 'node:crypto'

export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject
export type JsonObject = { [key: string]: JsonValue }

/**
 * JSON text with the keys of every object sorted by UTF-16 unit, so that equal values give equal text.
 * A key `__proto__` stays an own key. Undefined members are left out, as JSON.stringify does.
 */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    isPlainObject(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
      : member,
  )
}

/** The first `length` hexadecimal digits (at most 64) of the SHA-256 of a value's canonical JSON. */
export function digest(value: unknown, length = 16): string {
  return hash('sha256', canonicalJson(value)).slice(0, length)
}

export function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
