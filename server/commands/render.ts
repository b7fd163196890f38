// `paddock render`: conversations as a model's own chat template writes them, over JSON Lines.
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { PaddockError } from '../../protocol/errors.ts'
import {
  answerRender,
  parseRenderLine,
  type RenderAnswer,
} from '../../rollout/chat/answer-render.ts'
import type { ChatModel } from '../../rollout/chat/chat-model.ts'
import { createChatModel } from '../../rollout/chat/qwen-chat-model.ts'
import { readModelFolder } from '../runtime/threads/model-folder.ts'

/** Models that stay loaded: each takes some 90 MB. */
const KEPT_MODELS = 4

/**
 * Each line `{id, model_dir, messages, tools, add_generation_prompt, …kwargs}` is answered `{id, text, ids}` or
 * `{id, error}`; `modelDir` stands in where a line names none. The exit code: 1 where a line could not be read.
 */
export async function render(
  modelDir: string | null,
  streams: { input: Readable; output: Writable } = { input: process.stdin, output: process.stdout },
): Promise<number> {
  const models = new Map<string, ChatModel>()
  let unread = 0

  async function modelOf(folder: string): Promise<ChatModel> {
    const model = models.get(folder) ?? createChatModel(await readModelFolder('model_dir', folder))
    models.delete(folder)
    models.set(folder, model)
    const [oldest] = models.keys()
    if (models.size > KEPT_MODELS && oldest !== undefined) models.delete(oldest)
    return model
  }

  async function answer(text: string): Promise<RenderAnswer> {
    try {
      const line = parseRenderLine(text)
      const folder = line.modelDir ?? modelDir
      if (folder === null)
        return { id: line.id, error: 'model_dir is missing: name it in the line or as --model-dir' }
      try {
        return answerRender(await modelOf(folder), line)
      } catch (error) {
        if (error instanceof PaddockError) return { id: line.id, error: error.message }
        throw error
      }
    } catch (error) {
      if (!(error instanceof PaddockError)) throw error
      unread++
      return { id: null, error: error.message }
    }
  }

  for await (const text of createInterface({
    input: streams.input,
    crlfDelay: Number.POSITIVE_INFINITY,
  })) {
    if (text.trim() === '') continue
    if (!streams.output.write(`${JSON.stringify(await answer(text))}\n`))
      await once(streams.output, 'drain')
  }
  return unread > 0 ? 1 : 0
}
