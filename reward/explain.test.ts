import { describe, expect, test } from 'vitest'
import { explainGroup } from './explain.ts'
import { estimate, group, member } from './scores.testkit.ts'

describe('an explanation', () => {
  test('says of each member how it stands to the mean, and who is left out and why', () => {
    const scores = group([1, 0, null, 1])
    const explained = explainGroup(scores, estimate('grpo', [scores])[0]!)
    expect(explained).toMatchObject({
      group: 'g',
      votes: 3,
      excluded: [{ id: 'g2', reason: 'infra_backend' }],
      zero_variance: false,
      anchors: null,
    })
    expect(explained.mean).toBeCloseTo(2 / 3, 12)
    expect(explained.members.map(({ because }) => because)).toEqual([
      'reward 1 is 0.333 above the mean 0.667 of 3 votes',
      'reward 0 is 0.667 below the mean 0.667 of 3 votes',
      'outside all statistics: infra_backend',
      'reward 1 is 0.333 above the mean 0.667 of 3 votes',
    ])
    expect(explained.remarks).toContain('3 votes from 4 members, 1 of them left out')
  })

  // 3 of 8: deviations 5/8 and -3/8, their squares sum to 15/8; over n - 1 and over n.
  const SAMPLE = Math.sqrt(15 / 8 / 7)
  const POPULATION = Math.sqrt(15 / 8 / 8)
  test.each<[string, Record<string, unknown>, number | null, string]>([
    ['grpo', {}, SAMPLE + 1e-6, 'sample std + 0.000001'],
    ['grpo', { std: 'population', epsilon: 0 }, POPULATION, 'population std'],
    ['gigpo', {}, SAMPLE + 1e-6, 'sample std + 0.000001'],
    ['dr_grpo', {}, null, 'nothing'],
    ['grpo', { std_scope: 'leave_one_out' }, null, "sample std of each one's siblings + 0.000001"],
  ])('says what %s with %j divides by', (name, settings, value, divisor) => {
    const rewards = [1, 0, 0, 0, 0, 0, 1, 1]
    const members = rewards.map((reward, index) =>
      member(reward, { id: `m${index}`, steps: [{ anchor: `${index}`, reward }] }),
    )
    const scores = { id: 'g', members }
    const explained = explainGroup(scores, estimate(name, [scores], settings)[0]!)
    expect(explained.divisor).toEqual({
      value: value === null ? null : expect.closeTo(value, 12),
      name: divisor,
    })
    if (value === null || name === 'gigpo') return
    for (const [index, { advantage }] of explained.members.entries())
      expect(advantage! * value).toBeCloseTo(rewards[index]! - 0.375, 12)
  })

  test('says of each component what it is divided by', () => {
    const members = [1, 0].map((a) => member(a, { components: { a, b: 0.5 } }))
    const scores = { id: 'g', members }
    const explained = explainGroup(scores, estimate('gdpo', [scores])[0]!)
    const [a] = explained.components
    // Two votes: the sample std of 0 and 1 is the root of 1/2.
    expect(a?.divisor.value).toBeCloseTo(Math.sqrt(0.5), 3)
    expect(explained.remarks.join()).toMatch(
      /component "a": less the mean 0.5, divided by 0.707 \(sample std/,
    )
  })

  test('says that a constant group is exactly 0', () => {
    const scores = group([0.7, 0.7])
    const explained = explainGroup(scores, estimate('grpo', [scores])[0]!)
    expect(explained.remarks).toContain(
      'nothing that is read differs: every advantage is exactly 0',
    )
    expect(explained.members[0]!.because).toBe('all 2 votes are equal')
    expect(explained.divisor).toBeNull()
  })

  test('names flat components', () => {
    const members = [1, 0].map((a) => member(a, { components: { a, b: 0.5 } }))
    const scores = { id: 'g', members }
    const explained = explainGroup(scores, estimate('gdpo', [scores])[0]!)
    expect(explained.components.map(({ name, flat }) => [name, flat])).toEqual([
      ['a', false],
      ['b', true],
    ])
    expect(explained.remarks).toContain('component "b" is flat in this group and adds 0')
    expect(explained.batch).toMatchObject({ mean: 0 })
  })

  test.each<[string[], number, string]>([
    [['a', 'b'], 0, 'GiGPO is GRPO here: no two steps were taken in the same state'],
    [['a', 'a'], 1, '100 % of steps were taken in a state that another step shares'],
  ])('says of anchors %j what they are worth', (anchors, share, remark) => {
    const members = anchors.map((anchor, index) =>
      member(index, { id: anchor, steps: [{ anchor, reward: index }] }),
    )
    const scores = { id: 'g', members }
    const explained = explainGroup(scores, estimate('gigpo', [scores])[0]!)
    expect(explained.shared_anchor_share).toBe(share)
    expect(explained.remarks).toContain(remark)
    expect(explained.anchors).toHaveLength(share === 0 ? 2 : 1)
  })

  test('says that nobody votes, and that one vote has no one to compare with', () => {
    const none = group([null])
    const without = explainGroup(none, estimate('grpo', [none])[0]!)
    expect(without.remarks).toContain('no member votes: there is no advantage')
    const one = group([1, null])
    const alone = explainGroup(one, estimate('grpo', [one])[0]!)
    expect(alone.members[0]!.because).toMatch(/only vote of its group/)
  })
})
