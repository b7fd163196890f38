// What a policy's text becomes: reasoning, content and structured calls, or named refusals. The types of that, and the entry.
import type { ToolDefinition } from '../../protocol/conversation.ts'
import type { JsonObject } from '../../protocol/json.ts'
import type {
  Leniency,
  ParseErrorCode,
  ParseFlag,
  ThinkingMode,
  ToolFormat,
} from '../../protocol/parse-codes.ts'

/** How the backend says a completion ended, for the parser: only `length` differs in what is reported. */
export type FinishReason = 'stop' | 'length'

/** `start` and `end` count UTF-16 units of the raw text. */
export interface ParsedCall {
  name: string
  arguments: JsonObject
  arguments_json: string
  start: number
  end: number
}

export interface ParseError {
  code: ParseErrorCode
  start: number
  end: number
  /** What was expected, what came: a sentence that a model can act on. */
  message: string
}

export interface ParsedTurn {
  reasoning: string | null
  content: string | null
  calls: ParsedCall[]
  errors: ParseError[]
  /** Each at most once, in alphabetical order. */
  flags: ParseFlag[]
  /** The lenient readings that made a difference; empty unless options ask for them. */
  leniencies: Leniency[]
  /** What was held back until the end: the deltas of `feed`, then these, add up to the fields above. */
  tail: Delta[]
}

/** A piece that will never be retracted; the concatenation of deltas equals the final field. */
export type Delta =
  | { kind: 'reasoning' | 'content'; text: string }
  | { kind: 'call'; index: number; name: string }
  | { kind: 'arguments'; index: number; text: string }

/**
 * Readings that the grammar does not have but some servers do, each off by default:
 * - `closeAtStop`: a complete call without its closing tag at the end of a turn that stopped is taken (for backends
 *   that stop at `</tool_call>`).
 * - `thinkingEndsAtToolCall`: `<tool_call>` inside reasoning ends it, as vLLM and llama.cpp read it.
 * - `acceptBareFunction`: `<function=…>` at the start of a line is a call without its `<tool_call>`.
 * - `acceptUnclosedParameter`: a value without `</parameter>` ends before the next `<parameter=` line or before
 *   `</function>` and `</tool_call>`.
 * - `json5`: JSON with comments, single quotes, bare keys and trailing commas is read.
 */
export type Leniencies = Partial<Record<Leniency, boolean>>

export interface ParserOptions extends Leniencies {
  format: ToolFormat
  tools: readonly ToolDefinition[]
  thinking: ThinkingMode
}

export interface TurnParser {
  feed(chunk: string): Delta[]
  end(finish: FinishReason): ParsedTurn
}
