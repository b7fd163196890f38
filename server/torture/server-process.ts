// `paddock serve` as a child process that can be killed at any moment.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { fromSource } from '../from-source.ts'

export interface ServerProcess {
  url: string
  /** Seconds from its start until it listened. */
  startSeconds: number
  kill(): Promise<void>
  /** Resolves with how it ended. */
  ended: Promise<{ code: number | null; signal: string | null }>
  /** Its log so far, line by line. */
  log: readonly string[]
}

const main = fileURLToPath(new URL(`../main.${fromSource ? 'ts' : 'js'}`, import.meta.url))
const paddockServe = [main, 'serve']

export interface ServerProcessOptions {
  /** A command that runs it, as `fiu-run`. */
  wrapper?: readonly string[]
  /** What is run instead of `paddock serve`, with its arguments before the config's path. */
  program?: readonly string[]
  /** Ends it, whatever it does. */
  signal?: AbortSignal
}

/** Rejects with its log where it ends before it listens. */
export async function startServerProcess(
  config: string,
  { wrapper = [], program = paddockServe, signal }: ServerProcessOptions = {},
): Promise<ServerProcess> {
  const started = performance.now()
  const loader = fromSource ? ['--import', 'tsx'] : []
  const [command = '', ...args] = [...wrapper, process.execPath, ...loader, ...program, config]
  const child = spawn(command, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    killSignal: 'SIGKILL',
    ...(signal && { signal }),
  })
  const log: string[] = []
  const ended = once(child, 'exit').then(([code, signal]) => ({ code, signal }))
  const url = await listening(child, log)
  return {
    url,
    startSeconds: (performance.now() - started) / 1000,
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
    ended,
    log,
  }
}

function listening(child: ChildProcess, log: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const lines = createInterface({ input: child.stderr as NodeJS.ReadableStream })
    lines.on('line', (line) => {
      log.push(line)
      const url = /"url":"([^"]+)".*"msg":"listening"/.exec(line)?.[1]
      if (url) resolve(url)
    })
    child.once('error', reject)
    child.once('exit', () => reject(new Error(`the server ended: ${log.join('\n')}`)))
  })
}
