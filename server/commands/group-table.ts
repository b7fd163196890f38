// Finished groups as a table for a terminal.
import { fixed } from '../../protocol/figure.js'
import type { DeliveredGroup } from '../../protocol/group.ts'
import { cut, table } from './table.ts'

const HEAD = ['task', 'verdict', 'mean reward', 'std', 'advantages', 'tokens', 'episode seconds']
/** Of these a narrow terminal has no room. */
const COSTS = 2
/** Columns of text stand to the left, figures to the right. */
const LEFT = new Set([0, 1, 4])

/**
 * One line a group; advantages in the order of the episodes, – for one without reward; the seconds are the sum over its
 * episodes, which play side by side. Where the table would be wider than `columns`, only the sign of each advantage is
 * shown, then no costs, and then the tasks are cut.
 */
export function groupTable(
  groups: readonly DeliveredGroup[],
  columns = Number.POSITIVE_INFINITY,
): string {
  const sorted = [...groups].sort((a, b) => a.task.localeCompare(b.task, 'en', { numeric: true }))
  const signs = sorted.map((group) => cells(group, sign, ''))
  const bare = signs.map((row) => row.slice(0, -COSTS))
  const head = HEAD.slice(0, -COSTS)
  const wide = table(
    HEAD,
    sorted.map((group) => cells(group, signed, ' ')),
    LEFT,
  )
  const fitting = [wide, table(HEAD, signs, LEFT), table(head, bare, LEFT)]
  const fits = fitting.find(({ width }) => width <= columns)
  if (fits) return fits.text
  const room = longest(bare) - ((fitting.at(-1)?.width ?? 0) - columns)
  return table(
    head,
    bare.map(([task = '', ...row]) => [cut(task, room), ...row]),
    LEFT,
  ).text
}

const longest = (rows: readonly string[][]): number =>
  Math.max(...rows.map(([task = '']) => task.length))

function cells(
  { task, verdict, level, stats, episodes, cost }: DeliveredGroup,
  show: (advantage: number | null) => string,
  between: string,
): string[] {
  return [
    task,
    level ? `${verdict} (${level})` : verdict,
    fixed(stats.mean),
    fixed(stats.std),
    episodes.map((episode) => show(episode.advantage)).join(between),
    String(cost.completion_tokens),
    fixed(cost.seconds, 1),
  ]
}

function signed(advantage: number | null): string {
  if (advantage === null) return '    –'
  return `${advantage < 0 ? '−' : '+'}${fixed(Math.abs(advantage), 2)}`
}

function sign(advantage: number | null): string {
  if (advantage === null) return '–'
  return advantage === 0 ? '0' : advantage < 0 ? '−' : '+'
}
