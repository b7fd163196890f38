// A function of the XML-looking form as a call: its values, which are text, become what the tool's schema says they are.

import type { JsonObject } from '../../protocol/json.ts'
import type { Leniency, ParseErrorCode, ParseFlag } from '../../protocol/parse-codes.ts'
import { defineMember, hasLoneSurrogate, type JsonNode } from './json-automaton.ts'
import type { CallResult } from './json-call.ts'
import { parseJson } from './json-reader.ts'
import { toStrictJson } from './json5.ts'
import type { Leniencies } from './parser.ts'
import { type JsonType, type TypeSet, typeOf } from './schema-types.ts'
import { quoteText, trimSpace } from './source.ts'
import type { Toolbox } from './toolbox.ts'
import type { XmlFunction } from './xml-function.ts'

/** The call, or the first reason in the order of its parameters why it is none. */
export function callFromFunction(
  { name, parameters }: XmlFunction,
  toolbox: Toolbox,
  lenient: Leniencies,
): CallResult {
  const isKnown = toolbox.has(name)
  const flags = new Set<ParseFlag>(isKnown ? [] : ['UNKNOWN_FUNCTION'])
  const leniencies = new Set<Leniency>()
  const members = new Map<string, JsonNode>()
  const value: JsonObject = {}
  if (hasLoneSurrogate(name)) flags.add('LONE_SURROGATE')
  for (const { key, text, hasTags } of parameters) {
    if (members.has(key)) return refuse('DUPLICATE_PARAMETER', key, 'once', 'a second value for it')
    const { types, isDeclared, hasUnresolvedRef } = toolbox.parameter(name, key)
    const result = convert(text, types, lenient)
    if ('code' in result) return refuse(result.code, key, result.expected, result.came)
    if (isKnown && !isDeclared) flags.add('UNKNOWN_PARAMETER')
    if (hasUnresolvedRef) flags.add('UNRESOLVED_REF')
    if (hasTags) flags.add('TAG_IN_VALUE')
    if (hasLoneSurrogate(key)) flags.add('LONE_SURROGATE')
    for (const flag of result.flags) flags.add(flag)
    if (result.isJson5) leniencies.add('json5')
    members.set(key, result.node)
    defineMember(value, key, result.node.value)
  }
  const json = [...members].map(([key, node]) => `${JSON.stringify(key)}:${node.json}`).join(',')
  const node = { value, json: `{${json}}` }
  return { call: { name, arguments: node, flags: [...flags], leniencies: [...leniencies] } }
}

type Conversion =
  | { node: JsonNode; flags: ParseFlag[]; isJson5?: boolean }
  | { code: ParseErrorCode; expected: string; came: string }

const INTEGER = /^-?(?:0|[1-9][0-9]*)$/
const NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$/
/** As the Coder and 3.5 templates write them, so that the model's history has this spelling. */
const PYTHON_LITERALS: Record<string, string> = { True: 'true', False: 'false', None: 'null' }

/**
 * A value's text as one of the types. Text that could be something else than a string is not taken for a string unless
 * nothing else fits, and never where no string is allowed.
 */
function convert(text: string, types: TypeSet, lenient: Leniencies): Conversion {
  if (types === 'any') return asString(text)
  const trimmed = trimSpace(text)
  const scalar = readScalar(trimmed, types)
  const read = scalar ?? readContainer(trimmed, types, lenient)
  if (!('code' in read)) {
    // Text that spells null is what a nullable string's null looks like, and no other reading of it is likely.
    if (types.has('string') && read.node.value !== null) read.flags.push('AMBIGUOUS_TYPE')
    return read
  }
  return types.has('string') ? asString(text) : read
}

function asString(text: string): Conversion {
  const flags: ParseFlag[] = hasLoneSurrogate(text) ? ['LONE_SURROGATE'] : []
  return { node: { value: text, json: JSON.stringify(text) }, flags }
}

/** null, a boolean or a number, if one of the types is that and the text spells it. */
function readScalar(
  text: string,
  types: ReadonlySet<JsonType>,
): { node: JsonNode; flags: ParseFlag[] } | null {
  const json = Object.hasOwn(PYTHON_LITERALS, text) ? PYTHON_LITERALS[text]! : text
  const flags: ParseFlag[] = json === text ? [] : ['PYTHON_LITERAL']
  if (json === 'null' && types.has('null')) return { node: { value: null, json }, flags }
  if ((json === 'true' || json === 'false') && types.has('boolean'))
    return { node: { value: json === 'true', json }, flags }
  const form = types.has('number') ? NUMBER : types.has('integer') ? INTEGER : null
  if (form?.test(text)) return { node: { value: Number(text), json: text }, flags: [] }
  return null
}

/** An object or an array, if one of the types is that and the text is strict JSON of it. */
function readContainer(
  text: string,
  types: ReadonlySet<JsonType>,
  lenient: Leniencies,
): Conversion {
  const expected = [...types].sort().join(' or ') || 'nothing: its schema allows no type'
  const came = quoteText(text)
  if (!types.has('object') && !types.has('array')) return { code: 'TYPE_MISMATCH', expected, came }
  const strict = parseJson(text)
  const loose = strict.kind !== 'complete' && lenient.json5 ? toStrictJson(text) : null
  const read = loose === null ? strict : parseJson(loose)
  if (read.kind !== 'complete') {
    const problem = read.kind === 'broken' ? read.problem : 'the text ends inside the JSON'
    return {
      code: 'PARAM_INVALID_JSON',
      expected: `${expected} as JSON`,
      came: `${came} (${problem})`,
    }
  }
  if (!types.has(typeOf(read.node.value))) return { code: 'TYPE_MISMATCH', expected, came }
  if (read.duplicateKey !== null)
    return {
      code: 'DUPLICATE_KEY',
      expected,
      came: `the key ${quoteText(read.duplicateKey)} twice`,
    }
  const flags: ParseFlag[] = read.loneSurrogate ? ['LONE_SURROGATE'] : []
  return { node: read.node, flags, isJson5: loose !== null }
}

function refuse(code: ParseErrorCode, key: string, expected: string, came: string): CallResult {
  return {
    refusal: { code, message: `parameter ${quoteText(key)}: expected ${expected}, came ${came}` },
  }
}
