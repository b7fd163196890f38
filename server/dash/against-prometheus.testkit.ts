// Every query of the dashboard put to Debian's Prometheus and to the samples in memory, over the same samples: they have to agree.
// `pnpm against-prometheus`, for .ci/rules; exit code 1 where they part.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { createDashboard } from '../grafana/dashboard.ts'
import { filledIn } from '../grafana/filled-in.ts'
import { recordingRules, WINDOWS } from '../grafana/rules.ts'
import { createSeries } from '../metrics/series.ts'
import { annotationQueries } from './annotations.ts'
import { boardQueries } from './board.ts'
import type { Row } from './evaluate.ts'
import { createMemorySource, type MemorySource } from './memory-source.ts'
import { createPrometheusSource } from './prometheus-source.ts'
import type { QuerySource } from './query-source.ts'
import type { Sample } from './ring.ts'
import { declaredVariables } from './variables.ts'

const INTERVAL_S = 10
const MOMENTS = 180
/** The process began anew here: counters are 0 again. */
const RESTART = 100
/** Sums in another order differ in their last digits. */
const TOLERANCE = 1e-9
/** On the hour, so that all moments are whole. */
const start = Math.floor(Date.now() / 3_600_000) * 3600 - 7200
const end = start + (MOMENTS - 1) * INTERVAL_S
const grid = Array.from({ length: 41 }, (_, at) => end - (40 - at) * 3 * INTERVAL_S)

const folder = mkdtempSync(join(tmpdir(), 'paddock-against-'))
try {
  const source = createMemorySource(boardQueries(), INTERVAL_S)
  const named = await namedSeries(source)
  const lines: string[] = []
  for (let moment = 0; moment < MOMENTS; moment++) {
    const at = start + moment * INTERVAL_S
    const samples = named.map((one, place) => ({ ...one, value: madeUp(one, place, moment) }))
    source.add(at, samples)
    for (const { name, labels, value } of samples)
      lines.push(`${name}{${labelText(labels)}} ${value} ${at}`)
  }
  const text = join(folder, 'samples.txt')
  writeFileSync(text, `${lines.join('\n')}\n# EOF\n`)
  const data = join(folder, 'data')
  promtool('tsdb', 'create-blocks-from', 'openmetrics', text, data)
  // Each rule at the very moments of the samples, as memory has it; a rule that reads rules finds them in the second round.
  for (let round = 0; round < 2; round++) {
    const found = await withPrometheus(data, (url) =>
      recordedLines(createPrometheusSource(url, INTERVAL_S)),
    )
    const more = join(folder, `recorded-${round}.txt`)
    writeFileSync(more, `${found.join('\n')}\n# EOF\n`)
    promtool('tsdb', 'create-blocks-from', 'openmetrics', more, data)
  }
  await withPrometheus(data, async (url) => {
    process.exitCode = (await compared(source, url)) ? 0 : 1
  })
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** What the recording rules come to, as lines to be read in. */
async function recordedLines(prometheus: QuerySource): Promise<string[]> {
  const moments = Array.from({ length: MOMENTS }, (_, moment) => start + moment * INTERVAL_S)
  const lines: string[] = []
  for (const { record, expr } of recordingRules(WINDOWS))
    for (const { labels, values } of await prometheus.range(expr, moments))
      for (const [at, value] of values.entries())
        if (!Number.isNaN(value))
          lines.push(`${record}{${labelText(labels)}} ${value} ${moments[at]}`)
  return lines
}

/** All series of two environments and two backends that the dashboard asks for. */
async function namedSeries({ metrics }: MemorySource): Promise<Sample[]> {
  const env = ['office', 'arithmetic']
  const series = createSeries({
    env,
    backend: ['main', 'second'],
    component: Object.fromEntries(env.map((name) => [name, ['completion', 'safety']])),
    version: '1',
    node: 'v20',
  })
  for (const name of env)
    for (const tool of ['dig', 'fill'])
      series.inc('tool_calls_total', { env: name, tool, outcome: 'ok' })
  return series.samples(metrics)
}

/** Counters rise by steps of their own and start anew once; buckets are cumulative; the rest goes up and down. */
function madeUp({ name, labels }: Sample, place: number, moment: number): number {
  const since = moment < RESTART ? moment : moment - RESTART
  if (name.endsWith('_bucket')) {
    const le = Number(labels.le?.replace('+Inf', 'Infinity'))
    return Math.floor(since * (1 + (2 * Math.atan(Number.isFinite(le) ? le : 1e9)) / Math.PI) * 3)
  }
  if (/_(total|count|sum)$/.test(name)) return since * (1 + (place % 7)) + (since % 3)
  return (place % 5) + Math.round(3 * Math.sin(moment / 9 + place)) + 4
}

function labelText(labels: Sample['labels']): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join(',')
}

