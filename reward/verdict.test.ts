import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type RewardContract, rewardContractSchema } from '../protocol/contract.ts'
import { EPISODE_OUTCOMES, type EpisodeOutcome, isScored } from '../protocol/outcomes.ts'
import { groupVerdict, type JudgedEpisode, type JudgedGroup } from './verdict.ts'

const contract: RewardContract = rewardContractSchema.parse({
  name: 'office',
  version: 1,
  fields: {
    score: { type: 'number', min: 0, max: 1 },
    solved: { type: 'number', min: 0, max: 1 },
    brief: { type: 'number', min: 0, max: 1 },
  },
  scalar: 'score',
  components: ['solved', 'brief'],
})

const open: RewardContract = {
  ...contract,
  fields: { ...contract.fields, score: { type: 'number' } },
}

function scored(reward: number, rewards: Record<string, number | null> = {}): JudgedEpisode {
  return { outcome: 'ok', reward, rewards, distinctKey: `k${reward}` }
}

function failed(outcome: EpisodeOutcome): JudgedEpisode {
  return { outcome, reward: null, rewards: null, distinctKey: '' }
}

function judge(episodes: JudgedEpisode[], more: Partial<JudgedGroup> = {}) {
  const groupSize = more.groupSize ?? episodes.length
  return groupVerdict({
    groupSize,
    minScored: groupSize,
    acceptPartial: false,
    contract,
    estimator: 'grpo',
    episodes,
    ...more,
  })
}

describe('a group with enough scored episodes', () => {
  test.each<[string, number[], RewardContract, string, string | null]>([
    ['is valid where rewards differ', [0, 1], contract, 'valid', null],
    ['is valid by the last digit', [0.1 + 0.2, 0.3], contract, 'valid', null],
    ['has no variance at the floor', [0, 0, 0], contract, 'zero_variance', 'floor'],
    ['has no variance at the ceiling', [1, 1], contract, 'zero_variance', 'ceiling'],
    ['has no variance between', [0.7, 0.7, 0.7], contract, 'zero_variance', 'mid'],
    ['is mid where no bound is declared', [0, 0], open, 'zero_variance', 'mid'],
    ['of one has no variance', [1], contract, 'zero_variance', 'ceiling'],
  ])('%s', (_, rewards, contract, verdict, level) => {
    const judged = judge(
      rewards.map((reward) => scored(reward)),
      { contract },
    )
    expect(judged).toMatchObject({ verdict, level })
  })

  test('counts truncated episodes as scored', () => {
    const cut: JudgedEpisode = { ...scored(0), outcome: 'ok_truncated' }
    expect(judge([scored(1), cut]).verdict).toBe('valid')
  })

  test('is judged by min_scored and not by its size', () => {
    const episodes = [scored(0), scored(1), failed('infra_tool'), failed('timeout')]
    expect(judge(episodes, { minScored: 2 }).verdict).toBe('valid')
  })

  test('reaches the ceiling of a weighted sum that floats cannot write exactly', () => {
    const weighted = { ...contract, scalar: { weighted: { solved: 0.7, brief: 0.1 } } }
    const top = 0 + 0.7 * 1 + 0.1 * 1
    expect(judge([scored(top), scored(top)], { contract: weighted }).level).toBe('ceiling')
  })
})

describe('for gdpo variance is judged on components', () => {
  const opposed = [
    scored(1, { solved: 0.5, brief: 0 }),
    scored(1, { solved: 0, brief: 1 }),
    scored(1, { solved: 0.5, brief: 0 }),
    scored(1, { solved: 0, brief: 1 }),
  ]

  test('equal totals with different components are valid, and have no variance under grpo', () => {
    expect(judge(opposed, { estimator: 'gdpo' })).toMatchObject({ verdict: 'valid', level: null })
    expect(judge(opposed)).toMatchObject({ verdict: 'zero_variance', level: 'ceiling' })
  })

  test('different totals with equal components have no variance', () => {
    const same = { solved: 1, brief: 1 }
    const judged = judge([scored(0, same), scored(1, same)], { estimator: 'gdpo' })
    expect(judged).toMatchObject({ verdict: 'zero_variance', level: 'mid' })
  })

  test('a component that a member lacks differs from nothing', () => {
    const episodes = [scored(1, { solved: 1, brief: null }), scored(1, { solved: 1, brief: 0 })]
    expect(judge(episodes, { estimator: 'gdpo' }).verdict).toBe('zero_variance')
  })
})

