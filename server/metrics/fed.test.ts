// No series without a writer: each metric has an event or a reading, each event somebody who tells it, each level a source.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { CATALOGUE, PREFIX } from './catalogue/catalogue.ts'
import { labelLists } from './catalogue/definition.ts'
import { LABEL_LISTS, type LabelValue } from './labels.ts'
import { createMetrics, type MetricsSources } from './metrics.ts'

const SERVER = fileURLToPath(new URL('..', import.meta.url))
const IS_SOURCE = /(?<!\.(test|testkit|browser))\.ts$/

/** Text of the server's own sources under a folder, by path. */
function sourcesOf(folder: string): { path: string; text: string }[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => IS_SOURCE.test(name))
    .map((name) => ({ path: join(folder, name), text: readFileSync(join(folder, name), 'utf8') }))
}

const sources = sourcesOf(SERVER)
const textOf = (keep: (path: string) => boolean) =>
  sources.flatMap(({ path, text }) => (keep(path) ? [text] : [])).join('\n')
const METRICS = join(SERVER, 'metrics')

/** Everything that is read at a scrape, and none of it 0. */
const BUSY: MetricsSources = {
  pool: () => ({
    ...{ threads: 6, busy: 3, starting: 2, queued: 4, oldestQueued: 5 },
    busySeconds: [7],
  }),
  queueDepth: () => ({ episodes: 1, ready: 2, leased: 3 }),
  queueCapacity: { batches: 4, ready: 5 },
  batches: () => ({
    ...{ playing: 1, oldest: 2, heldBytes: 3 },
    paused: new Set(LABEL_LISTS.pause_reason),
  }),
  oldest: () => ({ episode: 1, ready: 2 }),
  backendInFlight: () => 1,
  socketBytes: () => 1,
  store: () => ({ bytes: 1, freeBytes: 2 }),
}
const LISTS = {
  env: ['office'],
  backend: ['main'],
  component: { office: ['safety'] },
  version: '1',
  node: 'v20',
}

test('each metric of the catalogue is counted, set or observed', () => {
  const writers = textOf((path) => path.startsWith(METRICS) && !path.includes('catalogue'))
  const unfed = Object.keys(CATALOGUE).filter(
    (name) => !new RegExp(`\\b(inc|set|observe)\\(\\s*'${name}'`).test(writers),
  )
  expect(unfed).toEqual([])
})

test('each event is told by somebody', () => {
  // These two measure others on their behalf and tell what they see.
  const tells = (path: string) => !path.startsWith(METRICS) || /measured-\w+\.ts$/.test(path)
  const text = textOf(tells)
  const { text: _, samples: __, ...events } = createMetrics(LISTS, BUSY)
  const untold = Object.keys(events).filter((name) => !new RegExp(`\\.${name}\\b`).test(text))
  expect(untold).toEqual([])
})

/** Values that follow from what others say: their numbers and names are looked up in the list. */
const LOOKED_UP = ['ws_close', 'skip_reason', 'sampling_param', 'contract_field']

test('each value of a closed list is written by somebody', () => {
  const text = textOf((path) => !path.endsWith('labels.ts')) + protocolText()
  const unwritten = Object.entries(LABEL_LISTS)
    .filter(([list]) => !LOOKED_UP.includes(list))
    .flatMap(([list, values]) =>
      values
        .filter((value) => !new RegExp(`['"\`]${value}['"\`]|\\b${value}:`).test(text))
        .map((value) => `${list}: ${value}`),
    )
  expect(unwritten).toEqual([])
})

test('each closed list is used by a metric', () => {
  const used = new Set(
    Object.values(CATALOGUE).flatMap((definition) =>
      labelLists(definition).map(({ list }) => list),
    ),
  )
  expect(Object.keys(LABEL_LISTS).filter((list) => !used.has(list as never))).toEqual([])
})

describe('what is read at a scrape', () => {
  const READ =
    /^(queue_\w+|pool_threads|leases_active|admission_paused|store_\w*bytes|ws_buffered_bytes|backend_in_flight)$/
  /** Nothing bounds these two queues. */
  const UNBOUNDED = /queue_capacity\{queue="(episode|turn)"\}/

  test('has a source for each of its series', async () => {
    const { text } = await createMetrics(LISTS, BUSY).text('plain')
    const lines = [...text.matchAll(/^paddock_(\w+)(\{.*\})? (\S+)$/gm)]
    const read = lines.filter(([, name = '']) => READ.test(name))
    expect(read.length).toBeGreaterThan(20)
    const silent = read.filter(([line, , , value]) => value === '0' && !UNBOUNDED.test(line))
    expect(silent.map(([line]) => line)).toEqual([])
  })
})

describe('by reason', () => {
  const counted = async (
    name: string,
    tell: (metrics: ReturnType<typeof createMetrics>) => void,
  ) => {
    const metrics = createMetrics(LISTS, BUSY)
    tell(metrics)
    const { text } = await metrics.text('plain')
    const lines = [
      ...text.matchAll(new RegExp(`^${PREFIX}${name}\\{\\w+="(\\w+)"\\} (\\d+)$`, 'gm')),
    ]
    return Object.fromEntries(
      lines.flatMap(([, reason, n]) => (n === '0' ? [] : [[reason, Number(n)]])),
    )
  }

  test('groups that a trainer gave back, where its reason is a word of the list', async () => {
    const reasons: LabelValue<'skip_reason'>[] = [...LABEL_LISTS.skip_reason]
    const skipped = await counted('trainer_skipped_groups_total', (metrics) => {
      for (const reason of reasons) metrics.trainerSkipped(reason, 2)
      metrics.trainerSkipped('the consumer stopped', 3)
    })
    expect(skipped).toEqual({ ...Object.fromEntries(reasons.map((one) => [one, 2])), other: 5 })
  })

  test('refusals, by the bound that refused: what failed in mid-work is none', async () => {
    const bounds = ['queue_full', 'ready_full', 'bytes_full', 'disk_full'] as const
    const rejected = await counted('requests_rejected_total', (metrics) => {
      for (const code of [...bounds, 'too_many_requests'] as const)
        metrics.httpAnswered('/v1/batches', 429, 0, code)
      for (const code of ['draining', 'not_graded', 'store_failed'] as const)
        metrics.httpAnswered('/v1/batches', 503, 0, code)
      metrics.httpAnswered('/readyz', 503, 0, null)
      metrics.httpAnswered('/v1/batches', 422, 0, 'invalid_task')
    })
    const each = Object.fromEntries(bounds.map((bound) => [bound, 1]))
    expect(rejected).toEqual({ ...each, rate_limited: 1, draining: 1, invalid: 1 })
  })
})

/** Lists that the protocol has, and the rooms that write their values. */
function protocolText(): string {
  const rooms = ['protocol', 'reward', 'rollout'].map((room) => join(SERVER, '..', room))
  return rooms.flatMap((room) => sourcesOf(room).map(({ text }) => text)).join('\n')
}
