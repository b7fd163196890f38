// A model's chat template and tokenizer as pure functions, made of the files of its Hugging Face folder.
import type { Message, ToolDefinition } from '../../protocol/conversation.ts'
import type { JsonObject } from '../../protocol/json.ts'
import type { ControlTokens } from './control-tokens.ts'

/** Parsed files of a model folder; `server/runtime` reads them. */
export interface ModelFiles {
  /** tokenizer.json */
  tokenizer: JsonObject
  /** tokenizer_config.json */
  config: JsonObject
  /** chat_template.jinja where the folder has one, else null (the config's `chat_template` is taken). */
  template: string | null
}

export interface ChatModel {
  /**
   * The template's text of a conversation that was never sampled. Arguments of calls are parsed first, as vLLM and
   * SGLang do. Throws PaddockError `invalid_request` where the template raises or arguments are no JSON.
   */
  render(
    messages: readonly Message[],
    tools: readonly ToolDefinition[],
    options: { addGenerationPrompt: boolean; kwargs: JsonObject },
  ): string
  /**
   * The template's text of its variables exactly as given (`messages`, `tools`, `add_generation_prompt`, …), nothing
   * parsed or added but the special tokens. Throws PaddockError `invalid_request` where the template raises.
   */
  fill(variables: ReadonlyMap<string, unknown>): string
  /** Ids of text in which spelled-out control tokens are control ids (rendered prompts). */
  encode(text: string): Int32Array
  /** Ids of plain text: a control token spelled out in it never becomes a control id (observations). */
  encodePlain(text: string): Int32Array
  /** Text of ids, control tokens spelled out; ids that the vocabulary does not have are left out. */
  decode(ids: Int32Array | readonly number[]): string
  /** Finds control tokens of the vocabulary in text. */
  controlTokens: ControlTokens
  /** Whether the vocabulary, added tokens included, has an id. */
  knowsId(id: number): boolean
  /** Ids that end a turn (`<|im_end|>`, `<|endoftext|>`); the first is the one that the template writes. */
  stopTokenIds: readonly number[]
  /**
   * Ids that follow a finished assistant turn: the end of turn where `lastId` does not end it, then the new messages
   * (tool results share one user turn) and the generation prompt. None of them was sampled (templates/SPEC section 4).
   * The messages' text is plain: no control id comes from it. Throws PaddockError `invalid_request` for an assistant
   * message and `invalid_config` where the template drops a message or does not end an assistant turn.
   */
  bridge(lastId: number | null, messages: readonly Message[], kwargs: JsonObject): Int32Array
}
