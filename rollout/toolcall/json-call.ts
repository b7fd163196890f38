// A call written as JSON: what its members must be, and which facts about it are flagged.

import { isPlainObject } from '../../protocol/json.ts'
import type { ParseFlag } from '../../protocol/parse-codes.ts'
import type { ReadCall, Refusal } from './draft.ts'
import { type CompleteJson, hasLoneSurrogate, type JsonNode } from './json-automaton.ts'
import { quoteText } from './source.ts'

/** A call, or why it is none. */
export type CallResult = { call: ReadCall } | { refusal: Refusal }

const FORM = '{"name": "<tool>", "arguments": {…}}'

/** A complete JSON value as a call of the hermes form; `isKnown` says whether there is a tool of that name. */
export function callFromJson(json: CompleteJson, isKnown: (name: string) => boolean): CallResult {
  const { members } = json
  if (members === null) return refuse('NOT_AN_OBJECT', `one object ${FORM}`, describe(json.node))
  if (json.duplicateKey !== null) return refuseDuplicate(json.duplicateKey)
  const name = members.get('name')
  const args = members.get('arguments')
  if (name === undefined) return refuse('MISSING_NAME', `a key "name": ${FORM}`, keysOf(members))
  if (typeof name.value !== 'string' || name.value === '')
    return refuse('INVALID_NAME', 'the name of a tool as a string', describe(name))
  if (args === undefined)
    return refuse('MISSING_ARGUMENTS', `a key "arguments": ${FORM}`, keysOf(members))
  if (!isPlainObject(args.value)) return refuseArguments(args)
  const flags = flagsOf(name.value, json, isKnown)
  if (members.size > 2) flags.push('EXTRA_KEYS')
  return { call: { name: name.value, arguments: args, flags, leniencies: [] } }
}

/** The same where the name stands apart and the JSON is the arguments alone. */
export function callFromArguments(
  name: string,
  json: CompleteJson,
  isKnown: (name: string) => boolean,
): CallResult {
  if (json.members === null) return refuseArguments(json.node)
  if (json.duplicateKey !== null) return refuseDuplicate(json.duplicateKey)
  const flags = flagsOf(name, json, isKnown)
  return { call: { name, arguments: json.node, flags, leniencies: [] } }
}

function flagsOf(
  name: string,
  json: CompleteJson,
  isKnown: (name: string) => boolean,
): ParseFlag[] {
  const flags: ParseFlag[] = []
  if (!isKnown(name)) flags.push('UNKNOWN_FUNCTION')
  if (json.loneSurrogate || hasLoneSurrogate(name)) flags.push('LONE_SURROGATE')
  return flags
}

function refuse(code: Refusal['code'], expected: string, came: string): { refusal: Refusal } {
  return { refusal: { code, message: `expected ${expected}, came ${came}` } }
}

function refuseDuplicate(key: string): { refusal: Refusal } {
  return refuse('DUPLICATE_KEY', 'each key once', `${quoteText(key)} twice in one object`)
}

function refuseArguments(node: JsonNode): { refusal: Refusal } {
  const expected = 'the arguments as an object {…}, not encoded as a string'
  return refuse('ARGUMENTS_NOT_OBJECT', expected, describe(node))
}

/** What kind of JSON value it is, for messages. */
function describe(node: JsonNode): string {
  if (node.value === null) return 'null'
  if (Array.isArray(node.value)) return 'an array'
  if (node.value === '') return 'an empty string'
  return typeof node.value === 'object' ? 'an object' : `a ${typeof node.value}`
}

function keysOf(members: ReadonlyMap<string, JsonNode>): string {
  if (members.size === 0) return 'an empty object'
  return `the keys ${[...members.keys()].slice(0, 8).map(quoteText).join(', ')}`
}
