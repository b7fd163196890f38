// What is checked by a canary of its own: every combination of those who have a hand in a reward.
import { expect, test } from 'vitest'
import type { AskPlan } from '../../../rollout/asking/asking.ts'
import type { ChatPlan } from '../../../rollout/asking/chat.ts'
import { combinationOf } from './admission.ts'

const chat = (model: string): ChatPlan => ({
  backend: 'others',
  model,
  sampling: { temperature: 0, top_p: 1, max_tokens: 1 },
  attempts: 1,
  timeoutMs: 1,
})
const reward = (url: string) => ({ url, timeoutMs: 1, retries: 0, budgetMs: 1 })

function combination(
  { contractLabel = 'c@1#a', environment = 'office', graders = 'g', backend = 'main' } = {},
  asked: AskPlan = {},
): string {
  return combinationOf(
    { contractLabel, policy: { backend } as never, asked },
    { task: { id: 't', environment, spec: {} }, graders },
  )
}

test('contract, environment, graders, backend, judge, user and reward model make a combination', () => {
  const combinations = [
    combination(),
    combination({ contractLabel: 'c@1#b' }),
    combination({ environment: 'arithmetic' }),
    combination({ graders: 'h' }),
    combination({ backend: 'other' }),
    combination({}, { judge: chat('a') }),
    combination({}, { judge: chat('b') }),
    combination({}, { user: chat('a') }),
    combination({}, { reward: reward('http://rm/1') }),
    combination({}, { reward: reward('http://rm/2') }),
  ]
  expect(new Set(combinations).size).toBe(combinations.length)
  expect(combination()).toBe(combination())
})
