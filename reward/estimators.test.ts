// Every estimator through its interface: the golden vectors, the laws that hold for all, and how settings are read.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { PaddockError } from '../protocol/errors.ts'
import type { GroupScores, MemberScore } from './estimator.ts'
import { chooseEstimator, estimatorNames } from './estimators.ts'
import { advantages, distance, estimate, group, member, rewardArbitrary } from './scores.testkit.ts'
import { expectVector, goldenVectors, type Vector } from './vectors.testkit.ts'

/** One number per member and no steps. */
const SCALAR = ['grpo', 'dr_grpo', 'rloo', 'reinforce_pp_baseline', 'opo', 'maxrl', 'grpo_passk']
/** Their formula subtracts a mean and nothing else of the rewards' height is left. */
const MEAN_CENTRED = ['grpo', 'dr_grpo', 'rloo', 'reinforce_pp_baseline', 'opo', 'grpo_passk']

describe('the golden vectors, group by group', () => {
  const rows = goldenVectors().filter(({ input }) => 'groups' in input)

  test.each(rows.map((vector) => [vector.name, vector] as const))('%s', (_, vector) => {
    const { groups, order } = groupsOf(vector)
    const results = estimate(vector.estimator, groups, vector.settings)
    const flat = results.flatMap((result) => result.members.map((entry) => entry.advantage))
    const values: (number | null)[] = []
    order.forEach((row, place) => {
      values[row] = flat[place]!
    })
    const f64 = vector.expected_f64 && {
      expected_f64: { advantages: vector.expected_f64.advantages },
    }
    const expected = { advantages: vector.expected.advantages }
    expectVector({ advantages: values }, { ...vector, expected, ...f64 })
  })
})

/** The vector's rows as groups, and the row of each member in order of groups and members. */
function groupsOf({ input }: Vector): { groups: GroupScores[]; order: number[] } {
  const ids = input.groups as string[]
  const rewards = input.rewards as (number | null)[] | undefined
  const components = input.components as Record<string, number | null>[] | undefined
  const masks = input.response_mask as number[][] | undefined
  const lengths =
    (input.response_lengths as number[] | undefined) ?? masks?.map((mask) => mask.length)
  const rollouts = input.rollouts as string[] | undefined
  const order: number[] = []
  const groups = [...new Set(ids)].map((id) => {
    const members: MemberScore[] = []
    ids.forEach((other, row) => {
      if (other !== id) return
      order.push(row)
      members.push(
        member(rewards ? rewards[row]! : 0, {
          components: components?.[row] ?? {},
          tokens: lengths?.[row] ?? 1,
          ...(rollouts && { rollout: rollouts[row]! }),
        }),
      )
    })
    return { id, members }
  })
  return { groups, order }
}

const rewardsArbitrary = fc.array(rewardArbitrary, { minLength: 1, maxLength: 8 })
const batchArbitrary = fc.array(rewardsArbitrary, { minLength: 1, maxLength: 4 })
/** Over a mean of positive and negative rewards that cancel, rounding has no bound. */
const positiveBatchArbitrary = batchArbitrary.map((batch) =>
  batch.map((rewards) => rewards.map(Math.abs)),
)

function batchOf(batch: readonly (readonly (number | null)[])[]): GroupScores[] {
  return batch.map((rewards, index) => group(rewards, `g${index}`))
}

describe.each(SCALAR)('%s', (name) => {
  test('does not depend on the order of members and groups', () => {
    fc.assert(
      fc.property(name === 'maxrl' ? positiveBatchArbitrary : batchArbitrary, (batch) => {
        const straight = advantages(estimate(name, batchOf(batch)))
        const reversed = batch.map((rewards) => rewards.toReversed()).toReversed()
        const back = advantages(estimate(name, batchOf(reversed))).toReversed()
        straight.forEach((values, index) => {
          const scale = Math.max(1, ...values.map((value) => Math.abs(value ?? 0)))
          const other = back[index]!.toReversed()
          expect(distance(values, other)).toBeLessThanOrEqual(1e-7 * scale)
        })
      }),
    )
  })

  test('gives a constant group of any value and size exact zeros', () => {
    const value = fc.oneof(
      fc.constantFrom(0.1, 0.3, 0.7, 0.95, 1e-300),
      fc.double({ noNaN: true, min: -1e300, max: 1e300 }),
    )
    fc.assert(
      fc.property(value, fc.integer({ min: 2, max: 64 }), (reward, size) => {
        const [values] = advantages(
          estimate(name, [group(Array.from({ length: size }, () => reward))]),
        )
        expect(values).toEqual(Array.from({ length: size }, () => 0))
      }),
    )
  })

  test('lets a member without reward influence no one', () => {
    fc.assert(
      fc.property(batchArbitrary, fc.nat(7), (batch, place) => {
        const alone = advantages(estimate(name, batchOf(batch)))
        const joined = batch.map((rewards) => [
          ...rewards.slice(0, place),
          null,
          ...rewards.slice(place),
        ])
        const results = estimate(name, batchOf(joined))
        results.forEach((result, index) => {
          const nulls = result.members.filter((entry) => entry.reason === 'infra_backend')
          expect(nulls).toEqual([{ advantage: null, steps: null, reason: 'infra_backend' }])
          expect(result.explain.excluded).toHaveLength(1)
          const others = result.members.filter((entry) => entry.reason !== 'infra_backend')
          expect(others.map((entry) => entry.advantage)).toEqual(alone[index])
        })
      }),
    )
  })

  test('emits only finite numbers and nulls with a reason, whatever comes in', () => {
    const anything = fc.option(fc.oneof(fc.double(), fc.constantFrom(1e308, -1e308, 5e-324)), {
      nil: null,
    })
    fc.assert(
      fc.property(fc.array(fc.array(anything, { maxLength: 6 }), { maxLength: 4 }), (batch) => {
        for (const result of estimate(name, batchOf(batch)))
          for (const { advantage, reason } of result.members)
            expect(advantage === null ? reason !== null : Number.isFinite(advantage)).toBe(true)
      }),
    )
  })

  test('has nothing to say to an empty batch and an empty group', () => {
    expect(estimate(name, [])).toEqual([])
    expect(advantages(estimate(name, [group([])]))).toEqual([[]])
    expect(advantages(estimate(name, [group([null, null])]))).toEqual([[null, null]])
  })
})

