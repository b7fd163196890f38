// Messages, tools and calls: what a policy reads and says, before any chat template.
import type { JsonObject } from './json.ts'

/** One chat message. An assistant message keeps the calls as the policy wrote them. */
export type Message =
  | { role: 'system' | 'user'; content: string }
  | {
      role: 'assistant'
      content: string
      reasoning_content?: string
      tool_calls?: { type: 'function'; function: { name: string; arguments: string } }[]
    }
  | { role: 'tool'; name: string; tool_call_id: string; content: string }

/** A tool as the model sees it: the OpenAI envelope around a JSON Schema of its parameters. */
export interface ToolDefinition {
  type: 'function'
  function: { name: string; description: string; parameters: JsonObject }
}

/**
 * One structured call. `arguments_json` is the lossless text (digits as written, keys in order); `arguments` the same
 * value as JavaScript reads it. Where the two differ, the text is right.
 */
export interface ToolCall {
  id: string
  name: string
  arguments: JsonObject
  arguments_json: string
}
