// The checks on evidence that no simulator gives: engines that mistake their seeds, are noisy, or are somebody else.
import { describe, expect, it } from 'vitest'
import type { Completion, ReplyFault } from '../../rollout/policy/dialect.ts'
import { judge } from './checks.ts'
import type { Evidence, Probe, SampleEpisode } from './evidence.ts'

/** Natural logarithms of probabilities 0.8 and 0.15 of a four-token distribution, and of the same at temperature 0.5. */
const RAW = [Math.log(0.8), Math.log(0.15)]
const PROCESSED = [Math.log(0.64 / 0.6638), Math.log(0.0225 / 0.6638)]

function said(ids: number[], logprobs: number[] = ids.map(() => -1)): Probe {
  const completion: Completion = {
    kind: 'completion',
    finish: 'stop',
    promptIds: new Int32Array([1]),
    ids: new Int32Array(ids),
    logprobs: new Float32Array(logprobs),
    content: ids.join(' '),
    usage: { promptTokens: 1, completionTokens: ids.length },
    version: 3,
    versions: [],
  }
  return { temperature: 1, seed: 1, strict: completion, loose: completion }
}

const EVIDENCE: Evidence = {
  subject: {
    ...{ backend: 'main', dialect: 'vllm', mode: 'chat', model: 'm', stream: false },
    ...{ firstPrompt: 'template', toolFormat: 'hermes', thinking: 'none' },
    ...{ logprobsMode: 'unknown', episodeTokens: 100, batchEpisodes: 256 },
    ...{ modelDir: false, weightInfo: false },
  },
  engine: { kind: null, release: null, models: ['m'], maxModelLen: 1000, weightVersion: null },
  endpoints: [
    {
      ...{ url: 'http://a', listens: true, loose: null, skewSeconds: 0 },
      answer: { kind: 'reply', status: 200, headers: {}, body: new Uint8Array() },
    },
  ],
  ...{
    warm: [said([1, 2]), said([1, 3])],
    cool: [said([1, 4], [-0.5, -0.5])],
    again: said([1, 2]),
  },
  ...{ greedy: said([1, 2]), toolTurns: [], reasoning: null, roundTrip: [], episodes: null },
  pack: { name: 'p', tasks: 1, refused: [] },
  contract: { label: 'c@1', reads: [], problem: null },
  ledger: { path: null, problem: null, freeBytes: 0, minFreeBytes: 0 },
}

const BROKEN: ReplyFault = {
  ...{ kind: 'contract_violation', field: 'finish_reason', problem: 'absent', message: 'no' },
}

/** Findings of the evidence that is healthy but for `some`. */
const codes = (some: Partial<Evidence>) =>
  judge({ ...EVIDENCE, ...some }).flatMap((result) =>
    result.status === 'finding' ? `${result.check}: ${result.code}` : [],
  )
const detail = (name: string, some: Partial<Evidence> = {}) =>
  judge({ ...EVIDENCE, ...some }).find(({ check }) => check === name)

