// The part of PromQL that the dashboard speaks, as a tree: read by Prometheus' own grammar, refused where it is another part.
import type { SyntaxNode } from '@lezer/common'
import { parser } from '@prometheus-io/lezer-promql'

export type Operator = '+' | '-' | '*' | '/' | '^' | '>' | '<'
export type Aggregation = 'sum' | 'avg' | 'min' | 'max' | 'topk'
type RangeCall = 'rate' | 'increase' | 'changes'
type Call = 'sqrt' | 'clamp_min' | 'histogram_quantile'

export interface Matcher {
  label: string
  equal: boolean
  /** The whole value has to match. */
  pattern: RegExp
}

export type Expression =
  | { kind: 'number'; value: number }
  | { kind: 'selector'; name: string; matchers: Matcher[] }
  /** Over the last `seconds`. */
  | { kind: 'range'; call: RangeCall; name: string; matchers: Matcher[]; seconds: number }
  | { kind: 'call'; call: Call; arguments: Expression[] }
  /** `parameter` is the k of topk; `by` is null for one of everything. */
  | { kind: 'aggregate'; op: Aggregation; by: string[] | null; parameter: number; of: Expression }
  /** What the left has at a moment, and of the right what it has not; all labels must be equal. */
  | { kind: 'or'; left: Expression; right: Expression }
  /** `on` null: all labels must be equal. `many`: several on the left may meet one on the right. */
  | {
      kind: 'binary'
      op: Operator
      left: Expression
      right: Expression
      on: string[] | null
      many: boolean
    }

const OPERATORS = ['+', '-', '*', '/', '^', '>', '<']
const AGGREGATIONS = ['sum', 'avg', 'min', 'max', 'topk']
const CALLS = ['sqrt', 'clamp_min', 'histogram_quantile']
const SECONDS = { s: 1, m: 60, h: 3600, d: 86_400 }

/** Throws an Error that names what is not understood. */
export function parsePromql(text: string): Expression {
  const root = parser.parse(text).topNode.firstChild
  if (!root) throw new Error('PromQL: an empty expression')
  return expression(root)

  function expression(node: SyntaxNode): Expression {
    switch (node.name) {
      case 'ParenExpr':
        return expression(only(node))
      case 'NumberDurationLiteral':
        return { kind: 'number', value: Number(word(node)) }
      case 'VectorSelector':
        return { kind: 'selector', ...selector(node) }
      case 'FunctionCall':
        return call(node)
      case 'AggregateExpr':
        return aggregate(node)
      case 'BinaryExpr':
        return binary(node)
      default:
        throw unknown(node)
    }
  }

  function call(node: SyntaxNode): Expression {
    const name = word(child(node, 'FunctionIdentifier'))
    const given = children(child(node, 'FunctionCallBody'))
    const [first] = given
    if (isRangeCall(name) && first?.name === 'MatrixSelector') {
      const seconds = durationOf(word(child(first, 'DurationExpr')))
      return { kind: 'range', call: name, ...selector(child(first, 'VectorSelector')), seconds }
    }
    if (!CALLS.includes(name)) throw unknown(node)
    return { kind: 'call', call: name as Call, arguments: given.map(expression) }
  }

  function aggregate(node: SyntaxNode): Expression {
    const op = word(child(node, 'AggregateOp'))
    const modifier = node.getChild('AggregateModifier')
    if (!AGGREGATIONS.includes(op) || modifier?.getChild('Without')) throw unknown(node)
    const given = children(child(node, 'FunctionCallBody')).map(expression)
    const of = given.at(-1)
    const [k] = given
    if (!of || (op === 'topk' && k?.kind !== 'number')) throw unknown(node)
    return {
      kind: 'aggregate',
      op: op as Aggregation,
      by: modifier && labels(child(modifier, 'GroupingLabels')),
      parameter: op === 'topk' && k?.kind === 'number' ? k.value : 0,
      of,
    }
  }

  function binary(node: SyntaxNode): Expression {
    const parts = children(node)
    const matching = node.getChild('MatchingModifierClause')
    const left = parts[0]
    const right = parts.at(-1)
    const op = parts[1] && word(parts[1])
    if (left && right && op === 'or' && !matching)
      return { kind: 'or', left: expression(left), right: expression(right) }
    if (!left || !right || !op || !OPERATORS.includes(op) || matching?.getChild('GroupRight'))
      throw unknown(node)
    return {
      kind: 'binary',
      op: op as Operator,
      left: expression(left),
      right: expression(right),
      on: matching && labels(child(matching, 'GroupingLabels')),
      many: matching?.getChild('GroupLeft') != null,
    }
  }

  function selector(node: SyntaxNode): { name: string; matchers: Matcher[] } {
    const matchers = node.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? []
    return { name: word(child(node, 'Identifier')), matchers: matchers.map(matcher) }
  }

  function matcher(node: SyntaxNode): Matcher {
    const op = word(child(node, 'MatchOp'))
    const value: string = JSON.parse(word(child(node, 'StringLiteral')))
    const source = op.endsWith('~') ? value : value.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
    return {
      label: word(child(node, 'LabelName')),
      equal: op.startsWith('='),
      pattern: new RegExp(`^(?:${source})$`),
    }
  }

  function labels(node: SyntaxNode): string[] {
    return node.getChildren('LabelName').map(word)
  }

  function word(node: SyntaxNode): string {
    return text.slice(node.from, node.to)
  }

  function child(node: SyntaxNode, name: string): SyntaxNode {
    const found = node.getChild(name)
    if (!found) throw unknown(node)
    return found
  }

  function only(node: SyntaxNode): SyntaxNode {
    const [inner, ...more] = children(node)
    if (!inner || more.length > 0) throw unknown(node)
    return inner
  }

  function unknown(node: SyntaxNode): Error {
    return new Error(`PromQL: ${node.name} is not understood in ${word(node)}`)
  }
}

function isRangeCall(name: string): name is RangeCall {
  return name === 'rate' || name === 'increase' || name === 'changes'
}

/** Names of the series that it reads. */
export function seriesOf(expression: Expression): string[] {
  switch (expression.kind) {
    case 'number':
      return []
    case 'selector':
    case 'range':
      return [expression.name]
    case 'call':
      return expression.arguments.flatMap(seriesOf)
    case 'aggregate':
      return seriesOf(expression.of)
    case 'or':
    case 'binary':
      return [...seriesOf(expression.left), ...seriesOf(expression.right)]
  }
}

function children(node: SyntaxNode): SyntaxNode[] {
  const found: SyntaxNode[] = []
  for (let one = node.firstChild; one; one = one.nextSibling) found.push(one)
  return found
}

function durationOf(text: string): number {
  const [, amount, unit] = /^(\d+)([smhd])$/.exec(text) ?? []
  if (!amount || !unit) throw new Error(`PromQL: the duration ${text} is not understood`)
  return Number(amount) * SECONDS[unit as keyof typeof SECONDS]
}
