// The events of an SGLang stream put together into the reply that the same completion has when it comes whole.
import { isPlainObject } from '../../protocol/json.ts'
import { readEvents } from './event-stream.ts'
import { refuse } from './reply.ts'

type JsonRecord = Record<string, unknown>

/**
 * By default each event holds all that was sampled so far, so that the last is the reply; with
 * --incremental-streaming-output (before: --stream-output) text, ids and log-probabilities are deltas. Which of the two
 * it is shows in the last event, whose `completion_tokens` counts them all.
 */
export function joinSglang(text: string): JsonRecord {
  const events = readEvents(text)
  const last = events.at(-1)
  if (!last) return refuse('infra_backend', '', 'the stream had no event before its [DONE]')
  const meta = metaOf(last)
  const logprobs = listOf(meta.output_token_logprobs)
  if (events.length === 1 || logprobs.length === meta.completion_tokens) return last
  const isDelta = events.some((event) => typeof event.text === 'string')
  return {
    ...last,
    ...(isDelta && { text: events.map(({ text }) => text ?? '').join('') }),
    ...(Array.isArray(last.output_ids) && {
      output_ids: events.flatMap((event) => listOf(event.output_ids)),
    }),
    meta_info: {
      ...meta,
      output_token_logprobs: events.flatMap((event) => listOf(metaOf(event).output_token_logprobs)),
    },
  }
}

function metaOf({ meta_info }: JsonRecord): JsonRecord {
  return isPlainObject(meta_info) ? meta_info : {}
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}
