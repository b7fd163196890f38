// JSON text as values that keep what a plain object loses: the order of integer-like keys and numbers as written.

/** A number with its text, because `1.0`, `1` and integers beyond 2^53 are three things in Python and one in JavaScript. */
export class JsonNumber {
  readonly literal: string

  constructor(literal: string) {
    this.literal = literal
  }
}

export type OrderedJson =
  | null
  | boolean
  | string
  | JsonNumber
  | OrderedJson[]
  | Map<string, OrderedJson>

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]]|true|false|null|-?\d[\d.eE+-]*/g

/**
 * The value of a JSON text, objects as Maps in the order of the text (a repeated key keeps its first place and its last
 * value, as in Python). Throws SyntaxError where JSON.parse does. Does not recurse, so depth is no limit.
 */
export function parseOrderedJson(text: string): OrderedJson {
  // Once JSON.parse has found the text valid, its tokens need no grammar: commas and colons can be skipped.
  JSON.parse(text)
  const open: { container: OrderedJson[] | Map<string, OrderedJson>; key: string | null }[] = []
  let root: OrderedJson = null
  const place = (value: OrderedJson): void => {
    const parent = open.at(-1)
    if (parent === undefined) root = value
    else if (Array.isArray(parent.container)) parent.container.push(value)
    else {
      parent.container.set(parent.key ?? '', value)
      parent.key = null
    }
  }
  for (const [token] of text.matchAll(TOKEN)) {
    const parent = open.at(-1)
    if (token === '}' || token === ']') open.pop()
    else if (token === '{' || token === '[') {
      const container = token === '{' ? new Map<string, OrderedJson>() : []
      place(container)
      open.push({ container, key: null })
    } else if (parent?.container instanceof Map && parent.key === null) {
      parent.key = JSON.parse(token) as string
    } else place(scalar(token))
  }
  return root
}

function scalar(token: string): OrderedJson {
  if (token === 'null') return null
  if (token === 'true' || token === 'false') return token === 'true'
  return token.startsWith('"') ? (JSON.parse(token) as string) : new JsonNumber(token)
}
