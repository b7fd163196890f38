import { describe, expect, test } from 'vitest'
import type { GroupScores } from '../estimator.ts'
import { estimate, member } from '../scores.testkit.ts'

const PATHS = [
  ['page1', 'page2', 'page1', 'page2', 'page1', 'item'],
  ['page1', 'item'],
  ['page1', 'page2', 'page2'],
]

/** The trajectories of the vector hgpo-history-2: two that end in a reward of 1 and one that fails. */
const shop: GroupScores = {
  id: 'g',
  members: PATHS.map((path, index) =>
    member(path.includes('item') ? 1 : 0, {
      id: `t${index}`,
      steps: path.map((anchor) => ({ anchor, reward: anchor === 'item' ? 1 : 0 })),
    }),
  ),
}

// Computed in Float64 by a line by line reading of recipe/hgpo/core_hgpo.py, which gives that vector to 5e-7.
const REFERENCE: [string, Record<string, unknown>, number[]][] = [
  [
    'with the episode term',
    { history_length: 2, base_group: true },
    [
      0.32000497576641407, 0.6937202364110062, -0.5574350025498436, 0.8701605729394426,
      0.8941116901132504, 0.583872374251444, 0.6470894306632412, 0.583872374251444,
      -1.8298507637816521, -1.2962950969935332, -1.1839188505181393,
    ],
  ],
  [
    'without history, undivided, with a flat weight',
    {
      gamma: 0.9,
      history_length: 0,
      mode: 'mean_norm',
      length_weight_alpha: 0.5,
      base_group: true,
    },
    [
      0.09339734319797646, 0.2825963258132425, 0.17453458906553138, 0.37274882122163683,
      0.27470402840819175, 0.2727270000002727, 0.27470402840819175, 0.2727270000002727,
      -0.6667169378797857, -0.5159513875175719, -0.5159513875175719,
    ],
  ],
  [
    'undiscounted with a steep weight',
    { gamma: 1, history_length: 1, length_weight_alpha: 2 },
    [
      0.4999986250034686, 0.7972260564228855, 0.4999986250034686, 0.7972260564228855,
      0.4999986250034686, 0, 0.4999986250034686, 0, -1.999994500013875, -1.2867604442054374,
      -0.9999977500045625,
    ],
  ],
]

test.each(REFERENCE)('hgpo %s gives the numbers of the reference', (_, settings, expected) => {
  const [result] = estimate('hgpo', [shop], settings)
  const values = result!.members.flatMap((entry) => entry.steps!)
  values.forEach((value, row) => {
    expect(value).toBeCloseTo(expected[row]!, 9)
  })
})

describe('hgpo', () => {
  test('gives a member the mean over its steps', () => {
    const [result] = estimate('hgpo', [shop])
    for (const { advantage, steps } of result!.members) {
      const mean = steps!.reduce<number>((total, step) => total + step!, 0) / steps!.length
      expect(advantage).toBeCloseTo(mean, 12)
    }
  })

  test('has nothing to compare where every state is new', () => {
    const members = ['a', 'b'].map((anchor, index) =>
      member(index, { steps: [{ anchor, reward: index }] }),
    )
    const [result] = estimate('hgpo', [{ id: 'g', members }])
    expect(result!.members.map((entry) => entry.steps)).toEqual([[0], [0]])
    expect(result!.explain.zero_variance).toBe(true)
  })

  test('does not look past a step without anchor', () => {
    const path = [null, 'a'].map((anchor) => ({ anchor, reward: 1 }))
    const members = [member(2, { steps: path }), member(2, { steps: path })]
    const [result] = estimate('hgpo', [{ id: 'g', members }], { anchor_missing: 'own_group' })
    expect(result!.members.map((entry) => entry.steps)).toEqual([
      [0, 0],
      [0, 0],
    ])
  })
})
