// YAML as the tree that settings are: an anchor that stands within itself can be said in YAML, and in nothing that reads it.
import { parse } from 'yaml'
import { pathText } from './schema-issues.ts'

/** Throws an Error with a sentence for text that is no YAML, or goes round in a circle. */
export function parseYamlTree(text: string): unknown {
  const value: unknown = parse(text)
  const circle = circleIn(value, [], new Set(), [])
  if (circle === null) return value
  throw new Error(
    `${pathText(circle)} is an alias (*) of what it stands in, and would have no end: write out what it means`,
  )
}

/** Where one of the objects above comes again; `checked` are those that have no circle in them. */
function circleIn(
  value: unknown,
  keys: readonly (string | number)[],
  checked: Set<object>,
  above: readonly object[],
): readonly (string | number)[] | null {
  if (typeof value !== 'object' || value === null || checked.has(value)) return null
  if (above.includes(value)) return keys
  for (const [key, member] of Object.entries(value)) {
    const place = Array.isArray(value) ? Number(key) : key
    const circle = circleIn(member, [...keys, place], checked, [...above, value])
    if (circle !== null) return circle
  }
  checked.add(value)
  return null
}
