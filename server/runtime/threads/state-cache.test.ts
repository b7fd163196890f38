// The cache of states: an episode comes to the same bytes whether its states are remembered or read back.
import { deserialize } from 'node:v8'
import { describe, expect, test } from 'vitest'
import { arithmetic } from '../../../envs/arithmetic/arithmetic.ts'
import type { Environment } from '../../../envs/environment.ts'
import { createChatModel } from '../../../rollout/chat/qwen-chat-model.ts'
import { qwen3Files } from '../../../rollout/chat/qwen3.testkit.ts'
import type { Engine, EpisodePlan } from '../../../rollout/episode.ts'
import { scriptedPolicy } from '../../../rollout/scripted-policy.testkit.ts'
import { advance, begin, type TurnResult } from '../../../rollout/turn.ts'
import { createStateCache, type KeptState, type StateCache } from './state-cache.ts'

const model = createChatModel(qwen3Files())
const engine: Engine = { environment: () => arithmetic as Environment, chatModel: () => model }

const plan: EpisodePlan = {
  episode: 'b.g0.e0',
  batch: 'b',
  group: 'b.g0',
  groupIndex: 0,
  index: 0,
  attempt: 1,
  task: {
    id: 'arithmetic/sum',
    environment: 'arithmetic',
    spec: { id: 'sum', request: 'How many boxes are left? Use the calculator.', answer: '42' },
  },
  seed: 1,
  policy: {
    dialect: 'vllm',
    backend: 'main',
    model: 'm',
    mode: 'chat',
    toolFormat: 'hermes',
    thinking: 'none',
    leniencies: [],
    sampling: { temperature: 1, top_p: 1, max_tokens: 64 },
    version: null,
    seedBase: 'b',
    chatTemplateKwargs: {},
    controlTokens: 'refuse',
  },
  contract: arithmetic.contract,
  limits: { maxTurns: 6, maxTokens: 1000 },
  onParseError: 'feedback',
}

const LINES = [
  '<tool_call>\n{"name": "calculator", "arguments": {"expression": "6 * 7"}}\n</tool_call>',
  'I look again.</tool_call>\n<tool_call>\n{"name": "abacus", "arguments": {}}\n</tool_call>',
  'There are 42 boxes.',
]

function play(keep: StateCache, open: StateCache) {
  const policy = scriptedPolicy(model, (turn) => ({ text: LINES[turn] as string }))
  const crossed: unknown[] = []
  let result: TurnResult = begin(plan, engine)
  while (result.kind === 'request') {
    const kept: KeptState = keep.keep(result.state)
    crossed.push(deserialize(kept.bytes))
    result = advance(open.open(kept), policy(result.request), engine)
  }
  return { crossed, sealed: result.sealed }
}

describe('a state that is opened', () => {
  const state = () => {
    const first = begin(plan, engine)
    if (first.kind !== 'request') throw new Error('the episode has ended')
    return first.state
  }

  test('by the thread that made it is the object itself, once', () => {
    const cache = createStateCache(1)
    const made = state()
    const kept = cache.keep(made)
    expect(cache.open(kept)).toBe(made)
    expect(cache.open(kept)).not.toBe(made)
    expect(cache.open(kept)).toEqual(made)
  })

  test('by another thread is read from its bytes', () => {
    const kept = createStateCache(1).keep(state())
    expect(createStateCache(2).open(kept)).toEqual(state())
  })

  test('after newer ones took its room is read from its bytes', () => {
    const [older, newer] = [state(), state()]
    const size = createStateCache(1).keep(older).bytes.length
    const cache = createStateCache(1, size)
    const kept = [cache.keep(older), cache.keep(newer)] as const
    expect(cache.open(kept[0])).not.toBe(older)
    expect(cache.open(kept[0])).toEqual(older)
    expect(cache.open(kept[1])).toBe(newer)
  })
})

test('an episode comes to the same bytes on one thread and on threads that know none of its states', () => {
  const cache = createStateCache(1)
  const warm = play(cache, cache)
  const cold = play(createStateCache(1), createStateCache(2))
  expect(warm.sealed.header.outcome).toBe('ok')
  expect(warm.sealed.header.turns).toHaveLength(LINES.length)
  expect(cold.sealed).toEqual(warm.sealed)
  expect(cold.crossed).toEqual(warm.crossed)
})
