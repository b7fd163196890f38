// `paddock bench turns`: server, simulator and load driver as processes of their own, measured in one run.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { PaddockError } from '../../protocol/errors.ts'
import { loadConfig } from '../config.ts'
import { fromSource } from '../from-source.ts'
import { withScripts } from '../runtime/packs/scripts.ts'
import { startSimulatorProcess } from '../runtime/simulator-process.ts'
import { qwenFolder } from './playground.ts'
import { type ProgressBar, progressBar } from './progress-bar.ts'

/** Six office tasks and six arithmetic ones, as the demo plays them. */
const TASKS = [
  'office/dev-01-overdue-premium-invoices',
  'office/dev-02-integrations-without-leaking',
  'office/dev-03-meeting-items-to-tracker',
  'office/dev-04-interview-slot',
  'office/dev-05-share-the-right-file',
  'office/dev-06-assign-laptop-through-outage',
  ...Array.from({ length: 6 }, (_, index) => `arithmetic/sum-${index}`),
]

const SIMULATOR_FLAGS = ['--prepared', '--mix', 'correct=0.5,wrong=0.3,forbidden=0.2']

type Pipe = 'ignore' | 'inherit' | 'pipe' | 'ipc'
/** No input, and our own output. */
const BASE = ['ignore', 'inherit'] as const

/** `flags` go to the load driver (`--seconds`, `--rounds`, `--concurrency`, `--json`). */
export async function benchTurns(flags: readonly string[]): Promise<void> {
  const simulator = await withScripts(loadConfig({ file: null }), (scripts) =>
    startSimulatorProcess(['--scripts', scripts, ...SIMULATOR_FLAGS]),
  )
  const server = program(
    '../main',
    ['serve', '--port', '0', ...backendFlags(simulator)],
    [...BASE, 'pipe'],
  )
  try {
    const url = await listening(server)
    const where = ['--url', url, '--policy-url', simulator.url]
    for (const tasks of [TASKS.slice(0, 6), TASKS.slice(6)]) {
      const [pack] = (tasks[0] as string).split('/')
      if (!flags.includes('--json'))
        process.stdout.write(`\n${pack}, ${tasks.length} tasks × 8 episodes\n`)
      const driver = program(
        '../../bench/load/main',
        [...where, '--tasks', tasks.join(','), ...flags],
        // Over the channel it says how far it is.
        [...BASE, flags.includes('--json') ? 'pipe' : 'inherit', 'ipc'],
      )
      const said = driver.stderr ? text(driver.stderr) : ''
      const code = await watched(driver)
      if (code !== 0)
        throw new PaddockError('internal', `the load driver ended with ${code}. ${await said}`)
    }
  } finally {
    if (server.exitCode === null) {
      server.kill('SIGTERM')
      await once(server, 'exit')
    }
    await simulator.stop()
  }
}

/** Shows how far the driver is, until it ends; gives its exit code. */
async function watched(driver: ChildProcess): Promise<number | null> {
  let bar: ProgressBar | null = null
  driver.on('message', (told) => {
    const { done, total } = told as { done: number; total: number }
    bar ??= progressBar('Measurements', total, process.stderr)
    bar.update(done)
    if (done === total) bar.stop()
  })
  const [code] = (await once(driver, 'exit')) as [number | null]
  return code
}

function backendFlags({ url, model }: { url: string; model: string }): string[] {
  const backend = { dialect: 'vllm', url, model, model_dir: qwenFolder() }
  return Object.entries(backend).flatMap(([key, value]) => [
    '--set',
    `backends.main.${key}=${value}`,
  ])
}

function program(path: string, args: readonly string[], stdio: readonly Pipe[]): ChildProcess {
  const file = fileURLToPath(new URL(`${path}.${fromSource ? 'ts' : 'js'}`, import.meta.url))
  const loader = fromSource ? ['--import', 'tsx'] : []
  return spawn(process.execPath, [...loader, file, ...args], { stdio: [...stdio] })
}

/** The address in the server's own log. */
function listening(server: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    const lines: string[] = []
    createInterface({ input: server.stderr as NodeJS.ReadableStream }).on('line', (line) => {
      lines.push(line)
      const url = /"url":"(http[^"]+)"/.exec(line)?.[1]
      if (url) resolve(url)
    })
    server.once('exit', () =>
      reject(new PaddockError('internal', `the server ended: ${lines.join('\n')}`)),
    )
  })
}
