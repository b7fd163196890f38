// The six figures that say whether the run learns: the first panels of the dashboard, in words.
import { get, Refused } from './api.js'
import { figure } from './figure.js'

/** A token that may not read metrics is not asked about again. */
let refused = false

/** The stat panels with their last known value; empty where this token may not read metrics. */
export async function figuresOf() {
  if (refused) return []
  try {
    const { figures } = await get('/v1/dashboard/figures')
    return figures.map(({ value, unit, ...figure }) => ({ ...figure, text: withUnit(value, unit) }))
  } catch (error) {
    refused = error instanceof Refused && error.status === 403
    if (refused) return []
    throw error
  }
}

/** A value in the unit that Grafana names. */
export function withUnit(value, unit) {
  if (value === null || value === undefined) return '\u2013'
  if (unit === 'percentunit') return `${figure(100 * value)} %`
  if (unit === 's') return `${figure(value)} s`
  return figure(value)
}
