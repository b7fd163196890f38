// The figures of a load run: medians over its rounds, and the ratio of server to bare loop of the same round.
import type { ServerRates } from './server-load.ts'

export interface Round {
  server: ServerRates
  /** Requests a second of the bare loop that ran right after it. */
  bare: number
}

export interface Report {
  rounds: number
  turns_per_s: number
  episodes_per_s: number
  main_loop_delay_p99_ms: number
  resident_mb: number
  bare_turns_per_s: number
  /** Median over rounds of the round's own ratio. */
  ratio: number
  ratio_min: number
  ratio_max: number
  /** CPU of the simulator for one prepared reply, microseconds. */
  simulator_cpu_us_per_reply: number | null
}

export function summarize(
  rounds: readonly Round[],
  stats: { prepared?: { cpu_us_per_reply: number | null } },
): Report {
  const of = (value: (round: Round) => number) => median(rounds.map(value))
  const ratios = rounds.map(({ server, bare }) => server.turnsPerSecond / bare)
  return {
    rounds: rounds.length,
    turns_per_s: of(({ server }) => server.turnsPerSecond),
    episodes_per_s: of(({ server }) => server.episodesPerSecond),
    main_loop_delay_p99_ms: of(({ server }) => server.loopDelayP99 * 1000),
    resident_mb: Math.max(...rounds.map(({ server }) => server.residentMb)),
    bare_turns_per_s: of(({ bare }) => bare),
    ratio: median(ratios),
    ratio_min: Math.min(...ratios),
    ratio_max: Math.max(...ratios),
    simulator_cpu_us_per_reply: stats.prepared?.cpu_us_per_reply ?? null,
  }
}

export function formatReport(report: Report): string {
  const figure = (value: number, digits = 0) => value.toFixed(digits)
  const rows = [
    [
      'server',
      `${figure(report.turns_per_s)} turns/s`,
      `${figure(report.episodes_per_s)} episodes/s`,
    ],
    [
      'bare loop',
      `${figure(report.bare_turns_per_s)} turns/s`,
      'same bytes, same simulator, answers dropped',
    ],
    [
      'ratio',
      figure(report.ratio, 2),
      `${figure(report.ratio_min, 2)} to ${figure(report.ratio_max, 2)} over ${report.rounds} rounds`,
    ],
    ['main-loop delay', `${figure(report.main_loop_delay_p99_ms, 1)} ms`, 'p99, in the server'],
    ['resident memory', `${figure(report.resident_mb)} MB`, 'of the server, threads included'],
    ['prepared reply', `${report.simulator_cpu_us_per_reply ?? '–'} µs`, 'CPU of the simulator'],
  ]
  return rows
    .map(
      ([name = '', value = '', note = '']) => `${name.padEnd(16)} ${value.padStart(14)}   ${note}`,
    )
    .join('\n')
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2
}
