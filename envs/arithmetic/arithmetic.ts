// The arithmetic environment: one calculator tool and an exact answer, small enough to read beside the office.
import { z } from 'zod'
import type { RewardContract } from '../../protocol/contract.ts'
import type { ToolDefinition } from '../../protocol/conversation.ts'
import { digest, type JsonObject } from '../../protocol/json.ts'
import type { Environment, TaskProblem } from '../environment.ts'
import { evaluate, formatRational } from './expression.ts'
import { generateTask } from './tasks.ts'

const contract: RewardContract = {
  name: 'arithmetic',
  version: 1,
  fields: { score: { type: 'number', min: 0, max: 1, required: true } },
  scalar: 'score',
  components: ['score'],
}

const specSchema = z.strictObject({
  id: z.string(),
  title: z.string().optional(),
  request: z.string().min(1),
  answer: z.string().regex(/^-?\d+$/, 'a whole number in digits'),
  limits: z.strictObject({ max_turns: z.int().min(1).optional() }).default({}),
  transcripts: z.record(z.string(), z.json()).optional(),
})
type Spec = z.output<typeof specSchema>

interface State {
  spec: Spec
  /** Expressions computed so far, in order: what the policy has seen. */
  seen: string[]
  final: string | null
}

const TOOLS: ToolDefinition[] = [
  {
    type: 'function',
    function: {
      name: 'calculator',
      description: 'Computes an expression of whole numbers, + - * / and parentheses, exactly.',
      parameters: {
        type: 'object',
        properties: { expression: { type: 'string', description: 'For example 12 * (7 + 3)' } },
        required: ['expression'],
        additionalProperties: false,
      },
    },
  },
]

export const arithmetic: Environment<State> = {
  contract,

  problems(spec: JsonObject): TaskProblem[] {
    const parsed = specSchema.safeParse(spec)
    return (parsed.error?.issues ?? []).map((issue) => ({
      rule: 'V01',
      path: issue.path.join('.'),
      expected: issue.message,
      found: issue.code,
      message: `${issue.path.join('.') || 'spec'}: ${issue.message}`,
    }))
  },

  describe(task) {
    const spec = specSchema.parse(task.spec)
    return { title: spec.title ?? spec.id, limits: spec.limits }
  },

  reset(task) {
    return { spec: specSchema.parse(task.spec), seen: [], final: null }
  },

  open(state) {
    return [
      {
        role: 'system',
        content:
          'You count stock. Use the calculator for every computation, then answer in one sentence that ends with ' +
          'the number.',
      },
      { role: 'user', content: state.spec.request },
    ]
  },

  tools: () => TOOLS,

  step(state, call) {
    const answered = answerCall(call.name, call.arguments)
    const audit = { call_id: call.id, tool: call.name, args: call.arguments_json, ok: answered.ok }
    const seen = answered.ok ? [...state.seen, answered.content] : state.seen
    const observation = { content: answered.content, is_error: !answered.ok }
    return { state: { ...state, seen }, observation, audit }
  },

  hear: (state) => state,

  reply: (state, message) => ({ state: { ...state, final: message }, end: 'final' }),

  grade(state) {
    const found = lastNumber(state.final ?? '')
    const score = found === state.spec.answer ? 1 : 0
    return {
      status: 'scored',
      rewards: { score },
      evidence: { expected: state.spec.answer, found },
    }
  },

  anchor: (state) => digest({ task: state.spec.id, seen: state.seen }),

  generate: generateTask,

  question: (request, answer) => ({ id: 'question', request: request || 'How many?', answer }),
}

function answerCall(name: string, args: JsonObject): { ok: boolean; content: string } {
  const refuse = (code: string, message: string) => ({
    ok: false,
    content: JSON.stringify({ error: { code, message, retryable: false } }),
  })
  if (name !== 'calculator')
    return refuse('UNKNOWN_TOOL', `there is no tool ${name}; the only one is calculator`)
  const { expression, ...others } = args
  if (typeof expression !== 'string' || Object.keys(others).length > 0)
    return refuse('INVALID_ARGUMENT', 'expected exactly one argument, expression, a string')
  const result = evaluate(expression)
  if (!result.ok) return refuse('INVALID_ARGUMENT', `expression: ${result.message}`)
  return { ok: true, content: formatRational(result.value) }
}

/** The last whole number of a text in plain digits, thousands separators removed; null where there is none. */
function lastNumber(text: string): string | null {
  const found = text.match(/-?\d{1,3}(?:[, ]\d{3})+(?!\d)|-?\d+/g)?.at(-1)
  return found === undefined ? null : `${BigInt(found.replace(/[, ]/g, ''))}`
}
