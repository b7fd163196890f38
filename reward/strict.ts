// Objects that refuse what they do not know, in a sentence that names the nearest key that exists.
import { type ZodRawShape, type ZodType, z } from 'zod'
import { PaddockError } from '../protocol/errors.ts'
import { nearestName } from './nearest.ts'

/** `z.strictObject` with a useful message for unknown keys. */
export function strictObject<Shape extends ZodRawShape>(shape: Shape) {
  const known = Object.keys(shape)
  return z.strictObject(shape, {
    error: (issue) => {
      if (issue.code !== 'unrecognized_keys') return undefined
      const key = String(issue.keys?.[0]).slice(0, 80)
      return `no key "${key}" here; the nearest is "${nearestName(key, known)}" (there are: ${known.join(', ')})`
    },
  })
}

/** The value as the schema completes it. Throws `invalid_request` with the path of the first thing that does not fit. */
export function fit<Output>(schema: ZodType<Output>, value: unknown, path: string): Output {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]!
  const keys = issue.code === 'unrecognized_keys' ? [...issue.path, issue.keys[0]!] : issue.path
  const place = keys.reduce<string>(
    (text, key) => (typeof key === 'number' ? `${text}[${key}]` : `${text}.${String(key)}`),
    path,
  )
  throw new PaddockError('invalid_request', `${place}: ${issue.message}`, { path: place })
}
