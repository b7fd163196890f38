// The HTTP request that every dialect sends: a JSON body to a path of the backend.
import type { HttpRequest } from './dialect.ts'

const encoder = new TextEncoder()
const HEADERS = { 'content-type': 'application/json', accept: 'application/json' }

export function jsonRequest(path: string, body: Record<string, unknown>): HttpRequest {
  const members = Object.entries(body).flatMap(([name, value]) => {
    const text = value instanceof JsonList ? value.text() : JSON.stringify(value)
    return text === undefined ? [] : [`${JSON.stringify(name)}:${text}`]
  })
  return { path, headers: HEADERS, body: encoder.encode(`{${members.join(',')}}`) }
}

/** JSON text of values that were met. */
const written = new WeakMap<object, string>()

/** A list of values that come again with every request, as tools do: each is written once as long as it lives. */
export class JsonList {
  readonly #items: readonly object[]

  constructor(items: readonly object[]) {
    this.#items = items
  }

  text(): string {
    return `[${this.#items.map(writtenOnce).join(',')}]`
  }
}

function writtenOnce(value: object): string {
  const known = written.get(value)
  if (known !== undefined) return known
  const text = JSON.stringify(value)
  written.set(value, text)
  return text
}
