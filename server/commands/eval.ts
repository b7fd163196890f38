// `paddock eval`: plays tasks on a running server without training on them, and says how often they are solved.
import { writeFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { PaddockError } from '../../protocol/errors.ts'
import type { JsonObject } from '../../protocol/json.ts'
import { type ApiClient, createApiClient } from '../runtime/api-client.ts'
import { evaluationText } from './eval-table.ts'
import { type ProgressBar, progressBar } from './progress-bar.ts'
import type { Streams } from './streams.ts'

export interface EvalOptions {
  url: string
  token?: string | undefined
  /** Episodes of each task. */
  episodes: number
  backend: string
  temperature: number
  maxTokens: number
  k?: number[] | undefined
  threshold?: number | undefined
  seed: number
  /** True: JSON in the place of the table; a path: JSON in that file beside it. */
  json?: string | true | undefined
  /** A line each task too. */
  tasks?: true | undefined
}

/** How often a batch that plays is looked at, milliseconds. */
const LOOK_MS = 200

/**
 * `names` are tasks (`office/dev-04-interview-slot`) or packs (`office`). Returns the exit code: 1 where not one episode
 * was scored.
 */
export async function evaluate(
  names: readonly string[],
  options: EvalOptions,
  { stdout, stderr }: Pick<Streams, 'stdout' | 'stderr'> = process,
): Promise<number> {
  const client = createApiClient(options.url, options.token)
  const tasks = await tasksOf(client, names)
  const { id } = await client.submit(requestOf(tasks, options))
  stderr.write(
    `batch ${id}: ${tasks.length} ${tasks.length === 1 ? 'task' : 'tasks'} × ${options.episodes} episodes\n`,
  )
  const bar = progressBar('Episodes', tasks.length * options.episodes, stderr)
  await played(client, id, bar).finally(bar.stop)
  const report = await client.evaluation(id, queryOf(options))
  await takeAll(client, id)
  if (typeof options.json === 'string')
    await writeFile(options.json, `${JSON.stringify(report, null, 2)}\n`)
  stdout.write(
    options.json === true
      ? `${JSON.stringify(report)}\n`
      : `${evaluationText(report, options.tasks, columnsOf(stdout))}\n`,
  )
  return report.scored === 0 ? 1 : 0
}

/** Of a terminal; a pipe takes any width. */
const columnsOf = (stdout: Streams['stdout']): number | undefined =>
  (stdout as { columns?: number }).columns

async function tasksOf(client: ApiClient, names: readonly string[]): Promise<string[]> {
  const known = (await client.tasks()).tasks
  return names.flatMap((name) => {
    const found = known.filter(({ id, pack }) => id === name || pack === name)
    if (found.length > 0) return found.map(({ id }) => id)
    const packs = [...new Set(known.map(({ pack }) => pack))].join(', ')
    throw new PaddockError('not_found', `no task and no pack ${name}; the packs are ${packs}`)
  })
}

function requestOf(tasks: readonly string[], options: EvalOptions): JsonObject {
  const { episodes, backend, temperature, maxTokens, seed } = options
  return {
    mode: 'eval',
    tasks: tasks.map((task) => ({ task })),
    group_size: episodes,
    policy: { backend, sampling: { temperature, max_tokens: maxTokens, seed } },
  }
}

function queryOf({ k, threshold, seed }: EvalOptions): string {
  const query = new URLSearchParams({ seed: String(seed) })
  if (k) query.set('k', k.join(','))
  if (threshold !== undefined) query.set('threshold', String(threshold))
  return query.toString()
}

/** Its finished groups stay until the report is there: a batch of which nothing is left may be forgotten. */
async function played(client: ApiClient, id: string, bar: ProgressBar): Promise<void> {
  for (;;) {
    const { state, admission, groups, episodes } = await client.progress(id)
    bar.update(episodes.finished)
    if (state !== 'running') return
    // So many wait to be read that no further one starts: those are in the report already.
    if (admission === 'held' && groups.in_flight === 0) await takeOnce(client, id)
    else await delay(LOOK_MS)
  }
}

async function takeAll(client: ApiClient, id: string): Promise<void> {
  while (!(await takeOnce(client, id))) {}
}

async function takeOnce(client: ApiClient, id: string): Promise<boolean> {
  const { groups, done } = await client.lease(id, { max: 64, lease_s: 60, wait_s: 5 })
  if (groups.length > 0) await client.ack(id, groups)
  return done
}
