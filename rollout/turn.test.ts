// The turn: what an episode comes to, on any thread, in any order, and that its tape holds what was sampled.
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { arithmetic } from '../envs/arithmetic/arithmetic.ts'
import type { Environment } from '../envs/environment.ts'
import type { SealedEpisode } from '../protocol/sealed.ts'
import type { ChatModel } from './chat/chat-model.ts'
import { createChatModel } from './chat/qwen-chat-model.ts'
import { qwen3Files } from './chat/qwen3.testkit.ts'
import type { Engine, EpisodePlan } from './episode.ts'
import type { HttpReply } from './request.ts'
import { policyRequest, type Speaker, scriptedPolicy } from './scripted-policy.testkit.ts'
import { bent, call, crossed, plan, playEpisode, read, SPEC, says } from './turn.testkit.ts'
import { advance, begin, conclude, type TurnResult } from './turn.ts'

let model: ChatModel
let engine: Engine
beforeAll(() => {
  model = createChatModel(qwen3Files())
  engine = { environment: () => arithmetic as Environment, chatModel: () => model }
}, 60_000)

const play = (episode: EpisodePlan, speak: Speaker, change?: (reply: HttpReply) => HttpReply) =>
  playEpisode(episode, engine, model, speak, change)

describe.each(['chat', 'tokens'] as const)('in mode %s', (mode) => {
  test('a right answer after a call is ok with reward 1, on one unbroken tape', () => {
    const { header, samples, trajectory } = play(
      plan({}, mode),
      says(call('6 * 7'), 'There are 42 boxes.'),
    )
    expect(header).toMatchObject({
      outcome: 'ok',
      reason: null,
      reward: 1,
      rewards: { score: 1 },
      drift: {},
    })
    expect(samples).toHaveLength(1)
    expect(trajectory.turns[0].observations).toMatchObject([{ content: '42', is_error: false }])
    const [sample] = samples
    const sampled = sample?.ids.filter((_, k) => sample.mask[k] === 1)
    expect(sampled).toEqual([
      ...model.encode(call('6 * 7')),
      151645,
      ...model.encode('There are 42 boxes.'),
      151645,
    ])
    expect(header.turns.map(({ start, end }) => sample?.ids.slice(start, end))).toEqual([
      [...model.encode(call('6 * 7')), 151645],
      [...model.encode('There are 42 boxes.'), 151645],
    ])
    for (const [k, logprob] of sample?.logprobs.entries() ?? [])
      if (sample?.mask[k] === 0) expect(logprob).toBe(0)
  })

  test('a wrong answer is ok with reward 0, which is a real zero', () => {
    const { header } = play(plan({}, mode), says('I guess 41.'))
    expect(header).toMatchObject({ outcome: 'ok', reward: 0 })
  })

  test('between a sampled end of turn and the next turn stand the ids that the template writes', () => {
    const { samples } = play(plan({}, mode), says(call('6 * 7'), 'There are 42 boxes.'))
    const [sample] = samples
    const end = sample?.mask.indexOf(0, sample.mask.indexOf(1)) ?? 0
    const next = sample?.mask.indexOf(1, end) ?? 0
    // \n <|im_start|> user \n <tool_response> \n 42 \n </tool_response> <|im_end|> \n <|im_start|> assistant \n
    expect(sample?.ids.slice(end, next)).toEqual([
      198, 151644, 872, 198, 151665, 198, 19, 17, 198, 151666, 151645, 198, 151644, 77091, 198,
    ])
  })
})

describe('a refused call', () => {
  test('is answered with its code, costs a turn, and the episode goes on', () => {
    const { header, trajectory } = play(
      plan(),
      says(
        '<tool_call>\n{"name": "calculator", "arguments": {"expression": "6 * 7"}\n</tool_call>',
        call('6 * 7'),
        '42',
      ),
    )
    expect(header).toMatchObject({ outcome: 'ok', reward: 1, parse_errors: { INVALID_JSON: 1 } })
    expect(trajectory.turns[0].calls).toEqual([])
    const [told] = trajectory.turns[0].observations
    expect(told.is_error).toBe(true)
    expect(JSON.parse(told.content).error.code).toBe('INVALID_JSON')
  })

  test('does not keep a good call beside it from running', () => {
    const { trajectory } = play(
      plan(),
      says(`<tool_call>\n[1]\n</tool_call>\n${call('40 + 2')}`, '42'),
    )
    expect(trajectory.turns[0].observations).toMatchObject([{ is_error: true }, { content: '42' }])
    expect(trajectory.turns[0].calls).toHaveLength(1)
  })
})

