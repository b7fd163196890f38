// Holds a PromQL expression against the catalogue: does it parse, and does each metric and label in it exist?
import { parser } from '@prometheus-io/lezer-promql'
import { CATALOGUE, PREFIX } from '../metrics/catalogue/catalogue.ts'
import { labelLists } from '../metrics/catalogue/definition.ts'
import { filledIn } from './filled-in.ts'
import { recordingRules, WINDOWS } from './rules.ts'

/** What Prometheus adds to every series, and what stands in Node's own metrics. */
const ADDED = ['job', 'instance']
const FOREIGN: Record<string, string[]> = {
  up: [],
  ALERTS: ['alertname', 'alertstate', 'severity'],
  nodejs_eventloop_lag_p99_seconds: [],
}

/** Every series that may be asked for, with its own labels. */
function knownSeries(): Map<string, string[]> {
  const known = new Map(Object.entries(FOREIGN))
  for (const [name, definition] of Object.entries(CATALOGUE)) {
    const labels = labelLists(definition).map((label) => label.name)
    if (definition.kind !== 'histogram') known.set(PREFIX + name, labels)
    else {
      known.set(`${PREFIX}${name}_bucket`, [...labels, 'le'])
      for (const suffix of ['_sum', '_count']) known.set(PREFIX + name + suffix, labels)
    }
  }
  for (const { record } of recordingRules(WINDOWS)) {
    const [level = ''] = record.split(':')
    known.set(record, [...level.split('_'), 'outcome'])
  }
  return known
}

const KNOWN = knownSeries()
const LABELS = new Set([...KNOWN.values()].flat().concat(ADDED))

/** Labels that the dashboard has a picker for. */
const PICKED = ['env', 'mode', 'backend']

/** Each selector of a panel that leaves out a picker although what it reads, recorded or not, has that label. */
export function unpicked(expr: string): string[] {
  return selectorsIn(expr).flatMap(({ name, text }) =>
    labelsBehind(name)
      .filter((label) => PICKED.includes(label) && !text.includes(`${label}=~"$${label}"`))
      .map((label) => `${name} leaves out $${label}`),
  )
}

/** Of the series, and of those that its recording rule reads. */
function labelsBehind(name: string): string[] {
  const rule = recordingRules(WINDOWS).find(({ record }) => record === name)
  const read = rule ? selectorsIn(rule.expr).map((one) => one.name) : []
  return [...new Set([...(KNOWN.get(name) ?? []), ...read.flatMap(labelsBehind)])]
}

function selectorsIn(expr: string): { name: string; text: string }[] {
  // The parser knows durations, not the variables that stand for them.
  const text = expr.replaceAll(/\$__(rate_interval|range)/g, '5m')
  const found: { name: string; text: string }[] = []
  parser.parse(text).iterate({
    enter({ name, from, to }) {
      const word = text.slice(from, to)
      if (name === 'VectorSelector')
        found.push({ name: /^[\w:]+/.exec(word)?.[0] ?? '', text: word })
    },
  })
  return found
}

/** One sentence for each thing that is wrong; empty for a sound expression. */
export function lint(expr: string): string[] {
  const text = filledIn(expr)
  const problems: string[] = []
  let own: string[] = []
  parser.parse(text).iterate({
    enter({ name, from, to, type }) {
      const word = text.slice(from, to)
      if (type.isError) problems.push(`syntax at ${from}: ${text.slice(from, from + 20)}`)
      if (name === 'VectorSelector') {
        const metric = /^[\w:]+/.exec(word)?.[0] ?? ''
        if (!KNOWN.has(metric)) problems.push(`no metric ${metric}`)
        own = [...(KNOWN.get(metric) ?? []), ...ADDED]
      }
      if (name === 'UnquotedLabelMatcher') {
        const label = /^\w+/.exec(word)?.[0] ?? ''
        if (!own.includes(label)) problems.push(`no label ${label}: there are ${own.join(', ')}`)
      }
      if (name === 'LabelName' && !LABELS.has(word)) problems.push(`no label ${word}`)
    },
  })
  return problems
}
