// One line for the parser, as `paddock parse` and `POST /v1/parse` take it, and what they answer.
import { z } from 'zod'
import type { ToolDefinition } from '../../protocol/conversation.ts'
import { PaddockError } from '../../protocol/errors.ts'
import { isPlainObject, type JsonObject } from '../../protocol/json.ts'
import {
  LENIENCIES,
  type Leniency,
  type ParseErrorCode,
  type ParseFlag,
  THINKING_MODES,
  TOOL_FORMATS,
} from '../../protocol/parse-codes.ts'
import { createParser } from './create-parser.ts'

/** A tool as far as the parser reads it. A schema passes as it is: a copy would lose a key `__proto__`. */
const toolSchema = z.looseObject({
  type: z.literal('function').default('function'),
  function: z.looseObject({
    name: z.string().min(1),
    parameters: z
      .custom<JsonObject>((value) => isPlainObject(value), 'expected a JSON Schema object')
      .nullish(),
  }),
})

/** Other keys are allowed and ignored, so that lines of a corpus pass as they are. */
const parseLineSchema = z
  .looseObject({
    id: z.union([z.string(), z.number()]),
    format: z.enum(TOOL_FORMATS),
    tools: z.array(toolSchema),
    text: z.string().optional(),
    chunks: z.array(z.string()).optional(),
    thinking: z.enum(THINKING_MODES).default('none'),
    finish_reason: z.enum(['stop', 'length']).default('stop'),
    leniencies: z.array(z.enum(LENIENCIES)).optional(),
  })
  .refine((line) => (line.text === undefined) !== (line.chunks === undefined), {
    message: 'expected exactly one of text and chunks',
    path: ['text'],
  })

/** Spans count UTF-16 units of the text. Where `arguments` and `arguments_json` differ, the text is right. */
export interface ParseAnswer {
  id: string | number
  reasoning: string | null
  content: string | null
  calls: { name: string; arguments: JsonObject; arguments_json: string }[]
  errors: { code: ParseErrorCode; start: number; end: number; message: string }[]
  flags: ParseFlag[]
  /** Those that made a difference; only where the line asks for some. */
  leniencies?: Leniency[]
}

/** Parses one line. Throws PaddockError `invalid_request`, with the path of the value that does not fit. */
export function answerParse(line: unknown): ParseAnswer {
  const read = parseLineSchema.safeParse(line)
  if (!read.success) {
    const issue = read.error.issues[0]!
    const path = pathText(issue.path)
    throw new PaddockError('invalid_request', `${path || 'line'}: ${issue.message}`, { path })
  }
  const { id, format, thinking, finish_reason, leniencies: asked } = read.data
  const parser = createParser({
    format,
    thinking,
    tools: read.data.tools as unknown as ToolDefinition[],
    ...Object.fromEntries((asked ?? []).map((name) => [name, true])),
  })
  for (const chunk of read.data.chunks ?? [read.data.text ?? '']) parser.feed(chunk)
  const { reasoning, content, calls, errors, flags, leniencies } = parser.end(finish_reason)
  return {
    id,
    reasoning,
    content,
    calls: calls.map(({ name, arguments: value, arguments_json }) => ({
      name,
      arguments: value,
      arguments_json,
    })),
    errors,
    flags,
    ...(asked && { leniencies }),
  }
}

/** A path as in `tools[0].function.name`. */
function pathText(keys: readonly PropertyKey[]): string {
  return keys
    .map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
    .replace(/^\./, '')
}
