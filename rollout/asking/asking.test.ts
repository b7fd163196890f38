// Asks within an episode: a user played by a model leaves the same tape as one that speaks by itself; journals play again.
import { beforeAll, describe, expect, test } from 'vitest'
import type { ChatModel } from '../chat/chat-model.ts'
import { createChatModel } from '../chat/qwen-chat-model.ts'
import { qwen3Files } from '../chat/qwen3.testkit.ts'
import type { EpisodePlan } from '../episode.ts'
import type { HttpReply } from '../request.ts'
import { scriptedPolicy } from '../scripted-policy.testkit.ts'
import { crossed, engineOf, plan, read, says } from '../turn.testkit.ts'
import { advance, begin, type TurnResult } from '../turn.ts'

let model: ChatModel
beforeAll(() => {
  model = createChatModel(qwen3Files())
}, 60_000)

const WORDS = 'The blue ones, please.'
const sampling = { temperature: 0.5, top_p: 1, max_tokens: 32 }
const user = { backend: 'u', model: 'u', sampling, attempts: 2, timeoutMs: 1000 }

const reply = (status: number, body: unknown): HttpReply => ({
  status,
  headers: {},
  body: new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body)),
})
const chatReply = (content: string, finish_reason = 'stop') =>
  reply(200, {
    choices: [{ message: { role: 'assistant', content }, finish_reason }],
    usage: { prompt_tokens: 7, completion_tokens: 5 },
  })

/** Answers the first message, by itself or after asking, and ends at the second. */
const world = (asks: boolean) => ({
  reply(state: unknown, _message: string, turn: number, said?: string) {
    if (turn > 0) return { state, end: 'final' }
    if (asks && said === undefined)
      return { state, ask: { kind: 'user', messages: [{ role: 'system', content: 'play' }] } }
    return { state, say: WORDS }
  },
})

function play(episode: EpisodePlan, asks: boolean, replies: HttpReply[]) {
  const engine = engineOf(model, world(asks))
  const policy = scriptedPolicy(model, says('Which ones?', 'There are 42 boxes.'))
  const journal: HttpReply[] = []
  let result: TurnResult = begin(episode, engine)
  while (result.kind === 'request') {
    const next = result.request.kind === 'policy' ? policy(result.request) : replies.shift()
    if (!next) throw new Error('asked more often than was answered')
    journal.push(next)
    result = advance(crossed(result.state), next, engine)
  }
  return { ...read(result.sealed), journal, engine }
}

describe.each(['chat', 'tokens'] as const)('in mode %s', (mode) => {
  test('a user played by a model leaves the same tape as one that speaks by itself', () => {
    const alone = play(plan({}, mode), false, [])
    const asked = play(plan({ asked: { user } }, mode), true, [chatReply(WORDS)])
    expect(asked.samples).toEqual(alone.samples)
    expect(asked.trajectory.messages).toEqual(alone.trajectory.messages)
    expect(asked.header).toMatchObject({
      outcome: 'ok',
      asked: { user: { requests: 1, prompt_tokens: 7, completion_tokens: 5 } },
      completion_tokens: alone.header.completion_tokens,
    })
    expect(asked.trajectory.asked).toEqual({ user: { model: 'u', sampling } })
  })

  test('a journal with replies of several kinds plays again to the same bytes', () => {
    const replies = [reply(503, 'busy'), chatReply(WORDS)]
    const { journal, blob, engine } = play(plan({ asked: { user } }, mode), true, replies)
    let again: TurnResult = begin(plan({ asked: { user } }, mode), engine)
    for (const kept of journal) {
      if (again.kind === 'end') throw new Error('it ended before its journal did')
      again = advance(again.state, kept, engine)
    }
    if (again.kind !== 'end') throw new Error('its journal ended before it did')
    expect(Buffer.from(again.sealed.blob).equals(blob)).toBe(true)
  })
})

test.each([
  ['nobody answers', reply(0, 'no route'), /user: no route/],
  ['the answer is cut', chatReply('The bl', 'length'), /finish_reason length/],
  ['the answer is empty', chatReply('  '), /empty/],
  ['the answer is no chat reply', reply(200, { text: 'x' }), /choices/],
])('where %s, twice, the episode ends as infra_env', (_, bad, reason) => {
  const { header } = play(plan({ asked: { user } }), true, [bad, bad])
  expect(header).toMatchObject({ outcome: 'infra_env', reward: null })
  expect(header.reason).toMatch(reason)
})

test('a user that nobody plays is told, and no one is asked', () => {
  const { header } = play(plan(), true, [])
  expect(header).toMatchObject({ outcome: 'infra_env', asked: {} })
  expect(header.reason).toContain('no model plays the user')
})

test('a grade that asks for ever the same, or ever more, is the verifier’s error', () => {
  const ask = (id: string) => ({ kind: 'judge', id, rubric: 'r', transcript: [] })
  for (const [grade, reason] of [
    [() => ({ status: 'asks', asks: [ask('one')] }), /asked again/],
    [
      (_: unknown, answers: object) => ({
        status: 'asks',
        asks: [ask(`n${Object.keys(answers).length}`)],
      }),
      /may ask 256 times/,
    ],
  ] as const) {
    const engine = engineOf(model, { grade })
    const policy = scriptedPolicy(model, says('42'))
    let result: TurnResult = begin(plan(), engine)
    while (result.kind === 'request') result = advance(result.state, policy(result.request), engine)
    expect(result.sealed.header).toMatchObject({ outcome: 'verifier_error', reward: null })
    expect(result.sealed.header.reason).toMatch(reason)
  }
})
