// An evaluation's report as text: a table for each k with one line a family, and what was never scored.
import { fixed } from '../../protocol/figure.js'
import type { EvaluationReport } from '../../reward/evaluation.ts'
import { type PassRates, type PassReport, ratesOf } from '../../reward/pass-at-k.ts'
import { cut, table } from './table.ts'

/** Plain text. `byTask`: with a line each task too. Where a table would be wider than `columns`, its heads and names are shortened. */
export function evaluationText(
  report: EvaluationReport,
  byTask = false,
  columns = Number.POSITIVE_INFINITY,
): string {
  const { settings, pass } = report
  const parts = pass.map(
    (one) =>
      `k = ${one.k}, passed from a reward of ${settings.threshold}\n\n${rates(report, one, byTask, columns)}\n\n${meaning(one.k)}`,
  )
  return [...parts, closing(report)].join('\n\n')
}

type Means = { tasks: string; mean: number | null; rates: PassRates | null }

function rates(
  report: EvaluationReport,
  pass: PassReport,
  byTask: boolean,
  columns: number,
): string {
  const { reward, settings } = report
  const { k, standard_errors, intervals } = pass
  const head = [
    byTask ? 'family or task' : 'family',
    byTask ? 'passed' : 'tasks',
    'mean over tasks',
    ...[`pass@${k}`, `pass^${k} all_passed`, `pass^${k} power`, `pass^${k} unbiased`],
  ]
  const line = (name: string, { tasks, mean, rates }: Means) => [
    name,
    tasks,
    fixed(mean),
    ...RATES.map((rate) => fixed(rates?.[rate])),
  ]
  const families = pass.families.map(({ family, rates }) => {
    const own = reward.families.find((one) => one.family === family)
    const tasks = counted(own?.tasks ?? 0, byTask)
    return line(family, { tasks, mean: own?.mean ?? null, rates })
  })
  const tasks = report.tasks.map(({ task, passed, scored, mean }) =>
    line(task, { tasks: `${passed} of ${scored}`, mean, rates: ratesOf(scored, passed, k) }),
  )
  const all = line('all', {
    tasks: counted(reward.tasks, byTask),
    mean: reward.mean,
    rates: pass.rates,
  })
  const sure = <Value>(
    name: string,
    show: (value: Value) => string,
    mean: Value | null,
    own: Record<keyof PassRates, Value | null> | null,
  ) => [
    name,
    '',
    known(mean, reward.tasks, show),
    ...RATES.map((rate) => known(own?.[rate] ?? null, pass.tasks, show)),
  ]
  const rows = [
    ...(byTask ? tasks : []),
    ...families,
    all,
    sure('standard error', fixed, reward.standard_error, standard_errors),
    sure(`${Math.round(100 * settings.level)} % interval`, between, reward.interval, intervals),
  ]
  return fitted(head, rows, columns)
}

const FIRST = new Set([0])
/** Room that a name has in any case: that of the rows that say how sure the others are. */
const LEAST_NAME = 14

function fitted(head: readonly string[], rows: readonly string[][], columns: number): string {
  const wide = table(head, rows, FIRST)
  if (wide.width <= columns) return wide.text
  const short = head.map((name) => name.replace(/^pass\^\d+ /, ''))
  const over = table(short, rows, FIRST).width - columns
  if (over <= 0) return table(short, rows, FIRST).text
  const longest = Math.max(...rows.map(([name = '']) => name.length))
  const fitting = rows.map(([name = '', ...row]) => [
    cut(name, Math.max(LEAST_NAME, longest - over)),
    ...row,
  ])
  return table(short, fitting, FIRST).text
}

const RATES = ['pass_at_k', 'all_passed', 'power', 'unbiased'] as const

function counted(tasks: number, byTask: boolean): string {
  if (!byTask) return String(tasks)
  return tasks === 1 ? '1 task' : `${tasks} tasks`
}

/** The figure, or why there is none. */
function known<Value>(value: Value | null, tasks: number, show: (value: Value) => string): string {
  if (value !== null) return show(value)
  return tasks === 0 ? '–' : tasks === 1 ? ONE_TASK : NO_SPREAD
}

const ONE_TASK = 'one task'
const NO_SPREAD = 'no spread'

/** The names stand in the head of the table; here is what each of them counts. */
function meaning(k: number): string {
  if (k === 1)
    return 'pass@1, power and unbiased: the share of scored episodes that pass; all_passed: of tasks whose every one does'
  return [
    `pass@${k}: at least one of ${k} episodes passes. pass^${k}: all ${k} pass, counted as all_passed: every scored episode`,
    `does; power: (passed / scored)^${k}; unbiased: the chance that ${k} drawn from the scored ones all do.`,
  ].join('\n')
}

function closing(report: EvaluationReport): string {
  const { episodes, scored, truncated, unscored, mean_reward, pass } = report
  const apart = Object.entries(unscored).map(([outcome, count]) => `${count} ${outcome}`)
  const short = pass.filter((one) => one.short > 0)
  return [
    `${scored} of ${episodes} episodes were scored, ${truncated} of them cut short by a limit`,
    `mean reward ${fixed(mean_reward)} over episodes`,
    ...(apart.length > 0 ? [`in no mean and no rate: ${apart.join(', ')}`] : []),
    ...short.map(
      (one) =>
        `${one.short} ${one.short === 1 ? 'task has' : 'tasks have'} fewer than ${one.k} scored episodes and no rate for it`,
    ),
    ...unsure(report),
  ].join('\n')
}

/** What the words in the place of an interval mean, where they stand there. */
function unsure({ reward, pass }: EvaluationReport): string[] {
  const all = [reward, ...pass.map(({ tasks, standard_errors }) => ({ tasks, ...standard_errors }))]
  const alone = all.some(({ tasks }) => tasks === 1)
  const alike = all.some(({ tasks, ...one }) => tasks > 1 && Object.values(one).includes(null))
  return [
    ...(alone
      ? [
          `${ONE_TASK}: how sure a figure is shows between tasks; more episodes of one do not tell it`,
        ]
      : []),
    ...(alike
      ? [
          `${NO_SPREAD}: no two tasks of a family differ, which does not tell how sure the figure is`,
        ]
      : []),
  ]
}

function between([low, high]: readonly [number, number]): string {
  return `${fixed(low)}–${fixed(high)}`
}
