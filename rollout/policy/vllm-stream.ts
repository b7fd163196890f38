// The events of a vLLM stream put together into the reply that the same completion has when it comes whole.
import { isPlainObject } from '../../protocol/json.ts'
import { readEvents } from './event-stream.ts'

type JsonRecord = Record<string, unknown>

/**
 * Of chat, completions and /inference/v1/generate alike: text, ids and log-probabilities are deltas, prompt ids stand in
 * the first event, the finish reason in the last with a choice, usage in the last of all (`include_usage`). Events of
 * more than one choice become as many choices.
 */
export function joinVllm(text: string): JsonRecord {
  const reply: JsonRecord = {}
  const choices = new Map<unknown, JsonRecord>()
  for (const event of readEvents(text)) {
    for (const [name, value] of Object.entries(event))
      if (name !== 'choices' && value !== null) reply[name] = value
    if (!Array.isArray(event.choices)) continue
    for (const delta of event.choices.filter(isPlainObject)) {
      const choice = choices.get(delta.index) ?? {}
      choices.set(delta.index, choice)
      addTo(choice, delta)
    }
  }
  return { ...reply, choices: [...choices.values()] }
}

/** Adds what an event brings to what came before: text to text, lists to lists, else the newer value. */
function addTo(whole: JsonRecord, delta: JsonRecord): void {
  for (const [key, value] of Object.entries(delta)) {
    const name = key === 'delta' ? 'message' : key
    const before = whole[name]
    if (value === null || value === undefined) continue
    if (typeof value === 'string' && typeof before === 'string' && isText(name))
      whole[name] = before + value
    else if (Array.isArray(value) && Array.isArray(before)) append(before, value)
    else if (Array.isArray(value)) whole[name] = [...value]
    else if (isPlainObject(value)) {
      const inner = isPlainObject(before) ? before : {}
      whole[name] = inner
      addTo(inner, value)
    } else whole[name] = value
  }
}

/** What grows with the events; a role or a finish reason does not. */
function isText(name: string): boolean {
  return name === 'content' || name === 'text' || name.startsWith('reasoning')
}

function append(list: unknown[], more: readonly unknown[]): void {
  for (const item of more) list.push(item)
}
