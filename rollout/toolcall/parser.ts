// What a policy's text becomes: reasoning, content and structured calls, or named refusals. The types of that, and the entry.
import type { ToolDefinition } from '../../protocol/conversation.ts'
import type { JsonObject } from '../../protocol/json.ts'
import type {
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
  flags: ParseFlag[]
}

/** A piece that will never be retracted; the concatenation of deltas equals the final field. */
export type Delta =
  | { kind: 'reasoning' | 'content'; text: string }
  | { kind: 'call'; index: number; name: string }
  | { kind: 'arguments'; index: number; text: string }

export interface ParserOptions {
  format: ToolFormat
  tools: readonly ToolDefinition[]
  thinking: ThinkingMode
}

export interface TurnParser {
  feed(chunk: string): Delta[]
  end(finish: FinishReason): ParsedTurn
}
