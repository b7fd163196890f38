// What a refused call does to its episode, as the task declares it; and how codes, flags and leniencies are counted.
import { beforeAll, describe, expect, test } from 'vitest'
import type { ChatModel } from './chat/chat-model.ts'
import { createChatModel } from './chat/qwen-chat-model.ts'
import { qwen3Files } from './chat/qwen3.testkit.ts'
import type { EpisodePlan } from './episode.ts'
import type { Speaker } from './scripted-policy.testkit.ts'
import { call, engineOf, plan, playEpisode, says } from './turn.testkit.ts'

let model: ChatModel
beforeAll(() => {
  model = createChatModel(qwen3Files())
}, 60_000)

const play = (episode: EpisodePlan, speak: Speaker) =>
  playEpisode(episode, engineOf(model), model, speak)

const BROKEN =
  '<tool_call>\n{"name": "calculator", "arguments": {"expression": "6 * 7"}\n</tool_call>'
const CUT = `${call('1 + 1')}\n<tool_call>\n{"name": "calculator", "argum`

describe('a refused call', () => {
  test.each(['feedback', 'end', 'unscored'] as const)(
    'under %s does not keep the calls beside it from running',
    (onParseError) => {
      const { trajectory } = play(
        plan({ onParseError }),
        says(`${BROKEN}\n${call('40 + 2')}`, '42'),
      )
      const [turn] = trajectory.turns
      expect(turn.calls).toMatchObject([{ name: 'calculator' }])
      expect(turn.audit).toHaveLength(1)
      expect(turn.observations).toMatchObject([{ is_error: true }, { content: '42' }])
    },
  )

  test.each(['chat', 'tokens'] as const)(
    'under end the episode is over, graded as it stands (%s)',
    (mode) => {
      const { header, requests, trajectory, samples } = play(
        plan({ onParseError: 'end' }, mode),
        says(BROKEN, '42'),
      )
      expect(requests).toBe(1)
      expect(header).toMatchObject({ outcome: 'ok', reward: 0, parse_errors: { INVALID_JSON: 1 } })
      expect(trajectory.reason).toContain('INVALID_JSON')
      expect(samples).toHaveLength(1)
    },
  )

  test('under unscored the episode is parse_error, without grade and reward, its tokens kept', () => {
    const { header, trajectory, samples, requests } = play(
      plan({ onParseError: 'unscored' }),
      says(call('6 * 7'), BROKEN),
    )
    expect(requests).toBe(2)
    expect(header).toMatchObject({ outcome: 'parse_error', reward: null, rewards: null })
    expect(header.reason).toContain('INVALID_JSON')
    expect(trajectory.grade).toBeNull()
    expect(samples).toHaveLength(1)
  })

  // OPS 1.4, first match wins: parse_error, ok_truncated, ok.
  test.each([
    ['feedback', 'ok_truncated'],
    ['end', 'ok_truncated'],
    ['unscored', 'parse_error'],
  ] as const)('that the token limit cut is, under %s, %s', (onParseError, outcome) => {
    for (const maxTokens of [1000, model.encode(CUT).length]) {
      const { header, trajectory } = play(
        plan({ onParseError, limits: { maxTurns: 6, maxTokens } }),
        () => ({ text: CUT, finish: 'length' }),
      )
      expect(header).toMatchObject({ outcome, parse_errors: { TRUNCATED_CALL: 1 } })
      expect(trajectory.turns[0].calls).toHaveLength(1)
    }
  })

  test('text that holds no call to refuse is a message like any other, whatever the task declares', () => {
    for (const onParseError of ['feedback', 'end', 'unscored'] as const) {
      const { header } = play(plan({ onParseError }), says('It is 42. </tool_call>'))
      expect(header).toMatchObject({
        outcome: 'ok',
        reward: 1,
        parse_errors: { STRAY_CLOSE_TAG: 1 },
      })
    }
  })
})

describe('counts', () => {
  test('are of turns: two broken calls of one kind in a turn are one, in two turns two', () => {
    const { header } = play(plan(), says(`${BROKEN}\n${BROKEN}`, `${BROKEN}\nAnd so on.`, '42'))
    expect(header.parse_errors).toEqual({ INVALID_JSON: 2 })
    expect(header.parse_flags).toEqual({ TEXT_AFTER_CALL: 1 })
    expect(header.parse_leniencies).toEqual({})
  })

  test('a lenient reading that a batch asks for is counted where it made a difference', () => {
    const open = call('6 * 7').replace('\n</tool_call>', '')
    const policy = { ...plan().policy, leniencies: ['closeAtStop', 'json5'] as const }
    const { header, trajectory } = play(plan({ policy }), says(call('1 + 1'), open, '42'))
    expect(header).toMatchObject({ reward: 1, parse_errors: {} })
    expect(header.parse_leniencies).toEqual({ closeAtStop: 1 })
    expect(trajectory.turns.map(({ leniencies }: { leniencies: string[] }) => leniencies)).toEqual([
      [],
      ['closeAtStop'],
      [],
    ])
  })
})
