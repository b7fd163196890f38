// `paddock demo`: starts everything, runs two batches over HTTP as a trainer would, and shows what came of them.
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { DeliveredGroup } from '../../protocol/group.ts'
import { createApiClient } from '../runtime/api-client.ts'
import { batchSummary } from './batch-summary.ts'
import { groupTable } from './group-table.ts'
import { openPlayground, type Playground } from './playground.ts'
import { type ProgressBar, progressBar } from './progress-bar.ts'

export interface DemoOptions {
  /** Leave server and simulator running, and say in one JSON line where they are. */
  keep: boolean
  port: number
  /** Seconds after which `keep` ends by itself; null: never. */
  duration: number | null
  /** One JSON object in the place of the table. */
  json: boolean
}

const GROUP_SIZE = 8
const ARITHMETIC_TASKS = 6
/** Few enough for a table that fits on a screen. */
const DEMO_TASKS = 'office/dev-'

/** A policy that is often right: enough of everything that a table shows something of each kind. */
const SIMULATOR_FLAGS = [
  ['--mix', 'correct=0.5,wrong=0.25,forbidden=0.1,malformed=0.1,truncated=0.03,prose=0.02'],
  ['--latency', 'lognormal:20,0.5'],
  ['--fault', '500=0.02'],
].flat()

export async function demo(options: DemoOptions, log: Logger): Promise<void> {
  const { keep, port, json } = options
  if (!keep) process.stderr.write('Starting a policy simulator and the server …\n')
  const playground = await openPlayground({ port, simulatorFlags: SIMULATOR_FLAGS }, log)
  try {
    if (keep) await stay(playground, options.duration)
    else await show(playground, json)
  } finally {
    await playground.close()
  }
}

/** The one line on standard output, then nothing until a signal or the end of `duration`. */
async function stay({ running, simulator }: Playground, duration: number | null): Promise<void> {
  const { tasks } = await createApiClient(running.url).tasks()
  const packs = [...new Set(tasks.map((task) => task.pack))]
  const ready = {
    url: running.url,
    policy_url: simulator.url,
    backend: 'main',
    model: simulator.model,
    packs,
  }
  process.stdout.write(`${JSON.stringify(ready)}\n`)
  if (process.stderr.isTTY)
    process.stderr.write(`The routes are described at ${running.url}/docs. Ctrl-C stops both.\n`)
  const stop = new AbortController()
  const { signal } = stop
  const ends = [once(process, 'SIGTERM', { signal }), once(process, 'SIGINT', { signal })]
  if (duration !== null) ends.push(delay(duration * 1000, [], { signal }))
  await Promise.race(ends)
  stop.abort()
  await Promise.allSettled(ends)
}

async function show({ running }: Playground, json: boolean): Promise<void> {
  const client = createApiClient(running.url)
  const office = (await client.tasks('office')).tasks.filter(({ id }) => id.startsWith(DEMO_TASKS))
  const arithmetic = (await client.tasks('arithmetic')).tasks.slice(0, ARITHMETIC_TASKS)
  const ids = ['demo-office', 'demo-arithmetic']
  for (const [index, tasks] of [office, arithmetic].entries())
    await client.submit({
      id: ids[index],
      tasks: tasks.map(({ id }) => ({ task: id })),
      group_size: GROUP_SIZE,
      policy: { backend: 'main', sampling: { temperature: 1, max_tokens: 1024 } },
    })
  const total = GROUP_SIZE * (office.length + arithmetic.length)
  const bar = progressBar('Episodes', total, process.stderr)
  const [groups] = await Promise.all([
    Promise.all(ids.map((id) => leaseAll(client, id))),
    watch(client, ids, bar),
  ])
  bar.stop()
  const progress = await Promise.all(ids.map((id) => client.progress(id)))
  const text = json
    ? JSON.stringify({ batches: progress, groups: groups.flat().map(withoutTokens) })
    : `${groupTable(groups.flat(), process.stdout.columns)}\n\n${progress.map(batchSummary).join('\n')}`
  process.stdout.write(`${text}\n`)
}

/** Megabytes of ids are for a trainer. */
function withoutTokens({ episodes, ...group }: DeliveredGroup) {
  return { ...group, episodes: episodes.map(({ samples: _, ...episode }) => episode) }
}

/** What a trainer does: lease, train, acknowledge, until the batch is done. */
async function leaseAll(
  client: ReturnType<typeof createApiClient>,
  batch: string,
): Promise<DeliveredGroup[]> {
  const groups: DeliveredGroup[] = []
  for (;;) {
    const leased = await client.lease(batch, { max: 4, lease_s: 60, wait_s: 20 })
    if (leased.done) return groups
    if (leased.groups.length > 0) await client.ack(batch, leased.groups)
    groups.push(...leased.groups)
  }
}

async function watch(
  client: ReturnType<typeof createApiClient>,
  ids: string[],
  bar: ProgressBar,
): Promise<void> {
  for (;;) {
    const progress = await Promise.all(ids.map((id) => client.progress(id)))
    bar.update(progress.reduce((sum, { episodes }) => sum + episodes.finished, 0))
    if (progress.every(({ state }) => state !== 'running')) return
    await delay(200)
  }
}