describe('limits', () => {
  test('the last turn that the limit allows is graded as it stands: ok_truncated', () => {
    const { header, requests } = play(
      plan({ limits: { maxTurns: 2, maxTokens: 1000 } }),
      says(call('6 * 7')),
    )
    expect(header).toMatchObject({ outcome: 'ok_truncated', reward: 0 })
    expect(header.reason).toContain('max_turns')
    expect([requests, header.turns.length]).toEqual([2, 2])
  })

  test('a completion that was cut ends the episode, and the cut call does not run', () => {
    const { header, trajectory } = play(plan(), () => ({
      text: `${call('1 + 1')}\n<tool_call>\n{"name": "calculator", "argum`,
      finish: 'length',
    }))
    expect(header).toMatchObject({
      outcome: 'ok_truncated',
      reward: 0,
      parse_errors: { TRUNCATED_CALL: 1 },
    })
    expect(trajectory.turns[0].calls).toHaveLength(1)
  })

  /** Ids of a text and of the end of turn behind it. */
  const length = (text: string) => model.encode(text).length + 1
  const right = 'There are 42 boxes.'

  // No request asks for more than is left of the episode's tokens, so that an answer fits in them or is cut.
  test('a right final answer that uses up the token limit is ok and keeps its reward', () => {
    const limits = { maxTurns: 6, maxTokens: length(call('6 * 7')) + length(right) }
    const { header } = play(plan({ limits }), says(call('6 * 7'), right))
    expect(header).toMatchObject({ outcome: 'ok', reward: 1 })
  })

  test('a final answer that is cut by the token limit is graded as it stands: ok_truncated', () => {
    const limits = { maxTurns: 6, maxTokens: length(right) - 1 }
    const { header } = play(plan({ limits }), () => ({ text: right, finish: 'length' }))
    expect(header.outcome).toBe('ok_truncated')
    expect(header.reason).toContain('max_tokens')
  })

  test('the token limit ends the episode before the next request', () => {
    const { header, requests } = play(
      plan({ limits: { maxTurns: 6, maxTokens: length(call('6 * 7')) } }),
      says(call('6 * 7')),
    )
    expect(header.outcome).toBe('ok_truncated')
    expect(header.reason).toContain('max_tokens')
    expect(requests).toBe(1)
  })

  test.each(['chat', 'tokens'] as const)(
    'a request in mode %s asks for the smaller of a turn’s tokens and those left of the episode',
    (mode) => {
      const asked: number[] = []
      const first = length(call('6 * 7'))
      const policy = scriptedPolicy(model, says(call('6 * 7'), right))
      const limits = { maxTurns: 6, maxTokens: 64 + first - 1 }
      let result: TurnResult = begin(plan({ limits }, mode), engine)
      while (result.kind === 'request') {
        const body = JSON.parse(new TextDecoder().decode(result.request.body))
        asked.push(body.max_tokens ?? body.sampling_params.max_new_tokens)
        result = advance(result.state, policy(result.request), engine)
      }
      expect(asked).toEqual([64, 63])
    },
  )

  test('a backend that samples more than was left of the episode breaks the contract', () => {
    const limits = { maxTurns: 6, maxTokens: length(call('6 * 7')) + 2 }
    const { header } = play(plan({ limits }), says(call('6 * 7'), right))
    expect(header).toMatchObject({ outcome: 'contract_violation', reward: null })
    expect(header.reason).toContain('at most 2')
  })

  test('tokens that were dropped with aborts count: a backend that aborts for ever is stopped', () => {
    const aborted = { text: 'one two three', finish: 'abort' as const }
    const tokens = model.encode(aborted.text).length
    const limits = { maxTurns: 6, maxTokens: 3 * tokens }
    const { header, requests, trajectory } = play(plan({ limits }), () => aborted)
    expect(header).toMatchObject({ outcome: 'ok_truncated', completion_tokens: 3 * tokens })
    expect(header.reason).toContain('max_tokens')
    expect([requests, trajectory.dropped_tokens]).toEqual([3, 3 * tokens])
  })
})

