// Signs that an engine's own parser took something out of a chat answer, so that its text is not what was sampled.
import { describe, refuse } from './reply.ts'

type JsonRecord = Record<string, unknown>

const TOOL_FLAGS = 'start the engine without --tool-call-parser (and --enable-auto-tool-choice)'

/** A parser that failed: it says that there are calls, and has none (sglang#26790). */
export function refuseNoCalls(reason: unknown, { tool_calls: calls }: JsonRecord): void {
  if (reason !== 'tool_calls' || (Array.isArray(calls) && calls.length > 0)) return
  const came = 'the finish reason is tool_calls, and no call came with it'
  refuse('contract_violation', 'finish_reason', `${came}: ${TOOL_FLAGS}`)
}

/** Without a tokenizer the text is all there is, so nothing may have been taken out of it. */
export function refuseParsed(message: JsonRecord): void {
  const taken = 'the engine parsed the answer, so its text is not what was sampled'
  if (Array.isArray(message.tool_calls) && message.tool_calls.length > 0)
    refuse('contract_violation', 'tool_calls', `${taken}: ${TOOL_FLAGS}`)
  for (const field of ['reasoning_content', 'reasoning']) {
    if (typeof message[field] === 'string' && message[field] !== '')
      refuse('contract_violation', field, `${taken}: start the engine without --reasoning-parser`)
  }
}

/** A parser may also take everything and leave no trace of it. The one token of an empty text is its end of turn. */
export function refuseWithheld(
  content: unknown,
  { finish, usage }: { finish: string; usage: { completionTokens: number } },
): void {
  if (finish === 'abort') return
  const isText = typeof content === 'string'
  if (isText && (content !== '' || usage.completionTokens === 1)) return
  const came = isText ? 'an empty text' : describe(content)
  refuse(
    'contract_violation',
    'content',
    `${came} came for ${usage.completionTokens} sampled tokens: ${TOOL_FLAGS}, and without --reasoning-parser`,
  )
}