describe('a group that is short', () => {
  const two = [scored(0), scored(1)]
  test.each<[string, JudgedEpisode[], boolean, string]>([
    ['is partial with two where that is accepted', [...two, failed('timeout')], true, 'partial'],
    ['is not partial where it is not', [...two, failed('timeout')], false, 'timeout'],
    ['is not partial with one', [scored(0), failed('infra_env')], true, 'infra'],
    [
      'names the contract first',
      [failed('timeout'), failed('contract_violation')],
      true,
      'contract_violation',
    ],
    [
      'calls every infra_* infra',
      [failed('infra_worker'), failed('verifier_error')],
      false,
      'infra',
    ],
    [
      'names the timeout before the verifier',
      [failed('verifier_error'), failed('timeout')],
      false,
      'timeout',
    ],
    [
      'names the verifier before the parser',
      [failed('parse_error'), failed('verifier_error')],
      false,
      'verifier_error',
    ],
    ['names the parser alone', [scored(1), failed('parse_error')], false, 'parse_error'],
    [
      'names a cancelled one before all',
      [failed('contract_violation'), failed('aborted')],
      false,
      'aborted',
    ],
  ])('%s', (_, episodes, acceptPartial, verdict) => {
    expect(judge(episodes, { acceptPartial })).toMatchObject({ verdict, level: null })
  })

  test('of episodes that were never played is aborted', () => {
    expect(judge([scored(1)], { groupSize: 4 }).verdict).toBe('aborted')
    expect(judge([], { groupSize: 4 }).stats).toMatchObject({
      n: 4,
      scored: 0,
      mean: null,
      std: null,
      distinct: 0,
    })
  })
})

describe('the figures of a group', () => {
  test('are over scored episodes, with the population deviation', () => {
    const episodes = [scored(2), scored(4), scored(4), scored(4), scored(5), scored(5), scored(7)]
    const { stats } = judge([...episodes, scored(9), failed('timeout')], { contract: open })
    expect(stats).toMatchObject({ n: 9, scored: 8, mean: 5, std: 2, distinct: 5 })
  })

  test('have deviation 0 exactly for seven times 0.7', () => {
    expect(judge(Array.from({ length: 7 }, () => scored(0.7))).stats.std).toBe(0)
  })
})

test('components have figures of their own, over the episodes that have them', () => {
  const of = (solved: number, brief: number | null) => ({
    ...scored(1),
    rewards: { solved, brief },
  })
  const { stats } = judge([of(1, 0.5), of(0, null), of(1, 0.5), of(0, 0.5)])
  expect(stats.components).toEqual({
    solved: { mean: 0.5, std: 0.5, flat: false },
    brief: { mean: 0.5, std: 0, flat: true },
  })
})

test('an outcome and a reward that contradict each other stop the judgement', () => {
  const lost = { ...scored(0), reward: null }
  expect(() => judge([lost])).toThrow(/finite reward, got null/)
  const scoredFailure = { ...failed('timeout'), reward: 0 }
  expect(() => judge([scoredFailure])).toThrow(/reward null, got 0/)
})

test('the verdict does not depend on the order of episodes, and never mistakes a failure for a zero', () => {
  const episode = fc
    .constantFrom(...EPISODE_OUTCOMES)
    .chain((outcome) =>
      fc
        .constantFrom(0, 0.7, 1)
        .map((reward) => (isScored(outcome) ? { ...scored(reward), outcome } : failed(outcome))),
    )
  fc.assert(
    fc.property(
      fc.array(episode, { minLength: 1, maxLength: 8 }),
      fc.boolean(),
      (episodes, acceptPartial) => {
        const judged = judge(episodes, { acceptPartial })
        const { verdict, level } = judged
        const reversed = judge([...episodes].reverse(), { acceptPartial })
        expect(reversed).toMatchObject({ verdict, level })
        const complete = episodes.every(({ outcome }) => isScored(outcome))
        expect(['valid', 'zero_variance'].includes(judged.verdict)).toBe(complete)
      },
    ),
  )
})
