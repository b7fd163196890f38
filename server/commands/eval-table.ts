// An evaluation's report as text: a table for each k with one line a family, and what was never scored.
import type { EvaluationReport } from '../../reward/evaluation.ts'
import type { PassRates, PassReport } from '../../reward/pass-at-k.ts'
import { table } from './table.ts'

/** Plain text: a terminal and a pipe get the same. */
export function evaluationText(report: EvaluationReport): string {
  const { settings, pass } = report
  const parts = pass.map(
    (one) => `k = ${one.k}, passed from a reward of ${settings.threshold}\n\n${rates(report, one)}`,
  )
  return [...parts, closing(report)].join('\n\n')
}

function rates({ reward, settings }: EvaluationReport, pass: PassReport): string {
  const { k } = pass
  const head = [
    'family',
    'tasks',
    'mean over tasks',
    `pass@${k}`,
    `pass^${k} all_passed`,
    `pass^${k} power`,
    `pass^${k} unbiased`,
  ]
  const line = (name: string, tasks: number, mean: number | null, own: PassRates | null) => [
    name,
    String(tasks),
    share(mean),
    share(own?.pass_at_k),
    share(own?.all_passed),
    share(own?.power),
    share(own?.unbiased),
  ]
  const families = pass.families.map(({ family, rates }) => {
    const own = reward.families.find((one) => one.family === family)
    return line(family, own?.tasks ?? 0, own?.mean ?? null, rates)
  })
  const { intervals } = pass
  const sure = [
    `${Math.round(100 * settings.level)} % interval`,
    '',
    between(reward.interval),
    between(intervals?.pass_at_k),
    between(intervals?.all_passed),
    between(intervals?.power),
    between(intervals?.unbiased),
  ]
  const rows = [...families, line('all', reward.tasks, reward.mean, pass.rates), sure]
  return table(head, rows, new Set([0])).text
}

function closing({
  episodes,
  scored,
  truncated,
  unscored,
  mean_reward,
  pass,
}: EvaluationReport): string {
  const apart = Object.entries(unscored).map(([outcome, count]) => `${count} ${outcome}`)
  const short = pass.filter((one) => one.short > 0)
  return [
    `${scored} of ${episodes} episodes were scored, ${truncated} of them cut short by a limit`,
    `mean reward ${share(mean_reward)} over episodes`,
    ...(apart.length > 0 ? [`in no mean and no rate: ${apart.join(', ')}`] : []),
    ...short.map(
      (one) =>
        `${one.short} ${one.short === 1 ? 'task has' : 'tasks have'} fewer than ${one.k} scored episodes and no rate for it`,
    ),
  ].join('\n')
}

function share(value: number | null | undefined): string {
  return value === null || value === undefined ? '–' : value.toFixed(3)
}

function between(interval: readonly [number, number] | null | undefined): string {
  return interval ? `${share(interval[0])}–${share(interval[1])}` : '–'
}
