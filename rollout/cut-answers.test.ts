// An answer that its token limit cut is graded as it stands: a limit is no format fault, and an answer given is given.
import { beforeAll, expect, test } from 'vitest'
import type { ChatModel } from './chat/chat-model.ts'
import { createChatModel } from './chat/qwen-chat-model.ts'
import { qwen3Files } from './chat/qwen3.testkit.ts'
import type { EpisodePlan } from './episode.ts'
import type { Speaker } from './scripted-policy.testkit.ts'
import { bent, call, engineOf, plan, playEpisode, says } from './turn.testkit.ts'

let model: ChatModel
beforeAll(() => {
  model = createChatModel(qwen3Files())
}, 60_000)

const play = (episode: EpisodePlan, speak: Speaker) =>
  playEpisode(episode, engineOf(model), model, speak)
const thinking = plan({ policy: { ...plan().policy, thinking: 'auto' } })
const RIGHT = 'There are 42 boxes.'

/** The three places where the limit may fall, in both modes. */
const cut: Speaker = () => ({
  text: '<tool_call>\n{"name": "calculator", "arguments": {"expression": "6 *',
  finish: 'length',
})

test.each(['chat', 'tokens'] as const)(
  'B07: in mode %s a cut inside a call’s arguments is ok_truncated, and the call does not run',
  (mode) => {
    const { header, trajectory } = play(plan({}, mode), cut)
    expect(header).toMatchObject({
      outcome: 'ok_truncated',
      reward: 0,
      parse_errors: { TRUNCATED_CALL: 1 },
    })
    expect(trajectory.turns[0].calls).toEqual([])
  },
)

test('B07: all of the limit spent in reasoning is ok_truncated, with content null too', () => {
  const endless: Speaker = () => ({ text: '<think>\nLet me see. 6 times 7', finish: 'length' })
  const whole = play(thinking, endless)
  expect(whole.header).toMatchObject({
    outcome: 'ok_truncated',
    reward: 0,
    parse_errors: { REASONING_UNCLOSED: 1 },
  })
  interface Body {
    choices: { message: { content: string | null } }[]
  }
  const silent = playEpisode(
    thinking,
    engineOf(model),
    model,
    endless,
    bent<Body>((body) => {
      if (body.choices[0]) body.choices[0].message.content = null
    }),
  )
  const { outcome, reward, parse_errors } = whole.header
  expect(silent.header).toMatchObject({ outcome, reward, parse_errors })
})

test('B07: a right final answer that reaches the episode’s limit is ok with its real reward', () => {
  const length = (text: string) => model.encode(text).length + 1
  const limits = { maxTurns: 6, maxTokens: length(call('6 * 7')) + length(RIGHT) }
  const { header } = play(plan({ limits }), says(call('6 * 7'), RIGHT))
  expect(header).toMatchObject({ outcome: 'ok', reward: 1, completion_tokens: limits.maxTokens })
})
