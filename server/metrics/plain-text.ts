// Metrics in OpenMetrics form written in Prometheus' older text form, which has no exemplars and names counters in full.

/** What a client of the older form reads; `text` is as prom-client writes OpenMetrics. */
export function plainText(text: string): string {
  const counters = new Set([...text.matchAll(/^# TYPE (\S+) counter$/gm)].map(([, name]) => name))
  return text
    .replace(/^# (HELP|TYPE) (\S+)/gm, (line, word, name) =>
      counters.has(name) ? `# ${word} ${name}_total` : line,
    )
    .replace(/^(\S+_bucket\{[^}]*\} \S+) # .*$/gm, '$1')
    .replace(/^# EOF\n/m, '')
}
