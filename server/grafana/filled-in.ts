// A panel's query as Grafana sends it to Prometheus: its variables filled in.

/** Values of variables by name; a variable that is missing or empty stands for all. */
export type Chosen = Readonly<Record<string, readonly string[]>>

/** Rates over `window`, the shown range of `range`, and of environments, modes and backends those that are chosen. */
export function filledIn(expr: string, window = '5m', range = '1h', chosen: Chosen = {}): string {
  return expr
    .replaceAll('$__rate_interval', window)
    .replaceAll('$__range', range)
    .replaceAll(/\$(env|mode|backend)\b/g, (_, name) => pattern(chosen[name] ?? []))
}

/** A regular expression that only these values match, within the quotes of a PromQL string. */
function pattern(values: readonly string[]): string {
  if (values.length === 0) return '.*'
  return values
    .map((value) => value.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&'))
    .map((value) => JSON.stringify(value).slice(1, -1))
    .join('|')
}
