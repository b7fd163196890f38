// slime trains while the server under it is killed and started again: it polls on, and gets every instance once.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { startSimulator } from '../../bench/simulator/server.ts'
import { scripts } from '../testkit/house.testkit.ts'
import { type ServerProcess, startServerProcess } from '../torture/server-process.ts'
import { python } from './python.testkit.ts'

/** Moments of an answer whose last byte is held back until it is noted: see kill-at.testkit.ts. */
const KILL_MOMENTS = {
  held: 'all but its last byte is out, and nothing is noted',
  noted: 'it is noted that the last byte goes, and it has not gone',
  out: 'its last byte is out, and that is not noted',
}
const KILLED = fileURLToPath(new URL('./kill-at.testkit.ts', import.meta.url))
const ROLLOUTS = 4
const BATCH = 4
const TASKS = 8

interface Report {
  rollout?: number
  groups?: { index: number }[][]
  /** Items, samples and mean reward of what was fetched. */
  fetched?: number[]
}

/** A trainer's server on one port with one ledger, killed and started again. */
async function openStable(rolloutBatchSize: number) {
  const simulator = await startSimulator({
    scripts: scripts(),
    style: { format: 'hermes', thinking: false, mix: { correct: 1, wrong: 1 } },
    latency: { kind: 'fixed', ms: 5 },
  })
  const folder = mkdtempSync(join(tmpdir(), 'paddock-slime-'))
  const selection = join(folder, 'prompts.jsonl')
  const rows = Array.from({ length: TASKS }, (_, index) => ({ task: `sum-${index}` }))
  writeFileSync(selection, rows.map((row) => JSON.stringify(row)).join('\n'))
  const file = join(folder, 'paddock.json')
  let port = 0
  return {
    /** `killAt`: the moment at which it kills itself. */
    async start(killAt?: string): Promise<ServerProcess> {
      const settings = {
        server: { port },
        backends: { main: { dialect: 'vllm', url: simulator.url, model: 'qwen3-8b' } },
        runtime: { threads: 1 },
        ledger: { path: 'ledger' },
        dialects: { slime: { data_dir: '.', rollout_batch_size: rolloutBatchSize } },
      }
      writeFileSync(file, JSON.stringify(settings))
      const server = await (killAt === undefined
        ? startServerProcess(file)
        : startServerProcess(file, {
            wrapper: ['env', `KILL_AT=${killAt}`],
            program: [KILLED, 'serve'],
          }))
      port = Number(new URL(server.url).port)
      return server
    },
    train(url: string, rollouts: number) {
      const flags = ['--url', url, '--engine', simulator.url, '--pause', 0.4]
      const data = ['--task-type', 'arithmetic', '--prompt-data', selection, '--num-epoch', 2]
      const size = ['--num-rollout', rollouts, '--rollout-batch-size', rolloutBatchSize, '--n', 4]
      return python<Report>('slime_buffer_client', [...flags, ...data, ...size])
    },
    async close() {
      await simulator.close()
      rmSync(folder, { recursive: true })
    },
  }
}

const trainedBy = (reports: Report[]) =>
  reports.flatMap(({ groups = [] }) => groups.map(([first]) => first?.index ?? Number.NaN))
const everyInstance = Array.from({ length: 2 * TASKS }, (_, index) => index)

test('kill -9 after the start and each rollout: the run goes on, nothing is trained twice and nothing is left out', async () => {
  const stable = await openStable(BATCH)
  try {
    let server = await stable.start()
    const trainer = stable.train(server.url, ROLLOUTS)
    for await (const { rollout } of trainer.lines)
      if (rollout !== ROLLOUTS - 1) {
        await server.kill()
        server = await stable.start()
      }
    const reports = await trainer.done
    await server.kill()
    // What was out and not noted as such is played anew, behind all others.
    expect(trainedBy(reports).sort((a, b) => a - b)).toEqual(everyInstance)
  } finally {
    await stable.close()
  }
}, 300_000)

describe('kill -9 within the first answer', () => {
  test.each(Object.entries(KILL_MOMENTS))(
    '%s: %s. Nothing sampled is trained twice, no instance is left out, and the count stays in step',
    async (moment) => {
      const stable = await openStable(BATCH)
      try {
        const doomed = await stable.start(moment)
        const trainer = stable.train(doomed.url, ROLLOUTS)
        expect(await doomed.ended).toEqual({ code: null, signal: 'SIGKILL' })
        const server = await stable.start()
        const reports = await trainer.done
        await server.kill()
        const trained = trainedBy(reports)
        // Where nobody could say whether it had arrived, an instance has another number; what it stands for is the same.
        const modulo = trained.map((number) => (number + 2 * TASKS) % (2 * TASKS))
        expect(modulo.sort((a, b) => a - b)).toEqual(everyInstance)
        const standIns = trained.filter((number) => number < 0)
        expect(standIns.length).toBe(moment === 'noted' ? BATCH : 0)
        // slime throws away what it fetched beyond its batch.
        for (const { fetched } of reports.slice(1)) expect(fetched?.[0]).toBe(4 * BATCH)
      } finally {
        await stable.close()
      }
    },
    300_000,
  )
})
