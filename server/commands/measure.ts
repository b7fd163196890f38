// How the benches measure: ways of doing the same that take turns in one run, and a table of what came of it.
import { progressBar } from './progress-bar.ts'
import type { Streams } from './streams.ts'

export interface MeasureOptions {
  /** How often the ways take turns. */
  rounds: number
  /** Least length of one measurement. */
  milliseconds: number
  /** One JSON object instead of a table. */
  json: boolean
}

/** How far a bench is, over so many ways: each is measured once a round, and once before the first. */
export function measurements(
  ways: number,
  { rounds }: MeasureOptions,
  stderr: Streams['stderr'],
): { measured(): void; stop(): void } {
  const bar = progressBar('Measurements', ways * (rounds + 1), stderr)
  let done = 0
  return { measured: () => bar.update(++done), stop: bar.stop }
}

/**
 * Amount a second of CPU for each way, median over rounds in which the ways take turns (A B A B). `measured` is called after
 * each measurement.
 */
export function medians(
  ways: Record<string, () => number>,
  { rounds, milliseconds }: MeasureOptions,
  measured: () => void,
): Record<string, number> {
  const names = Object.keys(ways)
  const rates = new Map<string, number[]>(names.map((name) => [name, []]))
  // The first round compiles the paths and is not counted.
  for (let round = 0; round <= rounds; round++)
    for (const name of names) {
      const found = rate(ways[name] as () => number, milliseconds)
      if (round > 0) rates.get(name)?.push(found)
      measured()
    }
  return Object.fromEntries(
    names.map((name) => {
      const sorted = (rates.get(name) ?? []).sort((a, b) => a - b)
      return [name, Number((sorted[Math.floor(sorted.length / 2)] as number).toPrecision(4))]
    }),
  )
}

/** What the machine does beside is no cost of the way: time is this process's own, its collector's threads included. */
function rate(run: () => number, milliseconds: number): number {
  const before = process.cpuUsage()
  let amount = 0
  let passed = 0
  do {
    amount += run()
    const { user, system } = process.cpuUsage(before)
    passed = (user + system) / 1000
  } while (passed < milliseconds)
  return (1000 * amount) / passed
}

/** Rows as text with columns of one width: the first `words` of them flush left, numbers flush right. */
export function aligned(rows: readonly (readonly string[])[], words: number): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  )
  return rows
    .map((row) =>
      row
        .map((cell, column) => {
          const width = widths[column] ?? 0
          return column < words ? cell.padEnd(width) : cell.padStart(width)
        })
        .join('  '),
    )
    .join('\n')
}
