// The six figures that say whether the run learns: the first panels of the dashboard, in words.
import { get } from './api.js'
import { figure } from './format.js'

export const figuresOf = async () => []

/** A value in the unit that Grafana names. */
export function withUnit(value, unit) {
  if (value === null || value === undefined) return '\u2013'
  if (unit === 'percentunit') return `${figure(100 * value)} %`
  if (unit === 's') return `${figure(value)} s`
  return figure(value)
}
