// What a prompt's text tells the policy: the first user message, the turns said so far, and a turn cut open.
import { canonicalJson, isPlainObject } from '../../../protocol/json.ts'

export interface Conversation {
  /** The whole prompt, for markers and matches. */
  text: string
  firstUser: string
  /** Finished assistant turns, raw. */
  turns: string[]
  /** What the open assistant turn holds already: a prefilled `<think>`, or the part before an abort. */
  partial: string
}

interface SaidCall {
  name: string
  /** Comparable form of the arguments, see `argumentsKey`. */
  key: string
  arguments: Record<string, unknown>
}

/** An assistant turn, taken apart without judging it: this is for finding one's place, not for acting on calls. */
export interface SaidTurn {
  content: string
  calls: SaidCall[]
}

/** Reads a prompt in the ChatML form that every Qwen template writes. */
export function readPrompt(prompt: string): Conversation {
  const text = prompt.normalize('NFC')
  const segments = text.split('<|im_start|>').slice(1)
  const open = segments.at(-1) ?? ''
  const isOpen = open.startsWith('assistant\n') && !open.includes('<|im_end|>')
  const closed = isOpen ? segments.slice(0, -1) : segments
  const ofRole = (role: string) =>
    closed.filter((segment) => segment.startsWith(`${role}\n`)).map((segment) => body(segment))
  return {
    text,
    firstUser: ofRole('user')[0] ?? '',
    turns: ofRole('assistant'),
    partial: isOpen ? open.slice('assistant\n'.length) : '',
  }
}

function body(segment: string): string {
  return segment.slice(segment.indexOf('\n') + 1).replace(/<\|im_end\|>[\s\S]*$/, '')
}

const BLOCK = /<tool_call>\s*([\s\S]*?)\s*<\/tool_call>/g

/** Content without reasoning and calls, and the calls of both tag forms; a block that cannot be read is no call. */
export function takeApart(turn: string): SaidTurn {
  const said = turn.replace(/^<think>[\s\S]*?<\/think>/, '')
  const calls: SaidCall[] = []
  for (const [, block = ''] of said.matchAll(BLOCK)) {
    const call = block.startsWith('{') ? jsonCall(block) : taggedCall(block)
    if (call) calls.push(call)
  }
  return { content: said.replace(BLOCK, '').trim(), calls }
}

function jsonCall(block: string): SaidCall | null {
  let value: unknown
  try {
    value = JSON.parse(block)
  } catch {
    return null
  }
  if (!isPlainObject(value) || typeof value.name !== 'string' || !isPlainObject(value.arguments))
    return null
  return { name: value.name, key: argumentsKey(value.arguments), arguments: value.arguments }
}

const FUNCTION = /^<function=([^>\n]+)>\s*([\s\S]*?)\s*<\/function>$/
const PARAMETER = /<parameter=([^>\n]+)>\n?([\s\S]*?)\n?<\/parameter>/g

function taggedCall(block: string): SaidCall | null {
  const [, name, parameters = ''] = FUNCTION.exec(block) ?? []
  if (name === undefined) return null
  const values = Object.fromEntries(
    Array.from(parameters.matchAll(PARAMETER), ([, key = '', value = '']) => [key, value]),
  )
  return { name, key: argumentsKey(values), arguments: values }
}

/**
 * Arguments in a form that survives the tag forms, where every value is text: `true`, `True` and `"true"` are one, and
 * so are an object and its JSON text.
 */
export function argumentsKey(values: Record<string, unknown>): string {
  const entries = Object.entries(values).map(([key, value]) => [key, valueKey(value)])
  return canonicalJson(Object.fromEntries(entries))
}

function valueKey(value: unknown): string {
  if (typeof value !== 'string') return canonicalJson(value).toLowerCase()
  if (!/^[[{]/.test(value)) return value.toLowerCase()
  try {
    return canonicalJson(JSON.parse(value)).toLowerCase()
  } catch {
    return value.toLowerCase()
  }
}
