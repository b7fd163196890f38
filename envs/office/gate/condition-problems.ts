// V08 for conditions: fields, operators and operands that do not resolve, which would else be a silent 0.
import isSafe from 'safe-regex2'
import { isPlainObject, type JsonObject, type JsonValue } from '../../../protocol/json.ts'
import type { TaskProblem } from '../../environment.ts'
import type { Field } from '../catalogue/declare.ts'
import type { Fields } from '../catalogue/derive.ts'
import { OPERATORS, type OperandKind } from '../grading/conditions.ts'
import { normalised } from '../grading/text.ts'
import { instantOf } from '../kernel/instant.ts'
import { shown } from '../kernel/values.ts'
import type { TextCondition } from '../spec.ts'
import { problem } from './problem.ts'

const RULE = 'V08'

/** What is wrong with the conditions of a `where` on these fields. */
export function whereProblems(where: JsonValue, fields: Fields, path: string): TaskProblem[] {
  if (!isPlainObject(where)) return [problem(RULE, path, 'conditions by field', shown(where))]
  return Object.entries(where as JsonObject).flatMap(([name, condition]) => {
    const at = `${path}.${name}`
    if (name === '$not') return whereProblems(condition, fields, at)
    if (name === '$text') return conditionProblems(condition, { t: 'text' }, at)
    if (name === '$or')
      return Array.isArray(condition) && condition.length > 0
        ? condition.flatMap((one, i) => whereProblems(one, fields, `${at}[${i}]`))
        : [problem(RULE, at, 'a list of alternatives', shown(condition))]
    const field = fields.get(name)
    if (!field) return [problem(RULE, at, `one of ${[...fields.keys()].join(', ')}`, shown(name))]
    return conditionProblems(condition, field, at)
  })
}

/** What is wrong with a pattern; patterns are matched without regard to case, as Unicode. */
export function patternProblems(pattern: JsonValue, path: string): TaskProblem[] {
  if (typeof pattern !== 'string') return [problem(RULE, path, 'a pattern', shown(pattern))]
  try {
    const compiled = new RegExp(pattern, 'iu')
    // A policy's text decides how long it takes: (a+)+ takes minutes on thirty letters.
    const expected = 'a pattern without repetition within repetition, which can take for ever'
    return isSafe(compiled) ? [] : [problem(RULE, path, expected, shown(pattern))]
  } catch (error) {
    return [problem(RULE, path, `a valid pattern (${(error as Error).message})`, shown(pattern))]
  }
}

/** What is wrong with the patterns within conditions on text; their form is the schema's matter. */
export function textProblems(conditions: readonly TextCondition[], path: string): TaskProblem[] {
  return conditions.flatMap((condition, i) => {
    const at = `${path}[${i}]`
    if (typeof condition === 'string') return []
    if ('any' in condition) return textProblems(condition.any, `${at}.any`)
    if ('all' in condition) return textProblems(condition.all, `${at}.all`)
    return 're' in condition ? patternProblems(condition.re, `${at}.re`) : []
  })
}

function conditionProblems(condition: JsonValue, field: Field, path: string): TaskProblem[] {
  if (!isPlainObject(condition)) return literalProblems(condition, field, path)
  const operators = Object.entries(condition as JsonObject)
  if (operators.length === 0) return [problem(RULE, path, 'a value or operators', '{}')]
  return operators.flatMap(([name, operand]) => {
    const at = `${path}.${name}`
    if (name === 'tol') return toleranceProblems(condition as JsonObject, at)
    const operator = OPERATORS.get(name)
    if (!operator) return [problem(RULE, at, `one of ${[...OPERATORS.keys()].join(', ')}`, name)]
    const about = name === 'has' ? memberOf(field) : field
    if (!about) return [problem(RULE, at, 'a field that is a list', shown(field.t))]
    return operandProblems(operand, operator.operand, about, at)
  })
}

function toleranceProblems(condition: JsonObject, path: string): TaskProblem[] {
  const serves = 'number' in condition || 'approx' in condition
  return serves && isNumber(condition.tol)
    ? []
    : [problem(RULE, path, 'a number, beside number or approx', shown(condition.tol))]
}

function operandProblems(
  operand: JsonValue,
  kind: OperandKind,
  field: Field,
  path: string,
): TaskProblem[] {
  const unless = (fits: boolean, expected: string): TaskProblem[] =>
    fits ? [] : [problem(RULE, path, expected, shown(operand))]
  switch (kind) {
    case 'condition':
      return conditionProblems(operand, field, path)
    case 'literal':
      return isScalar(operand)
        ? literalProblems(operand, field, path)
        : [problem(RULE, path, 'a value', shown(operand))]
    case 'literals':
      return Array.isArray(operand)
        ? operand.flatMap((one, i) => literalProblems(one, field, `${path}[${i}]`))
        : [problem(RULE, path, 'a list of values', shown(operand))]
    case 'pattern':
      return patternProblems(operand, path)
    case 'number':
      return unless(isNumber(operand), 'a number')
    case 'size':
      return isPlainObject(operand)
        ? conditionProblems(operand as JsonObject, { t: 'int' }, path)
        : unless(isNumber(operand), 'a number')
    case 'range':
      return unless(isPair(operand) && operand.every(isScalar), 'a low and a high value')
    case 'near':
      return unless(
        isNumber(operand) || (isPair(operand) && operand.every(isNumber)),
        'a number, or a number and a tolerance',
      )
    case 'text':
      return unless(isScalar(operand), 'text')
    case 'texts':
      return unless(Array.isArray(operand) && operand.every(isScalar), 'a list of texts')
    case 'flag':
      return unless(typeof operand === 'boolean', 'true or false')
    case 'instant':
      return unless(isInstant(operand), 'a date or a date-time with offset')
  }
}

/** A literal must be something that the field can hold; else the condition could never be met. */
function literalProblems(literal: JsonValue, field: Field, path: string): TaskProblem[] {
  if (Array.isArray(literal))
    return literal.flatMap((one, i) => literalProblems(one, field, `${path}[${i}]`))
  const expected = literal === null ? null : impossible(literal, memberOf(field) ?? field)
  return expected ? [problem(RULE, path, expected, shown(literal))] : []
}

/** What a field could hold, where it can never hold this literal. */
function impossible(literal: JsonValue, field: Field): string | null {
  switch (field.t) {
    case 'enum':
      return field.values.some((value) => value === normalised(String(literal)))
        ? null
        : `one of ${field.values.join(', ')}`
    case 'int':
    case 'num':
    case 'money':
      return isNumber(literal) ? null : 'a number'
    case 'bool':
      return typeof literal === 'boolean' ? null : 'true or false'
    case 'date':
    case 'datetime':
      return isInstant(literal) ? null : 'a date or a date-time with offset'
    case 'list':
      return null
    default:
      return typeof literal === 'string' ? null : 'text'
  }
}

const memberOf = (field: Field): Field | null => {
  if (field.t !== 'list') return null
  return field.of === 'obj' ? { t: 'list', of: 'obj' } : { t: field.of }
}

const isNumber = (value: JsonValue | undefined): value is number => Number.isFinite(value)
const isScalar = (value: JsonValue): boolean => value !== null && typeof value !== 'object'
const isPair = (value: JsonValue): value is [JsonValue, JsonValue] =>
  Array.isArray(value) && value.length === 2
const isInstant = (value: JsonValue): boolean =>
  typeof value === 'string' && instantOf(value, 0) !== null
