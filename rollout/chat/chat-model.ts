// A model's chat template and tokenizer as pure functions, made of the files of its Hugging Face folder.
import type { Message, ToolDefinition } from '../../protocol/conversation.ts'
import type { JsonObject } from '../../protocol/json.ts'

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
  /** The template's text of a conversation that was never sampled. Throws PaddockError `invalid_request` where the template raises. */
  render(
    messages: readonly Message[],
    tools: readonly ToolDefinition[],
    options: { addGenerationPrompt: boolean; kwargs: JsonObject },
  ): string
  /** Ids of text in which spelled-out control tokens are control ids (rendered prompts). */
  encode(text: string): Int32Array
  /** Ids of plain text: a control token spelled out in it never becomes a control id (observations). */
  encodePlain(text: string): Int32Array
  /** Text of ids, control tokens spelled out. */
  decode(ids: Int32Array | readonly number[]): string
  /** Ids that end a turn (`<|im_end|>`, `<|endoftext|>`). */
  stopTokenIds: readonly number[]
  /**
   * Ids that follow a finished assistant turn: the end of turn where `lastId` does not end it, then the new messages
   * (tool results share one user turn) and the generation prompt. None of them was sampled (templates/SPEC section 4).
   */
  bridge(lastId: number | null, messages: readonly Message[], kwargs: JsonObject): Int32Array
}
