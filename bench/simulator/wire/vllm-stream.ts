// vLLM's server-sent events: the same completion as a chain of deltas, one token each.
import type { Ask, Generation } from '../policy/completion.ts'
import type { Model } from '../policy/model.ts'
import type { VllmForm } from './vllm.ts'
import { writeReply } from './vllm-reply.ts'

type JsonRecord = Record<string, unknown>

/** One delta: what it adds to the text, to the ids and to the log-probabilities. */
interface Piece {
  added: JsonRecord
  ids: number[] | null
  logprobs: JsonRecord | null
}

/** All events of a reply, `[DONE]` included. Prompt ids are in the first one only, token ids are deltas. */
export function writeStream(
  model: Model,
  form: VllmForm,
  ask: Ask,
  generation: Generation,
): string {
  const reply = writeReply(model, form, ask, generation) as JsonRecord & { choices: JsonRecord[] }
  const object = form.kind === 'chat' ? 'chat.completion.chunk' : 'text_completion'
  const head =
    form.kind === 'tokens'
      ? { request_id: reply.id }
      : { id: reply.id, object, created: reply.created, model: reply.model }
  const [choice] = reply.choices
  const events: JsonRecord[] = choice ? choiceEvents(model, form, generation, choice) : []
  if (form.tokenIds && form.kind !== 'tokens' && events[0]) withPromptIds(events[0], form, ask)
  if (form.streamUsage) events.push({ choices: [], usage: reply.usage })
  return [...events.map((event) => JSON.stringify({ ...head, ...event })), '[DONE]']
    .map((data) => `data: ${data}\n\n`)
    .join('')
}

/** Chat has them beside the choices, the completions API in the choice, as in a whole reply. */
function withPromptIds(event: JsonRecord, form: VllmForm, { promptIds }: Ask): void {
  const holder = form.kind === 'chat' ? event : (event.choices as JsonRecord[])[0]
  if (holder) holder.prompt_token_ids = promptIds
}

function choiceEvents(
  model: Model,
  form: VllmForm,
  generation: Generation,
  choice: JsonRecord,
): JsonRecord[] {
  const isChat = form.kind === 'chat'
  const pieces = tokenPieces(model, form, generation, choice) ?? [wholePiece(choice)]
  const events = pieces.map(({ added, ids, logprobs }, index) => {
    const isLast = index === pieces.length - 1
    const end = { finish_reason: choice.finish_reason, stop_reason: choice.stop_reason }
    const delta = {
      index: 0,
      ...(isChat ? { delta: added } : form.kind === 'completions' && added),
      logprobs,
      ...(isLast ? end : { finish_reason: null }),
      ...(form.tokenIds && ids && { token_ids: ids }),
    }
    return { choices: [delta] }
  })
  if (!isChat) return events
  const opening = { role: 'assistant', content: '' }
  return [
    { choices: [{ index: 0, delta: opening, logprobs: null, finish_reason: null }] },
    ...events,
  ]
}

/** One piece per token; null where text and ids do not go together any more. */
function tokenPieces(
  model: Model,
  form: VllmForm,
  { ids, text, toolCalls, reasoning }: Generation,
  choice: JsonRecord,
): Piece[] | null {
  if (ids === null || ids.length === 0 || toolCalls.length > 0 || reasoning !== null) return null
  const key = form.kind === 'chat' ? 'content' : 'text'
  return textPieces(model, ids, text).map((piece, index) => ({
    added: { [key]: piece },
    ids: ids.slice(index, index + 1),
    logprobs: logprobsAt(choice.logprobs, index),
  }))
}

function wholePiece({ message, text, logprobs, token_ids }: JsonRecord): Piece {
  const added = message ? (message as JsonRecord) : { text }
  return { added, ids: token_ids as number[] | null, logprobs: logprobs as JsonRecord | null }
}

/** The text that each id adds; half characters wait for their other half. What was cut from the text is not sent. */
function textPieces(model: Model, ids: readonly number[], text: string): string[] {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let left = text
  return ids.map((id) => {
    const piece = decoder.decode(model.bytes(id), { stream: true })
    const sent = left.startsWith(piece) ? piece : piece.startsWith(left) ? left : ''
    left = left.slice(sent.length)
    return sent
  })
}

function logprobsAt(logprobs: unknown, index: number): JsonRecord | null {
  if (typeof logprobs !== 'object' || logprobs === null) return null
  const entries = Object.entries(logprobs as Record<string, unknown[]>)
  return Object.fromEntries(entries.map(([key, values]) => [key, values.slice(index, index + 1)]))
}
