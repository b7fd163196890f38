// Finished groups as a table for a terminal.
import type { DeliveredGroup } from '../../protocol/group.ts'

const HEAD = ['task', 'verdict', 'mean reward', 'std', 'advantages', 'tokens', 'seconds']

/** One line a group: figures to the right, advantages in the order of the episodes (– for one without reward). */
export function groupTable(groups: readonly DeliveredGroup[]): string {
  const rows = [...groups]
    .sort((a, b) => a.task.localeCompare(b.task, 'en', { numeric: true }))
    .map(({ task, verdict, level, stats, episodes, cost }) => [
      task,
      level ? `${verdict} (${level})` : verdict,
      figure(stats.mean, 3),
      figure(stats.std, 3),
      episodes.map((episode) => signed(episode.advantage)).join(' '),
      String(cost.completion_tokens),
      cost.seconds.toFixed(1),
    ])
  const widths = HEAD.map((name, column) =>
    Math.max(name.length, ...rows.map((row) => (row[column] ?? '').length)),
  )
  const left = new Set([0, 1, 4])
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) =>
        left.has(column) ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd()
  const rule = widths.map((width) => '─'.repeat(width)).join('  ')
  return [line(HEAD), rule, ...rows.map(line)].join('\n')
}

function figure(value: number | null, digits: number): string {
  return value === null ? '–' : value.toFixed(digits)
}

function signed(value: number | null): string {
  if (value === null) return '    –'
  return `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(2)}`
}
