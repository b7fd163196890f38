// Finished groups as a table for a terminal.
import { fixed } from '../../protocol/figure.js'
import type { DeliveredGroup } from '../../protocol/group.ts'
import { table } from './table.ts'

const HEAD = ['task', 'verdict', 'mean reward', 'std', 'advantages', 'tokens', 'seconds']
/** Columns of text stand to the left, figures to the right. */
const LEFT = new Set([0, 1, 4])

/**
 * One line a group; advantages in the order of the episodes, – for one without reward. Where the table would be wider
 * than `columns`, only the sign of each advantage is shown.
 */
export function groupTable(
  groups: readonly DeliveredGroup[],
  columns = Number.POSITIVE_INFINITY,
): string {
  const sorted = [...groups].sort((a, b) => a.task.localeCompare(b.task, 'en', { numeric: true }))
  const rows = (show: typeof signed, between: string) =>
    sorted.map((group) => cells(group, show, between))
  const wide = table(HEAD, rows(signed, ' '), LEFT)
  return wide.width <= columns ? wide.text : table(HEAD, rows(sign, ''), LEFT).text
}

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
