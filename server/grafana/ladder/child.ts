// A program that the ladder starts, watched by its output, and ended by its own id.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'

export interface Child {
  process: ChildProcess
  /** The first match of `pattern` in what it writes. Rejects with its last words where it ends before. */
  says(pattern: RegExp): Promise<RegExpExecArray>
  stop(signal?: NodeJS.Signals): Promise<void>
}

/** Characters of its output that are looked at. */
const KEPT = 100_000

export function startChild(program: string, args: readonly string[]): Child {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  let look = () => {}
  const hear = (chunk: Buffer) => {
    said = (said + chunk.toString()).slice(-KEPT)
    look()
  }
  child.stdout.on('data', hear)
  child.stderr.on('data', hear)
  const gone = once(child, 'exit')
  return {
    process: child,
    says: (pattern) =>
      new Promise((resolve, reject) => {
        const failed = () => reject(new Error(`${program} ended; it said: ${said.slice(-2000)}`))
        look = () => {
          const found = pattern.exec(said)
          if (found) resolve(found)
        }
        look()
        gone.then(failed, reject)
      }),
    async stop(signal = 'SIGTERM') {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal)
      await gone
    },
  }
}
