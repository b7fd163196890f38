// What engines share of OpenAI's wire form: messages, streams, the one choice, and how it finished.
import type { Message } from '../../protocol/conversation.ts'
import type { PolicyFinish } from './dialect.ts'
import { describe, readArray, readObject, refuse } from './reply.ts'

type JsonRecord = Record<string, unknown>

/** Usage comes with a stream only where it is asked for. */
export function streamBody(stream = false): JsonRecord {
  return stream ? { stream, stream_options: { include_usage: true } } : { stream }
}

/** Calls get the ids of the results behind them: OpenAI's form wants ids, and order alone links the two. */
export function wireMessages(messages: readonly Message[]): unknown[] {
  return messages.map((message, index) => {
    if (message.role !== 'assistant' || message.tool_calls === undefined) return message
    const calls = message.tool_calls.map((call, position) => {
      const result = messages[index + 1 + position]
      const id = result?.role === 'tool' ? result.tool_call_id : `call_${index}_${position}`
      return { id, ...call }
    })
    return { ...message, tool_calls: calls }
  })
}

export function onlyChoice(reply: JsonRecord): JsonRecord {
  const choices = readArray(reply.choices, 'choices', 'one choice was asked for')
  if (choices.length !== 1)
    refuse('contract_violation', 'choices', `expected one choice, got ${choices.length || 'none'}`)
  return readObject(choices[0], 'choices')
}

/** `tool_calls` is a stop that the engine's tool parser renamed; whether its parser is in the way is checked apart. */
export function readFinish(reason: unknown): PolicyFinish {
  if (reason === 'stop' || reason === 'length' || reason === 'abort') return reason
  if (reason === 'tool_calls') return 'stop'
  if (reason === undefined || reason === null)
    return refuse('infra_backend', 'finish_reason', 'the reply ended without a finish reason')
  if (reason === 'error')
    return refuse('infra_backend', 'finish_reason', 'the engine ended the completion with an error')
  const known = 'expected stop, length or abort'
  return refuse('contract_violation', 'finish_reason', `${known}, got ${describe(reason)}`)
}
