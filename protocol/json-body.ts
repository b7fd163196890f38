// A JSON body from its bytes, refusing what JSON.parse takes but nobody means: twins of a key, __proto__, bottomless nesting.
import { PaddockError } from './errors.ts'
import { MAX_JSON_DEPTH } from './limits.ts'

/**
 * Throws PaddockError `malformed_json`, or `invalid_request` for what is JSON and yet refused. `anyKeys` lets twins and
 * __proto__ through, as JSON.parse reads them: for a corpus of what models and their tools wrote.
 */
export function parseJsonBody(bytes: Uint8Array, { anyKeys = false } = {}): unknown {
  const text = decode(bytes)
  if (text.trim() === '')
    throw new PaddockError('malformed_json', 'expected a JSON value, found an empty body')
  inspect(text, !anyKeys)
  try {
    const value: unknown = JSON.parse(text)
    if (!anyKeys && HUGE_EXPONENT.test(text)) refuseInfinite(value, '')
    return value
  } catch (error) {
    if (error instanceof PaddockError) throw error
    throw new PaddockError('malformed_json', `expected JSON: ${(error as Error).message}`, {
      cause: error,
    })
  }
}

/** Only such a text can hold a number that reads as Infinity. */
const HUGE_EXPONENT = /\d[eE]\+?\d{3}|\d{309}/

/** JSON.parse reads 1e400 as Infinity, which no reward, limit or seed may be. */
function refuseInfinite(value: unknown, path: string): void {
  if (typeof value === 'number' && !Number.isFinite(value))
    throw new PaddockError('invalid_request', 'expected a number that a double can hold', { path })
  if (typeof value !== 'object' || value === null) return
  for (const [key, member] of Object.entries(value))
    refuseInfinite(member, path === '' ? key : `${path}.${key}`)
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw new PaddockError('malformed_json', 'expected UTF-8, found bytes that are none', {
      cause: error,
    })
  }
}

/** One pass over the text before it becomes objects. What is not JSON at all is left for JSON.parse to say. */
function inspect(text: string, checkKeys: boolean): void {
  /** The open brackets: the keys seen of an object, null for an array. */
  const open: (Set<string> | null)[] = []
  let isKey = false
  for (let at = 0; at < text.length; at++) {
    switch (text[at]) {
      case '"': {
        const end = endOfString(text, at)
        if (isKey && checkKeys) noteKey(open.at(-1), text.slice(at, end))
        isKey = false
        at = end - 1
        break
      }
      case '{':
      case '[':
        isKey = text[at] === '{'
        open.push(isKey ? new Set() : null)
        if (open.length > MAX_JSON_DEPTH) throw tooDeep(at)
        break
      case '}':
      case ']':
        open.pop()
        isKey = false
        break
      case ',':
        isKey = open.at(-1) instanceof Set
        break
      case 'N':
      case 'I':
        throw noNumber(text, at)
    }
  }
}

/** The index after the closing quote, or the text's length where there is none. */
function endOfString(text: string, start: number): number {
  for (
    let quote = text.indexOf('"', start + 1);
    quote !== -1;
    quote = text.indexOf('"', quote + 1)
  ) {
    let slashes = 0
    while (text[quote - 1 - slashes] === '\\') slashes++
    if (slashes % 2 === 0) return quote + 1
  }
  return text.length
}

function noteKey(keys: Set<string> | null | undefined, quoted: string): void {
  const key = quoted.includes('\\') ? unescapeKey(quoted) : quoted.slice(1, -1)
  if (key === '__proto__')
    throw new PaddockError('invalid_request', 'the key "__proto__" is not taken: name it otherwise')
  if (keys?.has(key))
    throw new PaddockError(
      'invalid_request',
      `the key ${JSON.stringify(key)} stands twice in one object: expected each key once`,
    )
  keys?.add(key)
}

function unescapeKey(quoted: string): string {
  try {
    return JSON.parse(quoted) as string
  } catch {
    return quoted
  }
}

function tooDeep(at: number): PaddockError {
  return new PaddockError(
    'invalid_request',
    `expected at most ${MAX_JSON_DEPTH} levels of nesting, found more at position ${at}`,
  )
}

function noNumber(text: string, at: number): PaddockError {
  const word = /^[A-Za-z]{1,10}/.exec(text.slice(at, at + 10))?.[0]
  return new PaddockError(
    'malformed_json',
    `expected JSON, found ${word} at position ${at}: JSON has no NaN and no Infinity, though Python's json.dumps writes them; send null or a number (json.dumps(…, allow_nan=False) finds the place)`,
  )
}