describe('an aborted completion', () => {
  const whole = says(call('6 * 7'), 'There are 42 boxes.')
  /** Breaks each turn off after some ids, once. */
  const broken = (mode: 'chat' | 'tokens') => {
    const policy = scriptedPolicy(model, whole)
    let result: TurnResult = begin(plan({}, mode), engine)
    for (let requests = 0; result.kind === 'request'; requests++) {
      const { state } = result
      const request = policyRequest(result.request)
      const reply = policy(request)
      const body = JSON.parse(new TextDecoder().decode(reply.body))
      if (mode === 'tokens') {
        const sent = JSON.parse(new TextDecoder().decode(request.body))
        const partial = request.aborts > 0 ? (state.pending.partial?.ids.length ?? 0) : 0
        // The simulated engine goes on where the prompt ends.
        const rest = {
          ids: body.output_ids.slice(partial),
          pairs: body.meta_info.output_token_logprobs.slice(partial),
        }
        const cut = request.aborts === 0 ? 4 : rest.ids.length
        body.output_ids = rest.ids.slice(0, cut)
        body.meta_info.output_token_logprobs = rest.pairs.slice(0, cut)
        body.meta_info.completion_tokens = cut
        body.meta_info.prompt_tokens = sent.input_ids.length
        body.meta_info.finish_reason = { type: request.aborts === 0 ? 'abort' : 'stop' }
        if (request.aborts > 0) expect(sent.sampling_params.max_new_tokens).toBe(64 - 4)
      } else if (request.aborts === 0) {
        const [choice] = body.choices
        choice.token_ids = choice.token_ids.slice(0, 4)
        choice.logprobs.content = choice.logprobs.content.slice(0, 4)
        choice.finish_reason = 'abort'
        body.usage.completion_tokens = 4
      }
      const bytes = new TextEncoder().encode(JSON.stringify(body))
      result = advance(crossed(state), { ...reply, body: bytes }, engine)
      expect(requests).toBeLessThan(8)
    }
    return read(result.sealed)
  }

  test('goes on from its tokens in tokens mode: the tape equals the one without aborts', () => {
    const calm = play(plan({}, 'tokens'), whole)
    const { header, samples } = broken('tokens')
    expect(header).toMatchObject({ outcome: 'ok', reward: 1 })
    expect(samples.map(({ ids, mask }) => ({ ids, mask }))).toEqual(
      calm.samples.map(({ ids, mask }) => ({ ids, mask })),
    )
  })

  test('is asked again in chat mode: the tape holds no token of it, and the dropped ones are counted', () => {
    const calm = play(plan({}, 'chat'), whole)
    const { header, samples, trajectory } = broken('chat')
    expect(samples).toEqual(calm.samples)
    expect(trajectory.dropped_tokens).toBe(8)
    expect(header.completion_tokens).toBe(calm.header.completion_tokens + 8)
  })
})

/** The parts of a chat reply that the faults bend. */
interface WireBody {
  prompt_token_ids: number[]
  choices: {
    token_ids?: number[]
    finish_reason: string | null
    logprobs: { content: unknown[] }
  }[]
  usage: { prompt_tokens: number; completion_tokens: number }
}

