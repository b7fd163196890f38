// One line of `paddock render`: a conversation with the template's variables in, its text and token ids out.
import { PaddockError } from '../../protocol/errors.ts'
import type { ChatModel } from './chat-model.ts'
import { type OrderedJson, parseOrderedJson } from './ordered-json.ts'

/** A line as read: objects keep the order of their keys and numbers their spelling, as in the line's text. */
export interface RenderLine {
  id: string | null
  /** Folder of the model, where the line names one. */
  modelDir: string | null
  /** `messages`, `tools`, `add_generation_prompt` and whatever else the template reads. */
  variables: Map<string, OrderedJson>
}

export type RenderAnswer = { id: string | null } & (
  | { text: string; ids: number[] }
  | { error: string }
)

/**
 * Reads `{id?, model_dir?, messages, tools?, add_generation_prompt?, …kwargs}`.
 * Throws PaddockError `malformed_json` or `invalid_request`.
 */
export function parseRenderLine(text: string): RenderLine {
  const line = parseObject(text)
  if (!Array.isArray(line.get('messages')))
    throw new PaddockError('invalid_request', 'messages must be an array', { path: 'messages' })
  const id = line.get('id')
  const modelDir = line.get('model_dir')
  const own = new Set(['id', 'model_dir'])
  return {
    id: typeof id === 'string' ? id : null,
    modelDir: typeof modelDir === 'string' ? modelDir : null,
    variables: new Map([...line].filter(([name]) => !own.has(name))),
  }
}

/**
 * The template's text of the line's variables exactly as they stand (arguments given as text stay text, as in Python),
 * and its ids; or what the template said against it. `tools` and `add_generation_prompt` default to none and false.
 */
export function answerRender(model: ChatModel, { id, variables }: RenderLine): RenderAnswer {
  const defaults: [string, OrderedJson][] = [
    ['tools', null],
    ['add_generation_prompt', false],
  ]
  try {
    const text = model.fill(new Map([...defaults, ...variables]))
    return { id, text, ids: [...model.encode(text)] }
  } catch (error) {
    if (error instanceof PaddockError) return { id, error: error.message }
    throw error
  }
}

function parseObject(text: string): Map<string, OrderedJson> {
  let value: OrderedJson
  try {
    value = parseOrderedJson(text)
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause)
    throw new PaddockError('malformed_json', `a line must be JSON: ${said}`, { cause })
  }
  if (value instanceof Map) return value
  throw new PaddockError('invalid_request', 'a line must be a JSON object')
}
