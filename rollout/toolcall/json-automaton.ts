// The pushdown automaton of strict JSON: the value, its lossless compact text, and what JSON.parse would hide.
import { isPlainObject, type JsonObject, type JsonValue } from '../../protocol/json.ts'
import { isSpace, type Source } from './source.ts'

/** Deeper nesting is refused: what reads the value later (JSON.stringify, structured clone) recurses. */
const MAX_DEPTH = 512
const NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$/
const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/** A value and its compact text: strings written literally, digits as they came, keys in their order. */
export interface JsonNode {
  readonly value: JsonValue
  readonly json: string
}

export interface CompleteJson {
  kind: 'complete'
  node: JsonNode
  /** The members of the outermost object; null where it is no object. */
  members: ReadonlyMap<string, JsonNode> | null
  /** The position after the value. */
  end: number
  /** The first key that stands twice in one object, at any depth. */
  duplicateKey: string | null
  /** Whether a string holds half a surrogate pair. */
  loneSurrogate: boolean
}

/** `on`: go on with what comes next; `more`: the text does not reach further yet. */
type Step = 'on' | 'more' | 'complete' | 'broken'

interface Frame {
  container: JsonObject | JsonValue[]
  /** The key whose value comes next, and where its text begins among the tokens. */
  key: string
  valueStart: number
}

/** The pushdown automaton. `at` moves over whole tokens only; inside one, `#scanned` is how far it was looked at. */
export class JsonAutomaton {
  at: number
  /** What should have stood at `at`, once it is broken. */
  expected = ''
  readonly #source: Source
  readonly #stack: Frame[] = []
  readonly #tokens: string[] = []
  #expect: 'value' | 'first value' | 'key' | 'first key' | 'colon' | 'comma' = 'value'
  #scanned = 0
  #value: JsonValue = null
  /** Of the outermost value. */
  readonly #members = new Map<string, JsonNode>()
  #duplicateKey: string | null = null
  #loneSurrogate = false

  constructor(source: Source, at: number) {
    this.#source = source
    this.at = at
  }

  /** Reads on as far as the text reaches. */
  advance(): Step {
    for (;;) {
      const { units, length } = this.#source
      while (this.at < length && isSpace(units[this.at])) this.at++
      if (this.at >= length) return 'more'
      const step = this.#step(units[this.at]!)
      if (step !== 'on') return step
    }
  }

  result(): CompleteJson {
    return {
      kind: 'complete',
      node: this.#node(this.#value, 0),
      members: isPlainObject(this.#value) ? this.#members : null,
      end: this.at,
      duplicateKey: this.#duplicateKey,
      loneSurrogate: this.#loneSurrogate,
    }
  }

  /** A value whose tokens begin at `start` and end here. Its text is put together when it is asked for. */
  #node(value: JsonValue, start: number): JsonNode {
    const tokens = this.#tokens
    const end = tokens.length
    return {
      value,
      get json() {
        return tokens.slice(start, end).join('')
      },
    }
  }

