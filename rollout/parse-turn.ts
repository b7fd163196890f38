// What a policy's text says, read as its tool format, thinking and leniencies have it.
import type { ToolDefinition } from '../protocol/conversation.ts'
import type { PolicyPlan } from './episode.ts'
import { createParser } from './toolcall/create-parser.ts'
import type { ParsedTurn } from './toolcall/parser.ts'

export type Reading = Pick<PolicyPlan, 'toolFormat' | 'thinking' | 'leniencies'>

export function parseTurn(
  text: string,
  finish: 'stop' | 'length',
  tools: readonly ToolDefinition[],
  { toolFormat, thinking, leniencies }: Reading,
): ParsedTurn {
  const options = Object.fromEntries(leniencies.map((name) => [name, true]))
  const parser = createParser({ format: toolFormat, tools, thinking, ...options })
  parser.feed(text)
  return parser.end(finish)
}
