// The log: pino JSON lines on standard error, with secrets taken out by path and by value.
import pino, { type Logger } from 'pino'
import { type Config, configSecrets } from './config.ts'

const REDACTED = '[redacted]'

/** Where a secret stands by name. What stands elsewhere (a URL in an error's message) is found by value. */
const SECRET_PATHS = ['token', 'api_key', 'authorization'].flatMap((name) => [name, `*.${name}`])

/** `write` takes each line; by default they go to file descriptor 2, before the call returns. */
export function createLog(config: Config, write = writeToStderr()): Logger {
  const secrets = configSecrets(config).map((secret) => JSON.stringify(secret).slice(1, -1))
  return pino(
    {
      level: config.log.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (level) => ({ level }) },
      redact: { paths: SECRET_PATHS, censor: REDACTED },
    },
    {
      write: (line: string) =>
        write(secrets.reduce((text, secret) => text.replaceAll(secret, REDACTED), line)),
    },
  )
}

function writeToStderr(): (line: string) => void {
  const stderr = pino.destination({ fd: 2, sync: true })
  return (line) => {
    stderr.write(line)
  }
}
