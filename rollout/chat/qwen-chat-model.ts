// The chat model of a Qwen folder: its template through jinja, its tokenizer, and the bridge between turns.
import type { Message, ToolDefinition } from '../../protocol/conversation.ts'
import { PaddockError } from '../../protocol/errors.ts'
import { canonicalJson, isPlainObject, type JsonObject } from '../../protocol/json.ts'
import { type BridgeShape, bridgeIds, learnBridge } from './bridge.ts'
import type { ChatModel, ModelFiles } from './chat-model.ts'
import { type ChatTemplate, compileChatTemplate } from './chat-template.ts'
import { parseOrderedJson } from './ordered-json.ts'
import { createTextCodec, type TextCodec } from './text-codec.ts'

/** Bridge shapes that are remembered: one for each sequence of roles and set of kwargs. */
const REMEMBERED_SHAPES = 256

/**
 * A chat model of parsed model files. Building takes about 0.7 s (tokenizer) and is done once a thread. `now` is the
 * date for templates that write one (Qwen's do not); without it such a template raises.
 * Throws PaddockError `invalid_config` where a file is missing or of an unknown kind.
 */
export function createChatModel(files: ModelFiles, now: Date | null = null): ChatModel {
  const codec = attempt('tokenizer.json is not served', () =>
    createTextCodec(files.tokenizer, files.config),
  )
  const template = attempt('the chat template is no template', () =>
    compileChatTemplate(templateText(files), now),
  )
  const specialTokens = specialTokenTexts(files.config)
  const stopTokenIds = findStopTokenIds(codec, specialTokens)
  const endOfTurn = codec.decode(stopTokenIds.slice(0, 1))
  const shapes = new Map<string, BridgeShape>()

  const fill = (variables: ReadonlyMap<string, unknown>): string =>
    fillTemplate(template, [...specialTokens, ...variables])

  function bridgeShape(messages: readonly Message[], kwargs: JsonObject): BridgeShape {
    const roles = messages.map(({ role }) => role)
    const key = canonicalJson([roles, kwargs])
    const known = shapes.get(key)
    if (known !== undefined) return known
    const learnt = learnBridge(roles, endOfTurn, (conversation) =>
      fill(templateVariables(conversation, [], { addGenerationPrompt: true, kwargs })),
    )
    if (shapes.size >= REMEMBERED_SHAPES) shapes.clear()
    shapes.set(key, learnt)
    return learnt
  }

  return {
    render: (messages, tools, options) =>
      fill(templateVariables(messages.map(withParsedArguments), tools, options)),
    fill,
    encode: codec.encode,
    encodePlain: codec.encodePlain,
    decode: codec.decode,
    controlTokens: codec.controlTokens,
    knowsId: codec.knowsId,
    stopTokenIds,
    bridge(lastId, messages, kwargs) {
      refuseAssistant(messages)
      const contents = messages.map(({ content }) => content)
      const ended = lastId !== null && stopTokenIds.includes(lastId)
      const before = ended ? [] : stopTokenIds.slice(0, 1)
      return bridgeIds(bridgeShape(messages, kwargs), contents, codec, before)
    },
  }
}

function templateVariables(
  messages: readonly unknown[],
  tools: readonly ToolDefinition[],
  options: { addGenerationPrompt: boolean; kwargs: JsonObject },
): Map<string, unknown> {
  return new Map<string, unknown>([
    ...Object.entries(options.kwargs),
    ['messages', messages],
    ['tools', tools.length > 0 ? tools : null],
    ['add_generation_prompt', options.addGenerationPrompt],
  ])
}

function fillTemplate(template: ChatTemplate, variables: [string, unknown][]): string {
  try {
    return template.render(variables)
  } catch (cause) {
    throw new PaddockError(
      'invalid_request',
      `the chat template refuses this conversation: ${messageOf(cause)}`,
      { path: 'messages', cause },
    )
  }
}

/** The message with its calls' arguments as values in the order of their text: an object, or a refusal. */
function withParsedArguments(message: Message, index: number): unknown {
  if (message.role !== 'assistant' || message.tool_calls === undefined) return message
  const calls = message.tool_calls.map((call, position) => {
    const path = `messages[${index}].tool_calls[${position}].function.arguments`
    const { arguments: text, ...rest } = call.function
    return { ...call, function: { ...rest, arguments: parseArguments(text, path) } }
  })
  return { ...message, tool_calls: calls }
}

function parseArguments(text: unknown, path: string): unknown {
  if (typeof text !== 'string') return text
  try {
    return parseOrderedJson(text)
  } catch (cause) {
    throw new PaddockError(
      'invalid_request',
      `arguments of a call must be JSON text: ${messageOf(cause)}`,
      { path, cause },
    )
  }
}

function refuseAssistant(messages: readonly Message[]): void {
  const index = messages.findIndex(({ role }) => role === 'assistant')
  if (index < 0) return
  throw new PaddockError(
    'invalid_request',
    'a bridge holds what the environment said; an assistant message is kept as it was sampled',
    { path: `messages[${index}]` },
  )
}

function templateText({ template, config }: ModelFiles): string {
  if (template !== null) return template
  const configured = config.chat_template
  if (typeof configured === 'string') return configured
  // Some folders name several; transformers takes the one called default.
  const named = Array.isArray(configured) ? configured.filter((each) => isPlainObject(each)) : []
  const text = named.find(({ name }) => name === 'default')?.template
  if (typeof text === 'string') return text
  throw new Error(
    'the folder has neither chat_template.jinja nor a chat_template in tokenizer_config.json',
  )
}

/** `bos_token`, `eos_token` and their like as texts: templates may write them. */
function specialTokenTexts(config: JsonObject): [string, string][] {
  return ['bos_token', 'eos_token', 'pad_token', 'unk_token'].flatMap((name) => {
    const token = config[name]
    const text = isPlainObject(token) ? token.content : token
    return typeof text === 'string' ? [[name, text] as [string, string]] : []
  })
}

/** ChatML's end of turn, else the configured one, first; then the end of text. */
function findStopTokenIds(codec: TextCodec, specialTokens: [string, string][]): number[] {
  const configured = specialTokens.filter(([name]) => name === 'eos_token').map(([, text]) => text)
  const ids = ['<|im_end|>', ...configured, '<|endoftext|>'].flatMap(
    (token) => codec.idOf(token) ?? [],
  )
  if (ids.length > 0) return [...new Set(ids)]
  throw new PaddockError(
    'invalid_config',
    'the tokenizer has none of <|im_end|>, its eos_token and <|endoftext|>, so no turn could end',
    { path: 'tokenizer_config.json' },
  )
}

function attempt<T>(what: string, build: () => T): T {
  try {
    return build()
  } catch (cause) {
    throw new PaddockError('invalid_config', `${what}: ${messageOf(cause)}`, { cause })
  }
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause)
}
