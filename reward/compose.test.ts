// Composed rewards: in which order, with which lengths, and every step told apart from what was graded.
import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { type RewardContract, rewardContractSchema } from '../protocol/contract.ts'
import { composeReward, countedRewards } from './compose.ts'
import { checkContract, contractLabel } from './contract.ts'

const contract = (some: object = {}): RewardContract =>
  rewardContractSchema.parse({
    name: 'two',
    version: 1,
    fields: { solved: { type: 'number' }, brief: { type: 'number', nullable: true } },
    scalar: 'solved',
    components: ['solved', 'brief'],
    ...some,
  })

it('A11: the length is what was sampled, and reward, length and penalty stand apart', () => {
  const shaped = contract({ shaping: { overlong: { max_length: 100, buffer: 20 } } })
  // Turns of 30 and 30 sampled tokens; then 45 and 45. An observation between them is not counted.
  for (const [turns, penalty] of [
    [[30, 30], 0],
    [[45, 45], -0.5],
  ] as const) {
    const length = turns[0] + turns[1]
    expect(composeReward(shaped, { solved: 1, brief: null }, length)).toEqual({
      ok: true,
      reward: 1 + penalty,
      shaping: [{ kind: 'overlong', length, penalty }],
    })
  }
})

describe('a condition', () => {
  const conditions = [{ component: 'brief', requires: 'solved', at_least: 0.5, otherwise: -1 }]

  test('lets a component count only where another is good enough, and tells both values', () => {
    const weighted = contract({ conditions, scalar: { weighted: { solved: 1, brief: 2 } } })
    expect(composeReward(weighted, { solved: 0.5, brief: 0.25 }, 9)).toEqual({
      ok: true,
      reward: 1,
      shaping: [],
    })
    expect(composeReward(weighted, { solved: 0.4, brief: 0.25 }, 9)).toEqual({
      ok: true,
      reward: 0.4 - 2,
      shaping: [
        { kind: 'condition', ...conditions[0], otherwise: undefined, raw: 0.25, counted: -1 },
      ].map(({ otherwise: _, ...step }) => step),
    })
  })

  test('leaves what is missing missing, and is not met by what is missing', () => {
    const back = contract({
      conditions: [{ component: 'solved', requires: 'brief', at_least: 0 }],
    })
    expect(countedRewards(back, { solved: 1, brief: null })).toEqual({ solved: 0, brief: null })
    expect(countedRewards(contract({ conditions }), { solved: 0, brief: null }).brief).toBeNull()
  })

  test('on a field that the contract lacks is refused with its path and the nearest name', () => {
    const wrong = contract({ conditions: [{ component: 'brief', requires: 'solvd', at_least: 1 }] })
    expect(() => checkContract(wrong)).toThrow(/solvd.*solved/)
    try {
      checkContract(wrong)
    } catch (error) {
      expect(error).toMatchObject({ path: 'conditions[0].requires' })
    }
  })
})

test('each token beyond those that are free costs the same', () => {
  const shaped = contract({ shaping: { length_penalty: { per_token: 0.001, free: 100 } } })
  expect(composeReward(shaped, { solved: 1, brief: null }, 100)).toMatchObject({ reward: 1 })
  expect(composeReward(shaped, { solved: 1, brief: null }, 350)).toMatchObject({
    reward: expect.closeTo(0.75, 12),
    shaping: [{ kind: 'length', length: 350, penalty: expect.closeTo(-0.25, 12) }],
  })
})

test('a contract that composes has another label, and one that does not has the label it always had', () => {
  const shaped = contract({ shaping: { length_penalty: { per_token: 0.001 } } })
  expect(contractLabel(shaped)).not.toBe(contractLabel(contract()))
  expect(Object.keys(contract())).not.toContain('shaping')
})

test('the reward is the scalar of what counts plus its penalties, never more than the scalar', () => {
  const share = fc.double({ min: 0, max: 1, noNaN: true })
  fc.assert(
    fc.property(share, share, share, fc.nat(1000), (solved, brief, at_least, tokens) => {
      const composed = composeReward(
        contract({
          scalar: { weighted: { solved: 1, brief: 1 } },
          conditions: [{ component: 'brief', requires: 'solved', at_least }],
          shaping: {
            overlong: { max_length: 500, buffer: 100, beyond: 'linear' },
            length_penalty: { per_token: 0.01, free: 50 },
          },
        }),
        { solved, brief },
        tokens,
      )
      if (!composed.ok) throw new Error(composed.message)
      const scalar = solved + (solved >= at_least ? brief : 0)
      const penalties = composed.shaping.flatMap((step) => ('penalty' in step ? step.penalty : []))
      expect(composed.reward).toBeCloseTo(scalar + penalties.reduce((a, b) => a + b, 0), 12)
      expect(penalties.every((penalty) => penalty <= 0 && !Object.is(penalty, -0))).toBe(true)
    }),
  )
})
