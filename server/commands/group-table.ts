// Finished groups as a table for a terminal.
import type { DeliveredGroup } from '../../protocol/group.ts'

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
  const wide = layOut(sorted.map((group) => cells(group, signed, ' ')))
  return wide.width <= columns
    ? wide.text
    : layOut(sorted.map((group) => cells(group, sign, ''))).text
}

function cells(
  { task, verdict, level, stats, episodes, cost }: DeliveredGroup,
  show: (advantage: number | null) => string,
  between: string,
): string[] {
  return [
    task,
    level ? `${verdict} (${level})` : verdict,
    stats.mean === null ? '–' : stats.mean.toFixed(3),
    stats.std === null ? '–' : stats.std.toFixed(3),
    episodes.map((episode) => show(episode.advantage)).join(between),
    String(cost.completion_tokens),
    cost.seconds.toFixed(1),
  ]
}

function layOut(rows: readonly string[][]): { text: string; width: number } {
  const widths = HEAD.map((name, column) =>
    Math.max(name.length, ...rows.map((row) => (row[column] ?? '').length)),
  )
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0
        return LEFT.has(column) ? cell.padEnd(width) : cell.padStart(width)
      })
      .join('  ')
      .trimEnd()
  const rule = widths.map((width) => '─'.repeat(width)).join('  ')
  return { text: [line(HEAD), rule, ...rows.map(line)].join('\n'), width: rule.length }
}

function signed(advantage: number | null): string {
  if (advantage === null) return '    –'
  return `${advantage < 0 ? '−' : '+'}${Math.abs(advantage).toFixed(2)}`
}

function sign(advantage: number | null): string {
  if (advantage === null) return '–'
  return advantage === 0 ? '0' : advantage < 0 ? '−' : '+'
}
