// Rows of text as a table for a terminal: a head, a rule, and columns as wide as their widest cell.

/** Columns in `left` are text and stand to the left, figures to the right. `width` is that of the rule. */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  left: ReadonlySet<number>,
): { text: string; width: number } {
  const widths = head.map((name, column) =>
    Math.max(name.length, ...rows.map((row) => (row[column] ?? '').length)),
  )
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0
        return left.has(column) ? cell.padEnd(width) : cell.padStart(width)
      })
      .join('  ')
      .trimEnd()
  const rule = widths.map((width) => '─'.repeat(width)).join('  ')
  return { text: [line(head), rule, ...rows.map(line)].join('\n'), width: rule.length }
}

/** The text, or as much of it as there is room for and an ellipsis. */
export function cut(text: string, room: number): string {
  return text.length <= room ? text : `${text.slice(0, Math.max(1, room - 1))}…`
}
