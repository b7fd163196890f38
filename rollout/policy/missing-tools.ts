// Whether a backend's template showed the policy its tools: some drop them, and nothing fails but the rewards.
import type { Message, ToolDefinition } from '../../protocol/conversation.ts'

/**
 * Names of the tools that the decoded prompt does not list. A name counts as a whole word, and only where it stands more
 * often than in the messages' own text: a request that speaks of a tool does not show it.
 */
export function missingTools(
  decodedPrompt: string,
  tools: readonly ToolDefinition[],
  messages: readonly Message[],
): string[] {
  const told = messages.map((message) => message.content).join('\n')
  return tools
    .map((tool) => tool.function.name)
    .filter((name) => occurrences(decodedPrompt, name) <= occurrences(told, name))
}

const WORD_CHARACTER = /[\p{L}\p{N}_]/u

/** How often the name stands with no letter, digit or `_` on either side. */
function occurrences(text: string, name: string): number {
  let count = 0
  for (let at = text.indexOf(name); name !== '' && at >= 0; at = text.indexOf(name, at + 1)) {
    const [before = ' ', after = ' '] = [text[at - 1], text[at + name.length]]
    if (!WORD_CHARACTER.test(before) && !WORD_CHARACTER.test(after)) count++
  }
  return count
}
