// A Hugging Face chat template as Python renders it: @huggingface/jinja, corrected where it differs from jinja2 3.1.
import {
  ArrayValue,
  Environment,
  FloatValue,
  IntegerValue,
  Interpreter,
  ObjectValue,
  parseTemplate,
  type Scope,
  StringValue,
  type SyntaxNode,
  type TemplateValue,
} from './jinja-runtime.ts'
import { JsonNumber } from './ordered-json.ts'
import { pythonJson, pythonStrip, pythonText, type StripSide } from './python-text.ts'
import { strftime } from './strftime.ts'

export interface ChatTemplate {
  /**
   * The template's text for these variables. Values may be plain JSON, Maps (keys in order) and JsonNumbers.
   * Throws an Error where the template raises or Python would.
   */
  render(variables: Iterable<readonly [string, unknown]>): string
}

/**
 * Compiles a template. `now` is what `strftime_now` reads; without it a template that asks for the date raises.
 * Throws an Error where the text is no template.
 */
export function compileChatTemplate(text: string, now: Date | null): ChatTemplate {
  const program = parseTemplate(text)
  markOutputs(program)
  return {
    render(variables) {
      const scope = globals(now)
      for (const [name, value] of variables) scope.setVariable(name, toTemplateValue(value))
      return new PythonInterpreter(scope).run(program).value as string
    },
  }
}

/** Fields that hold statements whose values are written out. */
const BLOCK_FIELDS = ['body', 'alternate', 'defaultBlock']
const STATEMENTS = new Set([
  ...['Program', 'If', 'For', 'Set', 'Macro', 'CallStatement', 'FilterStatement'],
  ...['Break', 'Continue', 'Comment'],
])

/**
 * Wraps every expression that is written out, so that only there True, None and 1.0 are spelled: the interpreter
 * itself cannot tell `{{ none }}` from a statement without a value.
 */
function markOutputs(statement: SyntaxNode): void {
  for (const field of BLOCK_FIELDS) {
    const block = statement[field]
    if (!Array.isArray(block)) continue
    statement[field] = (block as SyntaxNode[]).map((node) => {
      if (node.type === 'StringLiteral') return node
      if (!STATEMENTS.has(node.type)) return derive(statement, { type: 'Output', operand: node })
      markOutputs(node)
      return node
    })
  }
}

/** A node of our own that the interpreter's search for macro arguments still takes for one of its own. */
function derive(prototype: SyntaxNode, fields: SyntaxNode): SyntaxNode {
  return Object.assign(Object.create(Object.getPrototypeOf(prototype)), fields)
}

class PythonInterpreter extends Interpreter {
  override evaluate(node: SyntaxNode | undefined, scope: Scope): TemplateValue {
    switch (node?.type) {
      case 'Value':
        return node.value as TemplateValue
      case 'Output':
        return textValue(pythonText(this.evaluate(node.operand as SyntaxNode, scope)))
      case 'BinaryExpression':
        return this.#binary(node, scope)
      case 'FilterExpression':
        return this.#filter(node, scope)
      case 'CallExpression':
        return this.#call(node, scope)
      default:
        return super.evaluate(node, scope)
    }
  }

  /** Python raises on text plus anything else; npm jinja writes JSON. */
  #binary(node: SyntaxNode, scope: Scope): TemplateValue {
    const operator = (node.operator as { value: string }).value
    if (operator === 'and' || operator === 'or') return super.evaluate(node, scope)
    const left = this.evaluate(node.left as SyntaxNode, scope)
    const right = this.evaluate(node.right as SyntaxNode, scope)
    if (operator === '~') return textValue(pythonText(left) + pythonText(right))
    if (operator === '+' && (left.type === 'StringValue') !== (right.type === 'StringValue')) {
      throw new TypeError(`can only concatenate text to text, not ${left.type} to ${right.type}`)
    }
    const resolved = { ...node, left: valueNode(left), right: valueNode(right) }
    return super.evaluate(resolved, scope)
  }

  #filter(node: SyntaxNode, scope: Scope): TemplateValue {
    const operand = this.evaluate(node.operand as SyntaxNode, scope)
    const filter = node.filter as SyntaxNode
    if (filter.type === 'Identifier') {
      if (filter.value === 'tojson') return textValue(pythonJson(operand))
      if (filter.value === 'string') return textValue(pythonText(operand))
      if (filter.value === 'trim') return textValue(pythonStrip(pythonText(operand), 'strip'))
    }
    return super.evaluate({ ...node, operand: valueNode(operand) }, scope)
  }

  /** str.strip and its like take the characters to strip; npm jinja ignores them and strips all white space. */
  #call(node: SyntaxNode, scope: Scope): TemplateValue {
    const callee = node.callee as SyntaxNode
    const name = callee.type === 'MemberExpression' && (callee.property as SyntaxNode).value
    if (name !== 'strip' && name !== 'lstrip' && name !== 'rstrip') {
      return super.evaluate(node, scope)
    }
    const object = this.evaluate(callee.object as SyntaxNode, scope)
    if (object.type !== 'StringValue') throw new TypeError(`${object.type} has no method ${name}`)
    const [characters] = (node.args as SyntaxNode[]).map((each) => this.evaluate(each, scope))
    const set = characters?.type === 'StringValue' ? (characters.value as string) : undefined
    return textValue(pythonStrip(object.value as string, name as StripSide, set))
  }
}

function valueNode(value: TemplateValue): SyntaxNode {
  return { type: 'Value', value }
}

function textValue(text: string): TemplateValue {
  return new StringValue(text)
}

function toTemplateValue(value: unknown): TemplateValue {
  if (value instanceof JsonNumber) return numberValue(value.literal)
  if (Array.isArray(value)) return new ArrayValue(value.map(toTemplateValue))
  if (value instanceof Map) return objectValue([...value])
  if (typeof value === 'object' && value !== null) return objectValue(Object.entries(value))
  return new Environment().set('value', value)
}

function objectValue(entries: [string, unknown][]): TemplateValue {
  return new ObjectValue(new Map(entries.map(([key, member]) => [key, toTemplateValue(member)])))
}

function numberValue(literal: string): TemplateValue {
  if (!/^-?\d+$/.test(literal)) return new FloatValue(Number(literal))
  return Object.assign(new IntegerValue(Number(literal)), { literal })
}

/** The names that transformers puts beside a template's variables (jinja's own `namespace` is built in). */
function globals(now: Date | null): Scope {
  const scope = new Environment()
  for (const [name, value] of [
    ['true', true],
    ['false', false],
    ['none', null],
  ] as const) {
    scope.set(name, value)
    scope.set(name.charAt(0).toUpperCase() + name.slice(1), value)
  }
  scope.set('raise_exception', (message: string) => {
    throw new Error(message)
  })
  scope.set('strftime_now', (format: string) => {
    if (now === null) throw new Error('the template asks for the date, and no clock was given')
    return strftime(now, format)
  })
  scope.set('range', (first: number, last?: number, step = 1) => {
    const [start, stop] = last === undefined ? [0, first] : [first, last]
    const length = Math.max(0, Math.ceil((stop - start) / step))
    return Array.from({ length }, (_, index) => start + index * step)
  })
  return scope
}
