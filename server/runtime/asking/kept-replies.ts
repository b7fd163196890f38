// Replies of the judge by what it was asked: an equal question is asked once.
import { hash } from 'node:crypto'
import type { ChatRequest, HttpReply } from '../../../rollout/request.ts'

/** Answers of a few hundred bytes each. */
const MAX_REPLIES = 10_000

export interface KeptReplies {
  get(request: ChatRequest): HttpReply | null
  set(request: ChatRequest, reply: HttpReply): void
}

/**
 * Equal bytes to one backend are one question. An answer that could not be used is asked for again under another seed, so
 * that it never stands in the way of a good one; the oldest go first.
 */
export function createKeptReplies(max = MAX_REPLIES): KeptReplies {
  const replies = new Map<string, HttpReply>()
  const keyOf = ({ backend, body }: ChatRequest) => `${backend} ${hash('sha256', body)}`
  return {
    get: (request) => replies.get(keyOf(request)) ?? null,
    set(request, reply) {
      for (const oldest of replies.keys()) {
        if (replies.size < max) break
        replies.delete(oldest)
      }
      replies.set(keyOf(request), reply)
    },
  }
}
