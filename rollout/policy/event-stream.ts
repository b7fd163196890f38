// A streamed reply that was collected as bytes: its server-sent events, and that they came to their end.
import { isPlainObject } from '../../protocol/json.ts'
import { isContextLength, parseJson, refuse } from './reply.ts'

type JsonRecord = Record<string, unknown>

/**
 * The JSON objects of a stream, in order, up to `[DONE]`. A stream that ends without it was cut, however clean its end
 * (WHATWG HTML, 9.2; engines close with `data: [DONE]`, as OpenAI's API does). An error that the engine sends is a fault.
 */
export function readEvents(text: string): JsonRecord[] {
  const events: JsonRecord[] = []
  for (const block of text.split(/\r?\n\r?\n/)) {
    const data = dataOf(block)
    if (data === '[DONE]') return events
    if (data === null) continue
    const event = parseJson(data)
    if (!isPlainObject(event)) return refuse('infra_backend', '', 'an event is no JSON object')
    if (event.error !== undefined && event.error !== null) refuseError(event.error)
    events.push(event)
  }
  return refuse('infra_backend', '', 'the stream ended before its [DONE]: it was cut on its way')
}

/** Null for a block without data, as a comment that keeps the connection alive. */
function dataOf(block: string): string | null {
  const lines = block.split(/\r?\n/).filter((line) => line.startsWith('data:'))
  return lines.length > 0 ? lines.map((line) => line.slice(5).replace(/^ /, '')).join('\n') : null
}

const SAID_CHARACTERS = 200

function refuseError(error: unknown): never {
  const message = isPlainObject(error) ? error.message : error
  const said = (typeof message === 'string' ? message : JSON.stringify(error)).toWellFormed()
  return refuse(
    isContextLength(said) ? 'context_length' : 'infra_backend',
    '',
    `the engine ended the stream with an error: ${said.slice(0, SAID_CHARACTERS)}`,
  )
}
