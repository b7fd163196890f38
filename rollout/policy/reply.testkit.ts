// For dialect tests: replies as bytes, and the ways in which a valid one is broken.
import fc from 'fast-check'

export const JSON_HEADERS = { 'content-type': 'application/json' }

export function jsonBytes(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value))
}

/** A copy of a value with what stands at a path (`a.0.b`) replaced; undefined takes it out. */
export function withValue<T>(value: T, path: string, replacement: unknown): T {
  const copy = structuredClone(value)
  const steps = path.split('.')
  const last = steps.pop() as string
  let at = copy as Record<string, unknown>
  for (const step of steps) at = at[step] as Record<string, unknown>
  if (replacement === undefined) delete at[last]
  else at[last] = replacement
  return copy
}

/** Every path of a JSON value. */
function pathsOf(value: unknown, prefix = ''): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, member]) => {
    const path = prefix === '' ? key : `${prefix}.${key}`
    return [path, ...pathsOf(member, path)]
  })
}

/** Bytes that may come: anything at all, a valid reply with values replaced, and a valid reply cut short. */
export function brokenReplies(valid: unknown): fc.Arbitrary<Uint8Array> {
  const odd = fc.oneof(
    fc.constantFrom(undefined, null, -1, 1.5, 2 ** 40, '', 'stop', [], {}, [[]], true),
    fc.jsonValue(),
  )
  const mutated = fc
    .array(fc.tuple(fc.constantFrom(...pathsOf(valid)), odd), { minLength: 1, maxLength: 4 })
    .map((changes) => {
      let reply = valid
      for (const [path, value] of changes) {
        try {
          reply = withValue(reply, path, value)
        } catch {
          // An earlier change took this path away.
        }
      }
      return jsonBytes(reply)
    })
  const whole = jsonBytes(valid)
  const cut = fc.nat(whole.length - 1).map((length) => whole.slice(0, length))
  return fc.oneof(fc.uint8Array({ maxLength: 200 }), mutated, cut, fc.jsonValue().map(jsonBytes))
}
