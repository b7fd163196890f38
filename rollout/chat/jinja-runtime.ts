// @huggingface/jinja's interpreter with the types that this room needs (its own do not resolve under nodenext).
import * as jinja from '@huggingface/jinja'

/** A value of a running template. An integer read from text also carries that text as `literal`. */
export interface TemplateValue {
  type:
    | 'StringValue'
    | 'IntegerValue'
    | 'FloatValue'
    | 'BooleanValue'
    | 'NullValue'
    | 'UndefinedValue'
    | 'ArrayValue'
    | 'TupleValue'
    | 'ObjectValue'
    | 'FunctionValue'
  value: unknown
  literal?: string
  toString(): string
}

/** A node of the syntax tree, as loosely as the interpreter itself looks at it. */
export interface SyntaxNode {
  type: string
  [field: string]: unknown
}

/** A scope of variables. `set` converts a JavaScript value, `setVariable` takes one that is converted. */
export interface Scope {
  set(name: string, value: unknown): TemplateValue
  setVariable(name: string, value: TemplateValue): TemplateValue
}

interface EvaluatesNodes {
  run(program: SyntaxNode): TemplateValue
  evaluate(node: SyntaxNode | undefined, scope: Scope): TemplateValue
}

export const Environment = jinja.Environment as unknown as new () => Scope
export const Interpreter = jinja.Interpreter as unknown as new (scope: Scope) => EvaluatesNodes

/** The syntax tree of a template, white space around blocks trimmed as transformers does. Throws on bad syntax. */
export function parseTemplate(text: string): SyntaxNode {
  return new jinja.Template(text).parsed as unknown as SyntaxNode
}

// The package exports no value classes; they are those of what a scope makes of JavaScript values.
type ValueClass = new (value: unknown) => TemplateValue
const valueClass = (example: unknown): ValueClass =>
  new Environment().set('example', example).constructor as ValueClass

export const StringValue = valueClass('')
export const IntegerValue = valueClass(1)
export const FloatValue = valueClass(0.5)
export const ArrayValue = valueClass([])
export const ObjectValue = valueClass({})
