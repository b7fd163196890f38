// Whoever an episode asks beside its policy: models over HTTP, custom graders in their threads; each wait has one deadline.
import { KEPT_REPLY } from '../../../rollout/asking/asking.ts'
import type {
  ChatRequest,
  EpisodeRequest,
  HttpReply,
  PolicyRequest,
} from '../../../rollout/request.ts'
import type { PolicyClient } from '../policy/policy-client.ts'
import type { Graders } from './graders.ts'
import type { GuardedHttp } from './guarded-url.ts'
import { createKeptReplies } from './kept-replies.ts'
import { askRewardModel } from './reward-client.ts'

export type BesideRequest = Exclude<EpisodeRequest, PolicyRequest>

export interface Beside {
  /**
   * Never rejects: where nobody answers by `deadline` (milliseconds of `performance.now()`) or at all, the reply has status
   * 0 and says why.
   */
  ask(request: BesideRequest, deadline: number, signal: AbortSignal): Promise<HttpReply>
}

export interface BesideWorld {
  client: PolicyClient
  graders: Graders
  rewardModels: Pick<GuardedHttp, 'post'>
}

export function createBeside({ client, graders, rewardModels }: BesideWorld): Beside {
  const judged = createKeptReplies()

  async function chat(
    request: ChatRequest,
    deadline: number,
    signal: AbortSignal,
  ): Promise<HttpReply> {
    const { kind, path, headers, body, backend, turn, timeoutMs } = request
    const ownDeadline = performance.now() + timeoutMs
    const answer = await client.ask(
      { kind: 'policy', path, headers, body, backend, turn, aborts: 0 },
      Math.min(ownDeadline, deadline),
      signal,
    )
    if (answer.kind === 'failure') {
      const late = answer.outcome === 'timeout' && ownDeadline < deadline
      return unanswered(late ? `${kind}.timeout_s ran out (${timeoutMs / 1000} s)` : answer.reason)
    }
    return { status: answer.status, headers: answer.headers, body: answer.body }
  }

  return {
    async ask(request, deadline, signal) {
      switch (request.kind) {
        case 'user':
          return chat(request, deadline, signal)
        case 'judge': {
          const kept = judged.get(request)
          if (kept) return { ...kept, headers: { ...kept.headers, [KEPT_REPLY]: '1' } }
          const reply = await chat(request, deadline, signal)
          if (reply.status === 200) judged.set(request, reply)
          return reply
        }
        case 'grade':
          return graders.grade(request.grader, request.body, deadline, signal)
        case 'reward':
          return askRewardModel(rewardModels, request, deadline, signal)
      }
    },
  }
}

/** A reply that nobody gave. */
function unanswered(reason: string): HttpReply {
  return { status: 0, headers: {}, body: new TextEncoder().encode(reason) }
}