describe.each(MEAN_CENTRED)('%s', (name) => {
  test('does not change when a constant is added to every reward', () => {
    const grid = fc.integer({ min: -64, max: 64 }).map((value) => value / 64)
    const shift = fc.integer({ min: -1024, max: 1024 })
    fc.assert(
      fc.property(
        fc.array(fc.array(grid, { minLength: 2, maxLength: 8 }), { minLength: 1, maxLength: 3 }),
        shift,
        (batch, by) => {
          const raw = advantages(estimate(name, batchOf(batch))).flat()
          const moved = batch.map((rewards) => rewards.map((reward) => reward + by))
          expect(distance(advantages(estimate(name, batchOf(moved))).flat(), raw)).toBeLessThan(
            1e-9,
          )
        },
      ),
    )
  })
})

test('advantages of a scored group sum to 0 under grpo and dr_grpo', () => {
  fc.assert(
    fc.property(fc.constantFrom('grpo', 'dr_grpo'), rewardsArbitrary, (name, rewards) => {
      const values = advantages(estimate(name, [group(rewards)]))[0]!.map((value) => value ?? 0)
      const scale = values.reduce((total, value) => total + Math.abs(value), 0)
      const total = values.reduce((sum, value) => sum + value, 0)
      // Below 1e-300 a double has too few digits left for any sum.
      expect(Math.abs(total)).toBeLessThanOrEqual(1e-12 * scale + 1e-300)
    }),
  )
})

describe('the settings of every estimator', () => {
  test.each([...estimatorNames])('%s takes none, a profile, and its own name as preset', (name) => {
    const plain = chooseEstimator(name, {}).settings
    const { profile, preset, ...labelled } = chooseEstimator(name, {
      profile: 'anything',
      preset: name,
    }).settings as Record<string, unknown>
    expect([profile, preset]).toEqual(['anything', name])
    expect(labelled).toEqual(plain)
    expect(chooseEstimator(name, undefined).settings).toEqual(plain)
  })

  test.each([...estimatorNames])('%s refuses an unknown key with the nearest', (name) => {
    const error = refusal(() => chooseEstimator(name, { loss_normaliser: 1 }))
    expect(error.code).toBe('invalid_request')
    expect(error.path).toBe('settings.loss_normaliser')
    expect(error.message).toContain('nearest is "loss_normalizer"')
  })

  test('an unknown estimator is refused with the nearest', () => {
    const error = refusal(() => chooseEstimator('gigppo', {}))
    expect(error).toMatchObject({ code: 'invalid_request', path: 'estimator' })
    expect(error.message).toContain('nearest is "gigpo"')
    expect(refusal(() => chooseEstimator('__proto__', {})).path).toBe('estimator')
  })

  test('a wrong value is refused with its path and what is expected', () => {
    const error = refusal(() => chooseEstimator('gdpo', { batch: { level: 'row' } }))
    expect(error.path).toBe('settings.batch.level')
    expect(error.message).toContain('"sample"|"token"|"none"')
    expect(refusal(() => chooseEstimator('grpo', { epsilon: -1 })).path).toBe('settings.epsilon')
    expect(refusal(() => chooseEstimator('grpo', { missing: 'drop' })).message).toContain(
      'score_as',
    )
    expect(refusal(() => chooseEstimator('dr_grpo', { scale: 'group_std' })).path).toBe(
      'settings.scale',
    )
    expect(refusal(() => chooseEstimator('gigpo', { preset: 'trl' })).path).toBe('settings.preset')
  })

  test('a preset sets several keys, and a single key overrides it', () => {
    expect(chooseEstimator('grpo', { preset: 'trl' }).settings).toMatchObject({
      epsilon: 1e-4,
      missing: 'excluded_then_zero',
    })
    expect(chooseEstimator('grpo', { preset: 'trl', epsilon: 0.5 }).settings).toMatchObject({
      epsilon: 0.5,
      missing: 'excluded_then_zero',
    })
  })

  test('a nested key overrides its preset alone', () => {
    const { settings } = chooseEstimator('gdpo', { preset: 'verl_gdpo', group: { epsilon: 0.5 } })
    expect(settings).toMatchObject({
      group: { epsilon: 0.5, singleton_group: 'raw_reward', std: 'sample' },
      batch: { level: 'token', epsilon: 1e-8, epsilon_mode: 'added_to_variance' },
    })
  })
})

