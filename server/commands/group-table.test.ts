// The table of groups: aligned columns, a dash where there is no number, and signs alone where it would be too wide.
import { expect, test } from 'vitest'
import type { DeliveredGroup } from '../../protocol/group.ts'
import { groupTable } from './group-table.ts'

const group = (task: string, advantages: (number | null)[], mean: number | null): DeliveredGroup =>
  ({
    task,
    verdict: 'valid',
    level: null,
    stats: { n: 3, scored: 2, mean, std: mean === null ? null : 0.5, distinct: 2 },
    cost: { prompt_tokens: 1, completion_tokens: 1234, seconds: 2.25 },
    episodes: advantages.map((advantage) => ({ advantage })),
  }) as unknown as DeliveredGroup

const groups = [group('pack/b-10', [0, -0.71, null], 0.25), group('pack/b-9', [1.5, -1.5, 0], null)]

test('groups stand in the order of their tasks, with a dash for what is no number', () => {
  expect(groupTable(groups).split('\n')).toEqual([
    'task       verdict  mean reward    std  advantages         tokens  episode seconds',
    '─────────  ───────  ───────────  ─────  ─────────────────  ──────  ───────────────',
    'pack/b-9   valid              –      –  +1.50 −1.50 +0.00    1234              2.3',
    'pack/b-10  valid          0.250  0.500  +0.00 −0.71     –    1234              2.3',
  ])
})

test('a narrow terminal gets the sign of each advantage', () => {
  const lines = groupTable(groups, 78).split('\n')
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(78)
  expect(lines[2]).toContain('+−0')
  expect(lines[3]).toContain('0−–')
})

test('a narrower one goes without tokens and seconds, and a task that is still too long is cut', () => {
  const lines = groupTable(groups, 60).split('\n')
  expect(lines[0]).toBe('task       verdict  mean reward    std  advantages')
  const long = group('office/dev-06-assign-laptop-through-outage-and-back-again', [1, -1], 0.5)
  const cut = groupTable([long], 80).split('\n')
  expect(Math.max(...cut.map((line) => line.length))).toBe(80)
  expect(cut[2]).toMatch(/^office\/dev-06-assign-laptop-through-\S*… {2}valid/)
})
