// The first prompt as the backend itself renders it: vLLM's /tokenize with messages and tools.
import type { HttpRequest, PromptTurn, ReplyFault } from './dialect.ts'
import { JsonList, jsonRequest } from './json-request.ts'
import { wireMessages } from './openai-form.ts'
import { readArray, readCount, readIds, readReply, refuse, refuseUnknownIds } from './reply.ts'

/** Keys as of TokenizeChatRequest (vllm: vllm/entrypoints/serve/tokenize/protocol.py). */
export function tokenizeRequest({
  model,
  messages,
  tools,
  chatTemplateKwargs,
}: Pick<PromptTurn, 'model' | 'messages' | 'tools' | 'chatTemplateKwargs'>): HttpRequest {
  return jsonRequest('/tokenize', {
    model,
    messages: wireMessages(messages),
    ...(tools.length > 0 && { tools: new JsonList(tools) }),
    add_generation_prompt: true,
    ...(Object.keys(chatTemplateKwargs).length > 0 && { chat_template_kwargs: chatTemplateKwargs }),
  })
}

/** The prompt's ids, or why there are none. Never throws. */
export function readTokenized(
  status: number,
  headers: Record<string, string>,
  body: Uint8Array,
  knowsId: ((id: number) => boolean) | null,
): { kind: 'prompt'; ids: Int32Array } | ReplyFault {
  return readReply(status, headers, body, {}, (reply) => {
    const ids = readIds(readArray(reply.tokens, 'tokens', 'of /tokenize'), 'tokens')
    const count = readCount(reply.count, 'count') ?? ids.length
    if (count !== ids.length)
      refuse('contract_violation', 'tokens', `${ids.length} came, but ${count} (count) were told`)
    if (ids.length === 0) refuse('contract_violation', 'tokens', 'a prompt has at least one token')
    refuseUnknownIds(ids, 'tokens', knowsId)
    return { kind: 'prompt' as const, ids }
  })
}