describe('a fault', () => {
  test.each([
    [
      'no token ids',
      (body: WireBody) => delete body.choices[0]!.token_ids,
      'contract_violation',
      'token_ids',
    ],
    [
      'log-probabilities one short',
      (body: WireBody) => body.choices[0]!.logprobs.content.pop(),
      'contract_violation',
      'logprobs',
    ],
    [
      'empty choices',
      (body: WireBody) => {
        body.choices = []
      },
      'contract_violation',
      'choices',
    ],
    [
      'no sampled token',
      (body: WireBody) => {
        body.choices[0]!.token_ids = []
        body.choices[0]!.logprobs.content = []
        body.usage.completion_tokens = 0
      },
      'contract_violation',
      'token_ids',
    ],
    [
      // A model has more embeddings than its tokenizer has ids: Qwen3's 151,936 against 151,669.
      'an id that the tokenizer lacks',
      (body: WireBody) => {
        body.choices[0]!.token_ids![0] = 151_669
      },
      'contract_violation',
      'token_ids',
    ],
    [
      'usage that disagrees',
      (body: WireBody) => {
        body.usage.completion_tokens += 3
      },
      'contract_violation',
      'usage',
    ],
    [
      'no finish reason',
      (body: WireBody) => {
        body.choices[0]!.finish_reason = null
      },
      'infra_backend',
      'finish_reason',
    ],
  ])('%s ends the episode without a reward, naming the field', (_, change, outcome, field) => {
    const { header, samples } = play(plan(), says('42'), bent(change))
    expect(header).toMatchObject({ outcome, reward: null, rewards: null })
    expect(header.reason).toContain(field)
    expect(samples).toEqual([])
  })

  test('a prompt that lacks a tool is refused by its name', () => {
    const { header } = play(
      plan(),
      says('42'),
      bent((body: WireBody) => {
        const bare = model.render([{ role: 'user', content: SPEC.request }], [], {
          addGenerationPrompt: true,
          kwargs: {},
        })
        body.prompt_token_ids = [...model.encode(bare)]
        body.usage.prompt_tokens = body.prompt_token_ids.length
      }),
    )
    expect(header).toMatchObject({ outcome: 'contract_violation', reward: null })
    expect(header.reason).toContain('calculator')
  })

  test('a grader that writes what the contract lacks is a contract violation that names the field', () => {
    const environment = {
      ...arithmetic,
      grade: () => ({ status: 'scored', rewards: { reward: 1 }, evidence: {} }),
    }
    const other: Engine = { ...engine, environment: () => environment as unknown as Environment }
    const asked = begin(plan(), other)
    if (asked.kind !== 'request') throw new Error('expected a request')
    const ended = advance(asked.state, scriptedPolicy(model, says('42'))(asked.request), other)
    if (ended.kind !== 'end') throw new Error('expected the end')
    expect(ended.sealed.header).toMatchObject({ outcome: 'contract_violation', reward: null })
    expect(ended.sealed.header.reason).toContain('reward')
  })

  test.each(['reset', 'open', 'tools', 'step', 'reply', 'anchor'] as const)(
    'an environment whose %s throws is infra_env, and one whose grade throws is verifier_error',
    (method) => {
      const thrower = (name: string): Engine => ({
        ...engine,
        environment: () =>
          ({
            ...arithmetic,
            [name]: () => {
              throw new Error('boom')
            },
          }) as unknown as Environment,
      })
      for (const [name, outcome] of [
        [method, 'infra_env'],
        ['grade', 'verifier_error'],
      ] as const) {
        const policy = scriptedPolicy(model, says(call('6 * 7'), '42'))
        let result = begin(plan(), thrower(name))
        while (result.kind === 'request')
          result = advance(result.state, policy(result.request), thrower(name))
        expect(result.sealed.header).toMatchObject({ outcome, reward: null })
        expect(result.sealed.header.reason).toBe(`arithmetic.${name} threw: boom`)
      }
    },
  )

  test('an episode that is concluded from outside keeps its trajectory and has no reward', () => {
    const asked = begin(plan(), engine)
    if (asked.kind !== 'request') throw new Error('expected a request')
    const ended = conclude(asked.state, 'timeout', 'turn_timeout_s ran out', engine)
    if (ended.kind !== 'end') throw new Error('expected the end')
    const { header, trajectory } = read(ended.sealed)
    expect(header).toMatchObject({
      outcome: 'timeout',
      reward: null,
      reason: 'turn_timeout_s ran out',
    })
    expect(trajectory.messages).toHaveLength(2)
  })
})

test('any order of replies, over any border of threads, gives byte-identical sealed episodes', () => {
  // The policy's words depend on the request's seed alone: some call twice, some are malformed, some are wrong.
  const speak: Speaker = (turn, seed) => {
    const lines = [
      call('6 * 7'),
      call('40 + 2'),
      'There are 42.',
      'It is 7.',
      '<tool_call>{"name"</tool_call>',
    ]
    return { text: turn >= 4 ? 'It is 42.' : (lines[seed % lines.length] as string) }
  }
  const plans = Array.from({ length: 8 }, (_, index) =>
    plan({ episode: `b.g0.e${index}`, index }, index % 2 === 0 ? 'chat' : 'tokens'),
  )
  const alone = plans.map((one) => play(one, speak))
  fc.assert(
    fc.property(fc.infiniteStream(fc.nat()), (dice) => {
      const policy = scriptedPolicy(model, speak)
      const running = plans.map((one, index) => ({ index, result: begin(one, engine) }))
      const sealed: SealedEpisode[] = []
      while (running.length > 0) {
        const at = (dice.next().value ?? 0) % running.length
        const { index, result } = running[at] as (typeof running)[number]
        if (result.kind === 'end') {
          sealed[index] = result.sealed
          running.splice(at, 1)
        } else {
          const state = (dice.next().value ?? 0) % 2 === 0 ? crossed(result.state) : result.state
          running[at] = { index, result: advance(state, policy(result.request), engine) }
        }
      }
      for (const [index, { header, blob }] of sealed.entries()) {
        expect(Buffer.from(blob).equals(Buffer.from(alone[index]?.blob ?? []))).toBe(true)
        expect(header).toEqual(alone[index]?.header)
      }
    }),
    { numRuns: 10 },
  )
}, 60_000)