  #step(unit: number): Step {
    switch (this.#expect) {
      case 'value':
        return this.#readValue(unit)
      case 'first value':
        return unit === CLOSE_BRACKET ? this.#close(']') : this.#readValue(unit)
      case 'key':
        return this.#readKey(unit)
      case 'first key':
        return unit === CLOSE_BRACE ? this.#close('}') : this.#readKey(unit)
      case 'colon':
        if (unit !== COLON) return this.#fail('a colon after the key')
        this.#expect = 'value'
        return this.#take(':')
      case 'comma':
        return this.#readComma(unit)
    }
  }

  #readValue(unit: number): Step {
    if (unit === QUOTE) {
      const read = this.#readString()
      return 'step' in read ? read.step : this.#settle(read.text)
    }
    if (unit !== OPEN_BRACE && unit !== OPEN_BRACKET) return this.#readScalar()
    if (this.#stack.length >= MAX_DEPTH) return this.#fail(`at most ${MAX_DEPTH} levels of nesting`)
    const isObject = unit === OPEN_BRACE
    this.#stack.push({ container: isObject ? {} : [], key: '', valueStart: 0 })
    this.#expect = isObject ? 'first key' : 'first value'
    return this.#take(isObject ? '{' : '[')
  }

  #readKey(unit: number): Step {
    if (unit !== QUOTE) return this.#fail('a key in double quotes')
    const read = this.#readString()
    if ('step' in read) return read.step
    const key = read.text
    const frame = this.#stack.at(-1)!
    if (Object.hasOwn(frame.container, key)) this.#duplicateKey ??= key
    frame.key = key
    frame.valueStart = this.#tokens.length + 1
    this.#expect = 'colon'
    return 'on'
  }

  #readComma(unit: number): Step {
    const isObject = !Array.isArray(this.#stack.at(-1)!.container)
    if (unit === (isObject ? CLOSE_BRACE : CLOSE_BRACKET)) return this.#close(isObject ? '}' : ']')
    if (unit !== COMMA)
      return this.#fail(isObject ? "',' or '}' after a member" : "',' or ']' after a value")
    this.#expect = isObject ? 'key' : 'value'
    return this.#take(',')
  }

  /** Moves over a punctuation mark. */
  #take(token: string): 'on' {
    this.#tokens.push(token)
    this.at++
    return 'on'
  }

  #close(token: string): Step {
    this.#take(token)
    return this.#settle(this.#stack.pop()!.container)
  }

  /** A value is complete: it goes where it belongs. */
  #settle(value: JsonValue): Step {
    this.#expect = 'comma'
    const frame = this.#stack.at(-1)
    if (frame === undefined) {
      this.#value = value
      return 'complete'
    }
    if (Array.isArray(frame.container)) frame.container.push(value)
    else defineMember(frame.container, frame.key, value)
    if (this.#stack.length === 1) this.#members.set(frame.key, this.#node(value, frame.valueStart))
    return 'on'
  }

  /** Moves over the string at `at` and gives its text; or tells why there is none yet. */
  #readString(): { text: string } | { step: Step } {
    const { units, length } = this.#source
    let next = Math.max(this.#scanned, this.at + 1)
    for (;;) {
      while (next < length && isPlain(units[next]!)) next++
      if (next < length && units[next] === QUOTE) return { text: this.#endString(next + 1) }
      const size = next < length ? escapeSize(this.#source, next) : 'more'
      if (size === 'more') {
        this.#scanned = next
        return { step: 'more' }
      }
      if (size === 'broken') {
        this.at = next
        return { step: this.#fail(escapeRule(units[next]!)) }
      }
      next += size
    }
  }

  #endString(end: number): string {
    const token = this.#source.slice(this.at, end)
    const text: string = token.includes('\\') ? JSON.parse(token) : token.slice(1, -1)
    const isWhole = !hasLoneSurrogate(text)
    this.#loneSurrogate ||= !isWhole
    // Without escapes, a string is written as JSON.stringify would write it.
    this.#tokens.push(isWhole && text.length === token.length - 2 ? token : JSON.stringify(text))
    this.#scanned = 0
    this.at = end
    return text
  }

  /** Moves over a number, true, false or null. */
  #readScalar(): Step {
    const { units, length, ended } = this.#source
    let next = Math.max(this.#scanned, this.at)
    while (next < length && isScalarUnit(units[next]!)) next++
    if (next >= length && !ended) {
      this.#scanned = next
      return 'more'
    }
    const token = this.#source.slice(this.at, next)
    const value = scalarValue(token)
    if (value === undefined)
      return next >= length && mayGoOn(token)
        ? 'more'
        : this.#fail('a string in double quotes, a number, true, false, null, {…} or […]')
    this.#tokens.push(token)
    this.#scanned = 0
    this.at = next
    return this.#settle(value)
  }

  #fail(expected: string): 'broken' {
    this.expected = expected
    return 'broken'
  }
}

function isPlain(unit: number): boolean {
  return unit !== QUOTE && unit !== BACKSLASH && unit >= 0x20
}

/** How many units the escape at `at` has. */
function escapeSize({ units, length }: Source, at: number): number | 'more' | 'broken' {
  if (units[at] !== BACKSLASH) return 'broken'
  if (at + 1 >= length) return 'more'
  const kind = String.fromCharCode(units[at + 1]!)
  if (kind !== 'u') return '"\\/bfnrt'.includes(kind) ? 2 : 'broken'
  for (let digit = at + 2; digit < at + 6; digit++) {
    if (digit >= length) return 'more'
    if (!/[0-9a-fA-F]/.test(String.fromCharCode(units[digit]!))) return 'broken'
  }
  return 6
}

function escapeRule(unit: number): string {
  return unit === BACKSLASH
    ? String.raw`one of \" \\ \/ \b \f \n \r \t \u0000 after a backslash`
    : String.raw`an escape such as \n (no raw line break, tab or control character in a string)`
}

function isScalarUnit(unit: number): boolean {
  return (
    (unit >= 0x30 && unit <= 0x39) ||
    (unit >= 0x61 && unit <= 0x7a) ||
    (unit >= 0x41 && unit <= 0x5a) ||
    unit === 0x2b ||
    unit === 0x2d ||
    unit === 0x2e
  )
}

function scalarValue(token: string): JsonValue | undefined {
  if (token === 'true' || token === 'false') return token === 'true'
  if (token === 'null') return null
  return NUMBER.test(token) ? Number(token) : undefined
}

/** Whether a token at the end of the message may be the beginning of one. */
function mayGoOn(token: string): boolean {
  const isNumber = token !== '' && NUMBER.test(`${token}0`)
  return (
    isNumber || ['true', 'false', 'null'].some((word) => token !== '' && word.startsWith(token))
  )
}

/** Sets an own member under any key: assigning `__proto__` would set the prototype instead. */
export function defineMember(object: JsonObject, key: string, value: JsonValue): void {
  if (key !== '__proto__') {
    object[key] = value
    return
  }
  const attributes = { enumerable: true, configurable: true, writable: true }
  Object.defineProperty(object, key, { value, ...attributes })
}

/** Whether half a surrogate pair stands alone in the text. */
export function hasLoneSurrogate(text: string): boolean {
  return /\p{Surrogate}/u.test(text)
}
