// What is on the tape is what was sampled, and what stands between is what the template writes: public reports, replayed.
import { beforeAll, describe, expect, it, test } from 'vitest'
import type { ChatModel } from './chat/chat-model.ts'
import { createChatModel } from './chat/qwen-chat-model.ts'
import { qwen3Files } from './chat/qwen3.testkit.ts'
import type { EpisodePlan } from './episode.ts'
import type { HttpReply } from './request.ts'
import { bent, call, engineOf, plan, playEpisode, says } from './turn.testkit.ts'

let model: ChatModel
beforeAll(() => {
  model = createChatModel(qwen3Files())
}, 60_000)

const MODES = ['chat', 'tokens'] as const
const END_OF_TEXT = 151643
const IM_END = 151645

/** The calculator says the texts in order, the last one again for ever. */
const telling = (...texts: string[]) => ({
  step: (state: { calls: unknown[] }) => ({
    state: { ...state, calls: [...state.calls, 1] },
    observation: {
      content: texts[Math.min(state.calls.length, texts.length - 1)],
      is_error: false,
    },
    audit: { tool: 'calculator', ok: true },
  }),
  anchor: (state: { calls: unknown[] }) => `${state.calls.length}`,
  reset: () => ({ calls: [] }),
  open: () => [{ role: 'user', content: 'How many boxes are left? Use the calculator.' }],
  tools: () => [
    {
      type: 'function',
      function: { name: 'calculator', description: 'Computes.', parameters: { type: 'object' } },
    },
  ],
  hear: (state: unknown) => state,
  reply: (state: unknown) => ({ state, end: 'final' }),
  grade: () => ({ status: 'scored', rewards: { score: 1 }, evidence: {} }),
})

interface Played {
  environment?: object
  change?: (reply: HttpReply) => HttpReply
}

const play = (episode: EpisodePlan, said: string[], { environment = {}, change }: Played = {}) =>
  playEpisode(episode, engineOf(model, environment), model, says(...said), change)

/** The arrays of every sample have one length, and log-probabilities stand exactly where the mask does. */
function expectWhole({ samples, header }: ReturnType<typeof playEpisode>) {
  for (const { ids, mask, logprobs, versions } of samples) {
    expect([mask.length, logprobs.length]).toEqual([ids.length, ids.length])
    for (const [at, sampled] of mask.entries()) if (sampled === 0) expect(logprobs[at]).toBe(0)
    const covered = versions.reduce((sum, { start, end }) => sum + end - start, 0)
    expect(covered).toBe(mask.filter((sampled) => sampled === 1).length)
  }
  for (const { sample, start, end } of header.turns)
    expect(samples[sample ?? -1]?.mask.slice(start, end).every((one) => one === 1)).toBe(true)
}

it('T01: between a sampled end of turn and the next turn stand the separator and the tool turn, once', () => {
  const lines = [call('1 + 1'), call('1 + 2'), call('1 + 3'), 'There are 42 boxes.']
  for (const mode of MODES) {
    const environment = telling('42 boxes', '7', '8')
    const played = play(plan({}, mode), lines, { environment })
    const { header, samples } = played
    expect(header).toMatchObject({ outcome: 'ok', drift: {} })
    expect([samples.length, header.turns.length]).toEqual([1, 4])
    const [first, second] = header.turns
    expect(samples[0]?.ids[(first?.end ?? 0) - 1]).toBe(IM_END)
    expect(samples[0]?.ids.slice(first?.end, second?.start)).toEqual([
      198, 151644, 872, 198, 151665, 198, 19, 17, 14697, 198, 151666, 151645, 198, 151644, 77091,
      198,
    ])
    expect(samples[0]?.mask.slice(first?.end, second?.start)).toEqual(new Array(16).fill(0))
    expectWhole(played)
  }
})

/** The ids of a chat reply with the single closing tag spelled as `</`, `tool`, `_call`, `>`. */
const spelled = bent<{
  choices: { token_ids: number[]; logprobs: { content: unknown[] } }[]
  usage: { completion_tokens: number }
}>(({ choices: [choice], usage }) => {
  if (!choice) return
  const at = choice.token_ids.indexOf(151658)
  if (at < 0) return
  choice.token_ids.splice(at, 1, 522, 14172, 13429, 29)
  choice.logprobs.content.splice(at, 1, ...[1, 2, 3, 4].map((k) => ({ token: 'x', logprob: -k })))
  usage.completion_tokens += 3
})

