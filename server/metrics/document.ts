// docs/metrics.md, written from the catalogue.
import { PREFIX, SECTIONS } from './catalogue/catalogue.ts'
import type { Definition } from './catalogue/definition.ts'
import { LABEL_LISTS } from './labels.ts'

const HEAD = `# Metrics

\`GET /metrics\` (role \`metrics\`) answers in Prometheus' text form, and in OpenMetrics with the ids of episodes as exemplars
where that is asked for. Every name begins with \`${PREFIX}\`. Beside them stand Node's own (\`nodejs_*\`, \`process_*\`).

Every closed combination of labels stands at 0 from the start. Gauges marked *once known* have no sample before that: what
nobody has told is neither 0 nor well. A label value that no list has is counted as \`other\`, and
\`${PREFIX}label_overflow_total\` says how often. Lists in italics come from the configuration. Nothing that a request brings
(a batch, a task, an id, a path, an error) is ever a label.

Two laws hold at every scrape:

- \`groups_started_total\` − \`groups_finished_total\` = \`groups_in_flight\`
- \`groups_finished_total\` + \`recovered_items_total{item="group"}\` − \`groups_settled_total\` =
  \`queue_depth{queue="ready"}\` + \`leases_active\`

Means and deviations of rewards come from the three sums (\`reward_positive_sum_total\` and so on) over \`reward_count\`: the
\`_sum\` of a histogram with negative values falls, which Prometheus takes for a restart. The reward's unit is the episode.
This page, the dashboard and the rules are written by \`pnpm grafana\`.
`

/** The whole page. */
export function metricsDocument(): string {
  const sections = Object.entries(SECTIONS).map(([title, table]) => section(title, table))
  return [HEAD, ...sections, labelTable()].join('\n')
}

function section(title: string, table: Record<string, Definition>): string {
  const rows = Object.entries(table).map(
    ([name, { kind, labels, unit, buckets, help, onceKnown }]) =>
      `| \`${name}\` | ${kind}${onceKnown ? ', *once known*' : ''} | ${labelCell(labels)} | ${unit} | ${cell(help)}${bucketNote(buckets)} |`,
  )
  return [
    `## ${title}`,
    '',
    '| metric | type | labels | unit | meaning |',
    '|---|---|---|---|---|',
    ...rows,
    '',
  ].join('\n')
}

function labelCell(labels: string): string {
  if (labels === '') return '–'
  return labels
    .split(' ')
    .map((word) => {
      const [name, list = name] = word.split(':') as [string, string?]
      if (!(list in LABEL_LISTS)) return `*${name}*`
      return name === list ? `${name}` : `${name} (${list})`
    })
    .join(', ')
}

function bucketNote(buckets: readonly number[] | undefined): string {
  return buckets ? `; buckets ${buckets.join(' ')}` : ''
}

function labelTable(): string {
  const rows = Object.entries(LABEL_LISTS).map(
    ([list, values]) => `| \`${list}\` | ${values.join(', ')} |`,
  )
  return ['## Closed lists', '', '| list | values |', '|---|---|', ...rows, ''].join('\n')
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|')
}
