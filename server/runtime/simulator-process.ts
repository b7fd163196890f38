// Starts the policy simulator as a child process and ends it; it dies with this process, whatever ends that.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { PaddockError } from '../../protocol/errors.ts'
import { fromSource } from '../from-source.ts'

export interface SimulatorProcess {
  /** Answers vLLM's and SGLang's routes. */
  url: string
  model: string
  stop(): Promise<void>
}

const program = fileURLToPath(
  new URL(`../../bench/simulator/main.${fromSource ? 'ts' : 'js'}`, import.meta.url),
)

/** Starts it with its own flags; resolves when it listens. Its log goes to our standard error. */
export async function startSimulatorProcess(flags: readonly string[]): Promise<SimulatorProcess> {
  const child = spawn(
    process.execPath,
    [...(fromSource ? ['--import', 'tsx'] : []), program, ...flags],
    // The channel closes when this process is gone, and the simulator ends itself then.
    { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] },
  )
  const { url, model } = await readyLine(child)
  return {
    url,
    model,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const gone = once(child, 'exit')
      child.kill('SIGTERM')
      await gone
    },
  }
}

function readyLine(child: ChildProcess): Promise<{ url: string; model: string }> {
  return new Promise((resolve, reject) => {
    const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })
    lines.once('line', (line) => resolve(JSON.parse(line)))
    child.once('error', reject)
    child.once('exit', (code) =>
      reject(
        new PaddockError('internal', `the policy simulator ended with ${code} before it was ready`),
      ),
    )
  })
}