it('T03: a prompt that spells the turn before it with fewer ids begins a new sample', () => {
  const played = play(plan(), [call('6 * 7'), 'There are 42 boxes.'], { change: spelled })
  const { header, samples } = played
  expect(header).toMatchObject({ outcome: 'ok', reward: 1, drift: { template: 1 } })
  const [first, second] = samples
  expect(samples).toHaveLength(2)
  // Sample 1 is the prompt and the turn as it was sampled; sample 2 begins with the whole prompt of turn 2.
  expect(first?.ids.slice(-5)).toEqual([522, 14172, 13429, 29, IM_END])
  expect(first?.ids.slice(0, first.prompt_length)).toEqual(
    second?.ids.slice(0, first?.prompt_length),
  )
  expect(second?.ids.slice(0, second.prompt_length)).toContain(151658)
  expect(header.turns.map(({ sample }) => sample)).toEqual([0, 1])
  expectWhole(played)
})

describe('a chain is cut with its cause in the header', () => {
  const asking = {
    ...telling('7'),
    reply: (state: { calls: unknown[]; asked?: boolean }) =>
      state.asked ? { state, end: 'final' } : { state: { ...state, asked: true }, say: 'And now?' },
  }

  it('T06: thinking_stripped where a user reply makes the template drop the reasoning before it', () => {
    const policy = { ...plan().policy, thinking: 'auto' as const }
    const lines = ['<think>\nweigh it\n</think>\n\nBlue.', '<think>\nagain\n</think>\n\nGreen.']
    const played = play(plan({ policy }), lines, { environment: asking })
    expect(played.header).toMatchObject({ outcome: 'ok', drift: { thinking_stripped: 1 } })
    expect(played.samples).toHaveLength(2)
    expect(
      model.decode(played.samples[1]?.ids.slice(0, played.samples[1].prompt_length) ?? []),
    ).not.toContain('weigh it')
    expectWhole(played)
    // In tokens mode nothing is rendered again, and the reasoning stays where it was sampled.
    const tokens = plan({}, 'tokens')
    const kept = play({ ...tokens, policy: { ...tokens.policy, thinking: 'auto' } }, lines, {
      environment: asking,
    })
    expect(kept.header.drift).toEqual({})
    expect(kept.samples).toHaveLength(1)
  })
})

it('T07: two calls in the last turn: one turn that covers the sampled ids, and nothing unsampled behind it', () => {
  const both = `${call('1 + 1')}\n${call('2 + 2')}`
  for (const mode of MODES) {
    const played = play(plan({ limits: { maxTurns: 1, maxTokens: 1000 } }, mode), [both])
    const { header, samples, trajectory } = played
    expect(header.outcome).toBe('ok_truncated')
    expect(trajectory.turns[0].observations).toHaveLength(2)
    expect(header.turns).toHaveLength(1)
    const [turn] = header.turns
    expect(samples[0]?.ids.slice(turn?.start, turn?.end)).toEqual([...model.encode(both), IM_END])
    expect(samples[0]?.mask.indexOf(1)).toBe(turn?.start)
    expectWhole(played)
  }
})

test('two results of one turn share one user turn in the bridge', () => {
  const both = `${call('1 + 1')}\n${call('2 + 2')}`
  for (const mode of MODES) {
    const { header, samples } = play(plan({}, mode), [both, '42'])
    const [first, second] = header.turns
    const between = samples[0]?.ids.slice(first?.end, second?.start) ?? []
    expect(model.decode(between)).toBe(
      '\n<|im_start|>user\n<tool_response>\n2\n</tool_response>\n<tool_response>\n4\n</tool_response><|im_end|>\n<|im_start|>assistant\n',
    )
  }
})

it('T10: a response that the policy invents is its own text: sampled, trained, and no evidence', () => {
  const invented = `${call('3 + 4')}\n<tool_response>\n12\n</tool_response>\nSo there are 12.`
  for (const mode of MODES) {
    const played = play(plan({}, mode), [invented, 'There are 12.'])
    const { header, samples, trajectory } = played
    expect(header).toMatchObject({ outcome: 'ok', reward: 0, parse_flags: { TEXT_AFTER_CALL: 1 } })
    const [turn] = trajectory.turns
    expect(turn.content).toBe('<tool_response>\n12\n</tool_response>\nSo there are 12.')
    expect(turn.observations).toMatchObject([{ content: '7' }])
    expect(turn.audit).toHaveLength(1)
    const [first, second] = header.turns
    expect(samples[0]?.ids.slice(first?.start, first?.end)).toEqual([
      ...model.encode(invented),
      IM_END,
    ])
    expect(model.decode(samples[0]?.ids.slice(first?.end, second?.start) ?? [])).toContain(
      '<tool_response>\n7\n</tool_response>',
    )
    expectWhole(played)
  }
})

interface Generated {
  text: string
  output_ids: number[]
  meta_info: { output_token_logprobs: unknown[]; completion_tokens: number }
}

