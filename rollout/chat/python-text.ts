// How Python writes the values of a template: str(), repr(), json.dumps(ensure_ascii=False) and str.strip().
import type { TemplateValue } from './jinja-runtime.ts'

/** What `{{ value }}` and `value | string` write: str(), and nothing for an undefined value. */
export function pythonText(value: TemplateValue): string {
  if (value.type === 'UndefinedValue') return ''
  return value.type === 'StringValue' ? (value.value as string) : pythonRepr(value)
}

function pythonRepr(value: TemplateValue): string {
  switch (value.type) {
    case 'StringValue':
      return quoted(value.value as string)
    case 'BooleanValue':
      return value.value ? 'True' : 'False'
    case 'NullValue':
      return 'None'
    case 'IntegerValue':
      return integerText(value)
    case 'FloatValue':
      return floatText(value.value as number)
    case 'ArrayValue':
      return `[${(value.value as TemplateValue[]).map(pythonRepr).join(', ')}]`
    case 'ObjectValue':
      return `{${entriesOf(value)
        .map(([key, member]) => `${quoted(key)}: ${pythonRepr(member)}`)
        .join(', ')}}`
    default:
      return value.toString()
  }
}

/** `value | tojson` as transformers sets it up: `, ` and `: ` between, keys as they come, nothing escaped for HTML. */
export function pythonJson(value: TemplateValue): string {
  switch (value.type) {
    case 'NullValue':
      return 'null'
    case 'StringValue':
    case 'BooleanValue':
      return JSON.stringify(value.value)
    case 'IntegerValue':
      return integerText(value)
    case 'FloatValue':
      return jsonFloatText(value.value as number)
    case 'ArrayValue':
    case 'TupleValue':
      return `[${(value.value as TemplateValue[]).map(pythonJson).join(', ')}]`
    case 'ObjectValue':
      return `{${entriesOf(value)
        .map(([key, member]) => `${JSON.stringify(key)}: ${pythonJson(member)}`)
        .join(', ')}}`
    default:
      throw new TypeError(`a value of type ${value.type} is not JSON serializable`)
  }
}

/** What str.strip() takes off: U+001C to U+001F and U+0085 too, U+FEFF not, unlike JavaScript's trim. */
const WHITESPACE =
  '\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000'

export type StripSide = 'strip' | 'lstrip' | 'rstrip'

/** str.strip, lstrip and rstrip: takes off any of `characters` (default: white space) at the ends. */
export function pythonStrip(text: string, side: StripSide, characters = WHITESPACE): string {
  const set = new Set(characters)
  const points = [...text]
  let start = 0
  let end = points.length
  if (side !== 'rstrip') while (start < end && set.has(points[start]!)) start++
  if (side !== 'lstrip') while (end > start && set.has(points[end - 1]!)) end--
  return points.slice(start, end).join('')
}

function entriesOf(value: TemplateValue): [string, TemplateValue][] {
  return [...(value.value as Map<string, TemplateValue>)]
}

function integerText(value: TemplateValue): string {
  if (value.literal !== undefined) return value.literal === '-0' ? '0' : value.literal
  return String(BigInt(value.value as number))
}

/** repr(float): the shortest digits that round-trip, an exponent below 1e-4 and from 1e16 on. */
function floatText(x: number): string {
  if (Number.isNaN(x)) return 'nan'
  if (!Number.isFinite(x)) return x > 0 ? 'inf' : '-inf'
  if (Object.is(x, -0)) return '-0.0'
  const [mantissa = '', power = '0'] = x.toExponential().split('e')
  const exponent = Number(power)
  if (x === 0 || (exponent >= -4 && exponent < 16)) {
    return Number.isInteger(x) ? `${x}.0` : String(x)
  }
  const digits = String(Math.abs(exponent)).padStart(2, '0')
  return `${mantissa}e${exponent < 0 ? '-' : '+'}${digits}`
}

function jsonFloatText(x: number): string {
  if (Number.isNaN(x)) return 'NaN'
  if (!Number.isFinite(x)) return x > 0 ? 'Infinity' : '-Infinity'
  return floatText(x)
}

/** repr(str): single quotes unless only they occur in the text; what does not print is escaped. */
function quoted(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'"
  const body = text
    .replace(/[\\\n\r\t]/g, (c) => ({ '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' })[c]!)
    .replaceAll(quote, `\\${quote}`)
    .replace(/(?! )[\p{C}\p{Z}]/gu, escaped)
  return `${quote}${body}${quote}`
}

function escaped(character: string): string {
  const hex = character.codePointAt(0)!.toString(16)
  if (hex.length <= 2) return `\\x${hex.padStart(2, '0')}`
  return hex.length <= 4 ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`
}