function promtool(...args: string[]): void {
  execFileSync('promtool', args, { stdio: ['ignore', 'ignore', 'pipe'] })
}

async function withPrometheus<T>(data: string, use: (url: string) => Promise<T>): Promise<T> {
  const config = join(folder, 'prometheus.yml')
  writeFileSync(config, 'global: {}\n')
  const port = await freePort()
  const child: ChildProcess = spawn(
    'prometheus',
    [
      `--config.file=${config}`,
      `--storage.tsdb.path=${data}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--storage.tsdb.retention.time=10y',
      '--log.level=error',
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  )
  const ended = once(child, 'exit')
  try {
    const url = `http://127.0.0.1:${port}`
    while (!(await isReady(`${url}/-/ready`))) await wait(100)
    return await use(url)
  } finally {
    child.kill('SIGTERM')
    await ended
  }
}

function isReady(url: string): Promise<boolean> {
  return fetch(url).then(
    ({ ok }) => ok,
    () => false,
  )
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  return port
}

/** Prints what parts and how many agreed. */
async function compared(memory: MemorySource, url: string): Promise<boolean> {
  const prometheus = createPrometheusSource(url, INTERVAL_S)
  const panels = createDashboard().panels.flatMap((panel) =>
    'targets' in panel
      ? panel.targets.map(({ expr = '' }) => [panel.title ?? '', filledIn(expr, '50s', '15m')])
      : [],
  )
  const queries = [
    ...panels,
    ...declaredVariables().map(({ name, query }) => [name, query]),
    ...annotationQueries().map(({ name, expr }) => [name, expr]),
  ] as [string, string][]
  let agreed = 0
  let values = 0
  const parted: string[] = []
  for (const [title, query] of queries) {
    if (memory.obstacle(query) !== null) continue
    const here = told(await memory.range(query, grid))
    const there = told(await prometheus.range(query, grid))
    const difference = query.startsWith('topk')
      ? differenceOf(ranked(here), ranked(there))
      : differenceOf(here, there)
    if (difference) parted.push(`${title}: ${query}\n  ${difference}`)
    else agreed++
    for (const row of there.values()) values += row.filter((one) => !Number.isNaN(one)).length
  }
  for (const one of parted) console.log(one)
  console.log(
    `${agreed} of ${agreed + parted.length} queries have the ${values} values of Prometheus`,
  )
  return parted.length === 0 && values > 0
}

/** Rows with a value, by their labels. */
function told(rows: readonly Row[]): Map<string, Float64Array> {
  return new Map(
    rows
      .filter(({ values }) => values.some((value) => !Number.isNaN(value)))
      .map(({ labels, values }) => [labelText(sorted(labels)), values]),
  )
}

/** The values of each moment by their size: which of equal ones are kept, Prometheus does not say. */
function ranked(rows: Map<string, Float64Array>): Map<string, Float64Array> {
  const values = [...rows.values()]
  const columns = grid.map((_, at) =>
    Float64Array.from(values, (row) => row[at]!)
      .filter((value) => !Number.isNaN(value))
      .sort(),
  )
  return new Map(columns.map((column, at) => [`moment ${at}`, column]))
}

function sorted(labels: Row['labels']): Row['labels'] {
  return Object.fromEntries(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)))
}

function differenceOf(here: Map<string, Float64Array>, there: Map<string, Float64Array>) {
  for (const key of new Set([...here.keys(), ...there.keys()])) {
    const [mine, theirs] = [here.get(key), there.get(key)]
    if (!mine || !theirs) return `{${key}} is only in ${mine ? 'memory' : 'Prometheus'}`
    for (const [at, value] of mine.entries())
      if (!same(value, theirs[at]!))
        return `{${key}} at ${at} of ${mine.length}: ${value} in memory, ${theirs[at]} in Prometheus`
  }
  return null
}

function same(a: number, b: number): boolean {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) && Number.isNaN(b)
  return a === b || Math.abs(a - b) <= TOLERANCE * Math.max(1, Math.abs(a), Math.abs(b))
}