/** 151643 in the middle of the answer, which the text leaves out. */
const endOfTextInside = bent<Generated>((body) => {
  const at = 3
  if (!body.text.includes('tool_call')) return
  body.output_ids.splice(at, 0, END_OF_TEXT)
  body.meta_info.output_token_logprobs.splice(at, 0, [-2, END_OF_TEXT, null])
  body.meta_info.completion_tokens++
})

it('T11: a special id in the middle of an answer ends nothing, stays on the tape, and the text is told to differ', () => {
  const said = `I will compute it first. ${call('6 * 7')}`
  const played = play(plan({}, 'tokens'), [said, 'There are 42 boxes.'], {
    change: endOfTextInside,
  })
  const { header, samples, trajectory } = played
  expect(header).toMatchObject({ outcome: 'ok', reward: 1, text_mismatches: 1, drift: {} })
  expect(trajectory.turns.map((turn: { text_differs: boolean }) => turn.text_differs)).toEqual([
    true,
    false,
  ])
  expect(trajectory.turns[0].calls).toHaveLength(1)
  const ids = [...model.encode(said)]
  ids.splice(3, 0, END_OF_TEXT)
  const [first, second] = header.turns
  expect(samples[0]?.ids.slice(first?.start, first?.end)).toEqual([...ids, IM_END])
  // The bridge begins right behind the sampled end of turn.
  expect(samples[0]?.ids.slice(first?.end, (first?.end ?? 0) + 2)).toEqual([198, 151644])
  expect(samples[0]?.mask[second?.start ?? 0]).toBe(1)
  expectWhole(played)
})

describe('text of the backend beside the ids', () => {
  const textOf = (text: string) =>
    bent<Generated>((body) => {
      body.text = text
    })

  test.each([
    ['the same', '42 €', false],
    ['the end of turn spelled out', '42 €<|im_end|>', false],
    ['the last character held back', '42 ', true],
    ['a part of a character', '42 €\uFFFD', false],
    ['other white space', '42  €', true],
    ['nothing', '', true],
  ])('%s', (_, text, differs) => {
    const { header } = play(plan({}, 'tokens'), ['42 €'], { change: textOf(text) })
    expect(header).toMatchObject({ outcome: 'ok', text_mismatches: differs ? 1 : 0 })
  })
})

describe('version spans', () => {
  const spans = (meta: object) =>
    bent<{ meta_info: object }>((body) => {
      body.meta_info = { ...body.meta_info, ...meta }
    })
  const asking = (version: number | null) => {
    const tokens = plan({}, 'tokens')
    return { ...tokens, policy: { ...tokens.policy, version } }
  }

  test('that the engine tells of the ids are exact, and the oldest counts', () => {
    const length = model.encode('It is 42.').length + 1
    const weight_versions = [
      { version: '5', start: 0, end: 2 },
      { version: '6', start: 2, end: length },
    ]
    const { header, samples } = play(asking(4), ['It is 42.'], {
      change: spans({ weight_versions, weight_version: '6' }),
    })
    const start = header.turns[0]?.start ?? 0
    expect(samples[0]?.versions).toEqual([
      { version: 5, start, end: start + 2 },
      { version: 6, start: start + 2, end: start + length },
    ])
    expect(header).toMatchObject({ version_min: 5, version_max: 6 })
  })

  test.each([
    ['told of the whole reply', { weight_version: '6' }, 4, 6],
    ['that the trainer said it asks, where the engine tells none', { weight_version: null }, 4, 4],
  ])('%s are approximate', (_, meta, asked, version) => {
    const { header, samples } = play(asking(asked), ['It is 42.'], { change: spans(meta) })
    expect(samples[0]?.versions).toMatchObject([{ version, approximate: true }])
    expect(header).toMatchObject({ version_min: version, version_max: version })
  })

  test('of which nobody tells have none', () => {
    const change = spans({ weight_version: null })
    const { header, samples } = play(asking(null), ['It is 42.'], { change })
    expect(samples[0]?.versions).toMatchObject([{ version: null }])
    expect(samples[0]?.versions[0]).not.toHaveProperty('approximate')
    expect(header).toMatchObject({ version_min: null, version_max: null })
  })
})

test('an answer that is broken off behind its end of turn is whole: nothing is sampled after it', () => {
  const change = bent<{ meta_info: object }>((body) => {
    body.meta_info = { ...body.meta_info, finish_reason: { type: 'abort' } }
  })
  const { header, samples, requests } = play(plan({}, 'tokens'), ['There are 42.'], { change })
  expect(requests).toBe(1)
  expect(header).toMatchObject({ outcome: 'ok', reward: 1 })
  expect(samples[0]?.ids.slice(header.turns[0]?.start)).toEqual([
    ...model.encode('There are 42.'),
    IM_END,
  ])
})
