// What `paddock replay` is asked for: a transcript of a task, or a stored episode.
import { stat } from 'node:fs/promises'
import { PaddockError } from '../../protocol/errors.ts'
import type { Config } from '../config.ts'
import { namedTask } from './named-task.ts'
import { replay } from './replay.ts'
import {
  fetchStoredEpisode,
  keptEpisode,
  readStoredEpisode,
  replayStored,
} from './replay-episode.ts'

export interface ReplayFlags {
  environment: string
  transcript?: string
  seed?: number
  episode?: string
  ledger?: string
  server?: string
  toTurn?: number
}

/** Gives the exit code. Throws `invalid_request` where it is not said what to replay. */
export async function runReplay(
  task: string | undefined,
  { environment, transcript, seed, episode, ledger, server, toTurn }: ReplayFlags,
  config: Config,
): Promise<number> {
  if ((transcript === undefined) === (episode === undefined))
    throw new PaddockError(
      'invalid_request',
      'give exactly one of --transcript (of a task) and --episode (a stored one)',
    )
  if (episode !== undefined) {
    const stored = await storedEpisode(episode, server, ledger ?? config.ledger.path)
    return replayStored(
      stored,
      await namedTask(task ?? stored.task, stored.environment, config),
      toTurn,
    )
  }
  if (task === undefined)
    throw new PaddockError('invalid_request', 'name the task whose transcript is to be played')
  const options = { transcript: transcript!, ...(seed !== undefined && { seed }) }
  return replay(await namedTask(task, environment, config), options)
}

async function storedEpisode(
  episode: string,
  server: string | undefined,
  folder: string | undefined,
) {
  if (server !== undefined) return fetchStoredEpisode(server, episode)
  const isFile = await stat(episode).then(
    (facts) => facts.isFile(),
    () => false,
  )
  if (isFile) return readStoredEpisode(episode)
  if (folder !== undefined) return keptEpisode(folder, episode)
  throw new PaddockError(
    'not_found',
    `${episode} is no file; name the --ledger <folder> or the --server <url> that has an episode of this id`,
  )
}
