// The template variables of the dashboard: which there are, and what they may be set to.
import { createDashboard } from '../grafana/dashboard.ts'
import { asked, type QuerySource } from './query-source.ts'

export interface Variable {
  name: string
  /** Present values of its label, in order. */
  values: string[]
}

interface Declared {
  name: string
  /** Gives a series for each value of `of`. */
  query: string
  of: string
}

/** As dashboard.json declares them, by `label_values(metric, label)`. */
export function declaredVariables(): Declared[] {
  return (createDashboard().templating.list ?? []).flatMap(({ type, name, definition = '' }) => {
    const [, metric, of] = /^label_values\((\w+), (\w+)\)$/.exec(definition) ?? []
    return type === 'query' && metric && of
      ? [{ name, of, query: `sum by (${of}) (${metric})` }]
      : []
  })
}

/** A variable whose source does not answer has no values. */
export function presentValues(source: QuerySource, now: number): Promise<Variable[]> {
  return Promise.all(
    declaredVariables().map(async ({ name, of, query }) => {
      const { rows } = await asked(source, query, [now])
      const values = rows.flatMap(({ labels, values: [value] }) =>
        labels[of] === undefined || Number.isNaN(value) ? [] : [labels[of]],
      )
      return { name, values: values.sort((a, b) => a.localeCompare(b, 'en', { numeric: true })) }
    }),
  )
}
