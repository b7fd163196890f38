// Reads the files of a Hugging Face model folder: tokenizer, its configuration, and the chat template.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PaddockError } from '../../../protocol/errors.ts'
import type { JsonObject } from '../../../protocol/json.ts'
import type { ModelFiles } from '../../../rollout/chat/chat-model.ts'

/** Throws `invalid_config` with `where` (a setting or a line's key) and the folder where a file is missing or no JSON. */
export async function readModelFolder(where: string, folder: string): Promise<ModelFiles> {
  const read = async (file: string) => readFile(join(folder, file), 'utf8')
  try {
    const [tokenizer, config] = await Promise.all([
      read('tokenizer.json'),
      read('tokenizer_config.json'),
    ])
    const template = await read('chat_template.jinja').catch(() => null)
    return {
      tokenizer: JSON.parse(tokenizer) as JsonObject,
      config: JSON.parse(config) as JsonObject,
      template,
    }
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new PaddockError(
      'invalid_config',
      `${where}: expected a Hugging Face model folder at ${folder}: ${why}`,
      { cause },
    )
  }
}
