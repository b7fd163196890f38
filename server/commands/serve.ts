// `paddock serve`: the server until SIGTERM or SIGINT.
import type { Logger } from 'pino'
import type { Config } from '../config.ts'
import { takeDoor } from '../door.ts'
import { createLog } from '../log.ts'
import type { Running } from '../serve.ts'

/** Shorter ones are guessed. */
const SAFE_TOKEN_LENGTH = 16

/** When nothing can be stored any more: so long for those who wait to be told. */
const LAST_ANSWERS_MS = 250

/**
 * The first signal drains and exits 0; a second one exits at once. Rejects with PaddockError `invalid_config` where
 * the server cannot start. With `json` one line on standard output says where it listens.
 */
export async function runServe(config: Config, json = false): Promise<void> {
  const log = createLog(config)
  const starting = start(config, log)
  let signals = 0
  const stop = async (signal: NodeJS.Signals) => {
    if (++signals > 1) process.exit(1)
    log.info({ signal }, 'stopping: no new work is taken; a second signal stops at once')
    await (await starting).close()
    log.info('stopped')
    process.exit(0)
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.on(signal, () => {
      stop(signal).catch((error: unknown) => {
        log.fatal({ err: error }, 'the server could not stop in order')
        process.exit(1)
      })
    })
  const { url } = await starting
  const { tokens } = config.server
  if (tokens.some(({ token }) => token.length < SAFE_TOKEN_LENGTH))
    log.warn('a token is short enough to be guessed; "openssl rand -hex 32" makes a good one')
  if (json) process.stdout.write(`${JSON.stringify({ url, docs: `${url}/docs` })}\n`)
  log.info({ url, backends: Object.keys(config.backends), docs: `${url}/docs` }, 'listening')
}

/** The house is most of what there is to load: a taken port is told before that. */
async function start(config: Config, log: Logger): Promise<Running> {
  const door = await takeDoor(config)
  const { serve } = await import('../serve.ts')
  const endSoon = () => setTimeout(() => process.exit(1), LAST_ANSWERS_MS)
  return serve(config, log, endSoon, undefined, door)
}
