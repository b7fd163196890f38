// Whom a batch's episodes may ask beside their policy: judge and user as the settings say, the reward model as the batch does.
import type { BatchRequest } from '../../../protocol/batch.ts'
import { PaddockError } from '../../../protocol/errors.ts'
import type { AskPlan } from '../../../rollout/asking/asking.ts'
import type { ChatPlan } from '../../../rollout/asking/chat.ts'
import type { Config } from '../../config.ts'
import { createReach } from './reach.ts'

export type AskSettings = Pick<Config, 'judge' | 'user' | 'reward' | 'backends'>

/** Throws `invalid_request` for a user that no model plays, and for a reward model that may not be called. */
export function planAsks({ user, reward }: BatchRequest, settings: AskSettings): AskPlan {
  const plan: AskPlan = {}
  if (settings.judge) plan.judge = chatPlan(settings.judge, settings)
  if (user === 'model') {
    if (!settings.user)
      throw new PaddockError(
        'invalid_request',
        'no model is configured to play the user: name one under user: in paddock.yaml, or say "script"',
        { path: 'user' },
      )
    plan.user = chatPlan(settings.user, settings)
  }
  const http = reward.source?.http
  if (http) {
    createReach(settings.reward.allow, 'reward.allow').check(http.url, 'reward.source.http.url')
    const { url, retries } = http
    plan.reward = {
      url,
      retries,
      timeoutMs: http.timeout_s * 1000,
      budgetMs: http.budget_s * 1000,
    }
  }
  return plan
}

function chatPlan(
  { backend, model, sampling, attempts, timeout_s }: NonNullable<Config['judge']>,
  { backends }: AskSettings,
): ChatPlan {
  const own = model ?? backends[backend]?.model ?? ''
  return { backend, model: own, sampling, attempts, timeoutMs: timeout_s * 1000 }
}
