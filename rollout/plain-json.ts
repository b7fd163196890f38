// Values that an environment hands out for the record: copied as JSON, or told why they are none.

/** What JSON would refuse, drop or change: where it stands in the value, and what it is. */
export class NotJson extends Error {
  constructor(path: string, what: string) {
    super(`must be JSON, but ${path} is ${what}`)
    this.name = 'NotJson'
  }
}

/**
 * A copy that shares nothing with the value. Members that are undefined stay so, as JSON leaves them out. Throws NotJson
 * for functions, symbols, bigints, circles and objects that are not plain (dates, maps, promises); getters may throw too.
 */
export function plainJson<T>(value: T, name: string): T {
  const path: (string | number)[] = []
  const above: object[] = []
  const refuse = (what: string): never => {
    const steps = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`))
    throw new NotJson(name + steps.join(''), what)
  }

  function copy(value: unknown): unknown {
    if (typeof value === 'object' && value !== null) return copyObject(value)
    if (typeof value === 'function' || typeof value === 'symbol' || typeof value === 'bigint')
      return refuse(`a ${typeof value}`)
    return value
  }

  function copyObject(value: object): unknown {
    if (above.includes(value)) refuse('a circle')
    above.push(value)
    const copied = Array.isArray(value) ? copyItems(value) : copyMembers(value)
    above.pop()
    return copied
  }

  function copyItems(items: readonly unknown[]): unknown[] {
    return Array.from(items, (item, index) => copyAt(index, item))
  }

  function copyMembers(value: object): unknown {
    if (!isPlain(value)) refuse(`a ${value.constructor?.name || 'class instance'}`)
    const copied: Record<string, unknown> = {}
    for (const key of Object.keys(value)) {
      const member = copyAt(key, (value as Record<string, unknown>)[key])
      if (key !== '__proto__') copied[key] = member
      else Object.defineProperty(copied, key, { value: member, enumerable: true })
    }
    return copied
  }

  function copyAt(step: string | number, value: unknown): unknown {
    if (typeof value === 'string') return value
    path.push(step)
    const copied = copy(value)
    path.pop()
    return copied
  }

  return copy(value) as T
}

/** An object of another realm has another Object.prototype, which is the end of its chain all the same. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return (
    prototype === Object.prototype ||
    prototype === null ||
    Object.getPrototypeOf(prototype) === null
  )
}
