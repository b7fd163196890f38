// `paddock replay --episode`: a stored episode played again, and the first turn in which it comes out otherwise.
import { readFile } from 'node:fs/promises'
import { PaddockError } from '../../protocol/errors.ts'
import type { JsonObject } from '../../protocol/json.ts'
import { parseJsonBody } from '../../protocol/json-body.ts'
import { type StoredEpisode, storedEpisodeSchema } from '../../protocol/trajectory.ts'
import { type Difference, replayEpisode } from '../../rollout/replay.ts'
import { showLedger } from './ledger.ts'
import type { NamedTask } from './named-task.ts'
import type { Streams } from './streams.ts'

/**
 * Writes one JSON object, and to standard error what differs. Gives the exit code: 1 where something does. `toTurn`
 * plays only so many turns.
 */
export function replayStored(
  stored: StoredEpisode,
  { task, environment }: NamedTask,
  toTurn: number | undefined,
  streams: Streams = process,
): number {
  const options = toTurn === undefined ? {} : { toTurn }
  const replay = replayEpisode(stored, task, environment, options)
  const same = replay.difference === null
  const answer = { episode: stored.id, task: task.id, same, ...replay }
  streams.stdout.write(`${JSON.stringify(answer)}\n`)
  if (replay.difference) streams.stderr.write(`paddock: ${sentenceOf(replay.difference)}\n`)
  return same ? 0 : 1
}

/** The trajectory in a file, as `GET /v1/episodes/:id` gives it. Throws `invalid_request` where it is none. */
export async function readStoredEpisode(path: string): Promise<StoredEpisode> {
  const bytes = await readFile(path).catch((cause: Error) => {
    throw new PaddockError('not_found', `${path} cannot be read: ${cause.message}`, { cause })
  })
  return storedEpisode(parseJsonBody(bytes), path)
}

/** The trajectory that a ledger's folder has; a server may have the folder open. */
export async function keptEpisode(folder: string, id: string): Promise<StoredEpisode> {
  const lines: string[] = []
  await showLedger(folder, id, (line) => void lines.push(line))
  return storedEpisode(JSON.parse(lines.join('')), `${id} in ${folder}`)
}

/** The trajectory that a running server has. */
export async function fetchStoredEpisode(server: string, id: string): Promise<StoredEpisode> {
  const url = new URL(`/v1/episodes/${encodeURIComponent(id)}`, server)
  const token = process.env.PADDOCK_SERVER__TOKEN
  const headers = new Headers(token === undefined ? {} : { authorization: `Bearer ${token}` })
  const response = await fetch(url, { headers })
  const body = (await response.json()) as JsonObject
  if (!response.ok) throw new PaddockError('not_found', `${url}: ${body.detail}`)
  return storedEpisode(body, url.href)
}

function storedEpisode(value: unknown, from: string): StoredEpisode {
  const parsed = storedEpisodeSchema.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const path = issue?.path.join('.') ?? ''
  throw new PaddockError(
    'invalid_request',
    `${from}: expected an episode as GET /v1/episodes/:id gives it; ${path}: ${issue?.message}`,
    { path },
  )
}

/** Characters of a value that are shown. */
const SHOWN = 300

function sentenceOf({ at, part, expected, found }: Difference): string {
  const where = typeof at === 'string' ? at : `turn ${at.turn}`
  const shown = (value: unknown) => {
    const text = JSON.stringify(value)
    return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text
  }
  return `${where}: ${part} differs: expected ${shown(expected)}, found ${shown(found)}`
}