describe('checks', () => {
  it('find nothing in healthy evidence', () => {
    expect(codes({})).toEqual([])
  })

  it('a seed that gives another completion the second time is ignored', () => {
    expect(codes({ again: said([1, 5]) })).toEqual(['seed: seed_ignored'])
  })

  it.each([
    ['the same', RAW, ['logprobs: raw_logprobs']],
    [
      'the same but for the noise of another batch',
      RAW.map((value) => value * 1.02),
      ['logprobs: raw_logprobs'],
    ],
    ['those of the distribution to the power of 1 / 0.5', PROCESSED, []],
  ])('B01: values at half the temperature that are %s', (_, cool, found) => {
    const warm = [said([7], RAW.slice(0, 1)), said([8], RAW.slice(1))]
    const some = {
      warm,
      again: said([7]),
      cool: [said([7], cool.slice(0, 1)), said([8], cool.slice(1))],
    }
    expect(codes(some)).toEqual(found)
  })

  it('says what is not known where the engine broke its replies, instead of a figure', () => {
    const mute: Probe = { temperature: 1, seed: 1, strict: BROKEN, loose: BROKEN }
    const lost = { task: 't', probe: mute, calls: null, thinks: null, missing: null }
    const toolTurns = [{ ...lost, promptTokens: null, bareTokens: null }]
    expect(detail('context', { toolTurns })).toEqual({
      ...{ check: 'context', status: 'not_checked' },
      detail:
        '1000 tokens hold the 100 that an episode may sample; how long a first prompt is was not told',
    })
    const short = { ...EVIDENCE.engine, maxModelLen: 99 }
    expect(detail('context', { toolTurns, engine: short })).toMatchObject({
      code: 'context_short',
      what: '99 tokens, but an episode may sample 100',
    })
    const broken = { warm: [mute, mute], cool: [mute], again: mute, greedy: mute }
    expect(detail('logprobs', broken)).toMatchObject({
      status: 'not_checked',
      detail: 'no reply with ids and log-probabilities at both temperatures',
    })
    const [one] = EVIDENCE.endpoints
    expect(detail('endpoint', { endpoints: [{ ...one!, loose: BROKEN }] })).toMatchObject({
      status: 'healthy',
      detail: 'http://a answers',
    })
  })

  it('says of how many answers the engine has parsed', () => {
    const eaten = { ...BROKEN, field: 'tool_calls', message: 'parsed' }
    const probe: Probe = { temperature: 1, seed: 1, strict: eaten, loose: eaten }
    const turn = { task: 't', probe, calls: null, thinks: null, missing: null }
    const toolTurns = [{ ...turn, promptTokens: null, bareTokens: null }]
    expect(detail('parsers', { toolTurns })).toMatchObject({
      code: 'tags_eaten',
      what: '1 of 3 answers: tool_calls: parsed',
    })
  })

  it('compares with temperature 0 only where that was answered', () => {
    const warm = [said([1, 2]), said([1, 2])]
    const same = 'both completions at temperature 1 are the same'
    expect(detail('temperature', { warm, greedy: null })).toMatchObject({ what: same })
    expect(detail('temperature', { warm, greedy: said([1, 2]) })).toMatchObject({
      what: `${same}, and so is that at temperature 0`,
    })
  })

  it('says why no episode was played', () => {
    expect(detail('cost')).toMatchObject({ detail: 'not played: first mend what was found' })
    const none = { episodes: { played: [], wallSeconds: 0 } }
    for (const name of ['tape', 'cost'])
      expect(detail(name, none)).toMatchObject({ detail: 'not played: no episode was asked for' })
  })

  it('tokens that were certain tell no mode', () => {
    const some = {
      warm: [said([1, 2], [-1e-6, -1]), said([1, 3], [-1e-6, -1])],
      cool: [said([1, 4], [-1e-6, -1])],
    }
    expect(detail('logprobs', some)).toMatchObject({
      status: 'not_checked',
      detail: 'no token came at both temperatures that was not nearly certain',
    })
  })

  it('an engine of another kind is one finding, and the rest waits', () => {
    expect(codes({ engine: { ...EVIDENCE.engine, kind: 'sglang' }, again: said([9]) })).toEqual([
      'dialect: other_dialect',
    ])
  })

  it('one dead endpoint of several is named', () => {
    const dead = {
      ...{ url: 'http://b', listens: false, loose: null, skewSeconds: null },
      answer: { kind: 'failure', outcome: 'infra_backend', reason: 'ECONNREFUSED' },
    } as const
    const some = { endpoints: [...EVIDENCE.endpoints, dead] }
    expect(codes(some)).toEqual(['endpoint: endpoint_dead'])
    expect(detail('endpoint', some)).toMatchObject({
      what: 'http://b does not answer: ECONNREFUSED',
    })
  })

  it('the clock that is furthest off is told, with its side', () => {
    const [one] = EVIDENCE.endpoints
    const ahead = { ...one!, url: 'http://b', skewSeconds: -3600 }
    expect(detail('clock', { endpoints: [one!, ahead] })).toMatchObject({
      code: 'clock_skew',
      what: 'the clock of http://b is 3600 s ahead of ours',
    })
  })

  it('tools that cost no prompt tokens are not in the prompt', () => {
    const turn = { task: 't', probe: said([1]), calls: { hermes: 1 }, thinks: false, missing: null }
    const weighed = { ...turn, promptTokens: 50, bareTokens: 50 }
    expect(codes({ toolTurns: [weighed] })).toEqual(['tools: tools_missing'])
    expect(codes({ toolTurns: [{ ...weighed, promptTokens: 90 }] })).toEqual([])
  })

  it('a disk that is nearly full, and a pack with a task that fails the gate', () => {
    const ledger = { path: '/l', problem: null, freeBytes: 5, minFreeBytes: 6 }
    const pack = { name: 'p', tasks: 2, refused: [{ id: 'p/x', problem: 'V01 …' }] }
    expect(codes({ ledger, pack })).toEqual(['pack: pack_refused', 'ledger: ledger_full'])
  })

  it('a chain that was cut is told with its cause', () => {
    const one: SampleEpisode = {
      ...{ task: 't', outcome: 'ok', reason: null, scored: true, turns: 2, samples: 2 },
      ...{ promptTokens: 900, completionTokens: 100, seconds: 1, drift: { json_spacing: 1 } },
    }
    expect(codes({ episodes: { played: [one], wallSeconds: 1 } })).toEqual(['tape: prompt_drift'])
    const text = { ...one, samples: 0, drift: {} }
    expect(detail('tape', { episodes: { played: [text], wallSeconds: 1 } })).toMatchObject({
      status: 'not_checked',
      detail: 'no model_dir, no tape',
    })
    const broken = { ...text, outcome: 'contract_violation', scored: false }
    const subject = { ...EVIDENCE.subject, modelDir: true }
    expect(
      detail('tape', { subject, episodes: { played: [broken], wallSeconds: 1 } }),
    ).toMatchObject({
      status: 'not_checked',
      detail: 'no episode has a tape; t: contract_violation',
    })
  })

  it('a version that replies do not tell is in no sample without weight_info', () => {
    const silent = EVIDENCE.warm.map((probe) => {
      const strict = { ...(probe.strict as Completion), version: null }
      return { ...probe, strict, loose: strict }
    })
    const engine = { ...EVIDENCE.engine, weightVersion: '0' }
    const asked = { status: 'healthy', detail: expect.stringMatching(/version: 0\b/) }
    expect(detail('version', { warm: silent, engine })).toMatchObject({
      ...asked,
      detail: expect.stringContaining('no reply does: without weight_info samples have no version'),
    })
    const subject = { ...EVIDENCE.subject, weightInfo: true }
    const around = detail('version', { warm: silent, engine, subject })
    expect(around).toMatchObject(asked)
    expect(around).not.toMatchObject({ detail: expect.stringContaining('without') })
  })

  it('costs are plain numbers, however small or large', () => {
    const ok: SampleEpisode = {
      ...{ task: 't', outcome: 'ok', reason: null, scored: true, turns: 2, samples: 1 },
      ...{ promptTokens: 9e6, completionTokens: 1e6, seconds: 1, drift: {} },
    }
    for (const [wallSeconds, told] of [
      [0.000_001, '0.0 s'],
      [0.012, '3.1 s'],
      [0.39, '100 s'],
    ] as const)
      expect(detail('cost', { episodes: { played: [ok], wallSeconds } })).toMatchObject({
        detail: `1 played, 1 scored; 256 episodes would cost 2560 M tokens (256 M sampled) and ${told}, 1 at a time`,
      })
  })

  it('more than half of the episodes without a reward are a finding; else the batch has its price', () => {
    const ok: SampleEpisode = {
      ...{ task: 't', outcome: 'ok', reason: null, scored: true, turns: 2, samples: 1 },
      ...{ promptTokens: 900, completionTokens: 100, seconds: 1, drift: {} },
    }
    const lost = { ...ok, outcome: 'infra_env', reason: 'no', scored: false }
    const episodes = (played: SampleEpisode[]) => ({ episodes: { played, wallSeconds: 2 } })
    expect(codes(episodes([ok, lost, lost]))).toEqual(['cost: episodes_fail'])
    expect(detail('cost', episodes([ok, lost]))).toMatchObject({
      detail:
        '2 played, 1 scored; 256 episodes would cost 256000 tokens (25600 sampled) and 4 min, 2 at a time',
    })
  })
})