describe('a preset computes what the explicit settings of its vectors do', () => {
  const PARITY: [string, string, string][] = [
    ['verl-singletons-keep-raw', 'grpo', 'verl'],
    ['trl-missing-one', 'grpo', 'trl'],
    ['nemo-loo', 'grpo', 'nemo_rl'],
    ['slime-basic', 'grpo', 'slime'],
    ['miles-segments', 'grpo', 'miles'],
    ['drgrpo-verl-singleton-raw', 'dr_grpo', 'verl'],
    ['drgrpo-trl-none', 'dr_grpo', 'trl'],
    ['gdpo-nv-multi-group', 'gdpo', 'nvlabs_gdpo'],
    ['gdpo-verl-uneven-groups-singleton', 'gdpo', 'verl_gdpo'],
    ['gdpo-nemo-loo', 'gdpo', 'nemo_rl'],
    ['gdpo-trl-unscorable', 'gdpo', 'trl'],
    ['rloo-verl', 'rloo', 'verl'],
    ['rloo-trl', 'rloo', 'trl'],
    ['opo-verl', 'opo', 'verl'],
    ['rpp-baseline-verl-singleton', 'reinforce_pp_baseline', 'verl'],
  ]

  test.each(PARITY)('%s is %s with preset %s', (vectorName, name, preset) => {
    const vector = goldenVectors().find((each) => each.name === vectorName)!
    const { weights } = vector.settings
    const { groups } = groupsOf(vector)
    const explicit = advantages(estimate(name, groups, vector.settings)).flat()
    expect(
      advantages(estimate(name, groups, { preset, ...(weights ? { weights } : {}) })).flat(),
    ).toEqual(explicit)
  })
})

function refusal(act: () => void): PaddockError {
  try {
    act()
  } catch (error) {
    if (error instanceof PaddockError) return error
    throw error
  }
  throw new Error('nothing was refused')
}

describe('rewards at the end of the doubles', () => {
  const HUGE = 1.7e308

  test.each(['grpo', 'grpo_passk', 'maxrl', 'reinforce_pp_baseline'])(
    '%s has the advantages of the same rewards in any other unit, where no epsilon is left to feel',
    (name) => {
      const grid = fc.integer({ min: name === 'maxrl' ? 1 : -8, max: 8 }).map((value) => value / 8)
      fc.assert(
        fc.property(
          fc.array(fc.array(grid, { minLength: 2, maxLength: 6 }), { minLength: 1, maxLength: 3 }),
          (batch) => {
            const huge = batch.map((rewards) => rewards.map((reward) => reward * HUGE))
            const unit = advantages(estimate(name, batchOf(batch), { epsilon: 0 })).flat()
            const far = advantages(estimate(name, batchOf(huge))).flat()
            // What is beyond the doubles before it is whitened has no advantage, and takes none from another.
            if (name !== 'reinforce_pp_baseline') expect(far).not.toContain(null)
            expect(far).toHaveLength(unit.length)
            if (!far.includes(null)) expect(distance(far, unit)).toBeLessThan(1e-9)
          },
        ),
      )
    },
  )

  test('a pair stands one deviation of sqrt(1/2) apart under grpo, batch_std and gigpo', () => {
    const pair = [group([HUGE, -HUGE])]
    const half = Math.SQRT1_2
    expect(distance(advantages(estimate('grpo', pair)).flat(), [half, -half])).toBeLessThan(1e-12)
    const overBatch = advantages(estimate('grpo', pair, { scale: 'batch_std' })).flat()
    expect(distance(overBatch, [half, -half])).toBeLessThan(1e-12)
    expect(distance(advantages(estimate('gigpo', pair)).flat(), [half, -half])).toBeLessThan(1e-12)
  })

  test('an advantage that is no double is null with its reason, and leaves the other groups theirs', () => {
    const [far, near] = estimate('rloo', [group([HUGE, -HUGE], 'far'), group([1, 0], 'near')])
    expect(far!.members.map(({ reason }) => reason)).toEqual(Array(2).fill('advantage_not_finite'))
    expect(near!.members.map(({ advantage }) => advantage)).toEqual([1, -1])
    const whitened = estimate('rloo', [group([HUGE, -HUGE], 'far'), group([1, 0], 'near')], {
      scale: 'batch_whiten',
    })
    expect(whitened[1]!.members.every(({ advantage }) => advantage !== null)).toBe(true)
  })
})
