// A panel's query as Grafana sends it to Prometheus: its variables filled in.

/** All environments, modes and backends, rates over `window` and the shown range of `range`. */
export function filledIn(expr: string, window = '5m', range = '1h'): string {
  return expr
    .replaceAll('$__rate_interval', window)
    .replaceAll('$__range', range)
    .replaceAll(/\$(env|mode|backend)\b/g, '.*')
}
