// slime trains while the server under it is killed and started again: it polls on, and gets every instance once.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startSimulator } from '../../bench/simulator/server.ts'
import { scripts } from '../testkit/house.testkit.ts'
import { startServerProcess } from '../torture/server-process.ts'
import { python } from './python.testkit.ts'

const ROLLOUTS = 4
const TASKS = 8

interface Report {
  rollout?: number
  groups?: { index: number }[][]
}

/** Resolves when the last answer is noted as sent: until then nothing else is taken, and this is refused. */
async function answerNoted(url: string): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  const refused = await fetch(`${url}/buffer/write`, { method: 'POST', headers, body: '{}' })
  expect(refused.status).toBe(500)
}

test('kill -9 after the start and each rollout: the run goes on, nothing is trained twice and nothing is left out', async () => {
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
  const start = (port: number) => {
    const settings = {
      server: { port },
      backends: { main: { dialect: 'vllm', url: simulator.url, model: 'qwen3-8b' } },
      runtime: { threads: 1 },
      ledger: { path: 'ledger' },
      dialects: { slime: { data_dir: '.', rollout_batch_size: 4 } },
    }
    writeFileSync(file, JSON.stringify(settings))
    return startServerProcess(file)
  }
  try {
    let server = await start(0)
    const port = Number(new URL(server.url).port)
    const flags = ['--url', server.url, '--engine', simulator.url, '--pause', 0.4]
    const data = ['--task-type', 'arithmetic', '--prompt-data', selection, '--num-epoch', 2]
    const size = ['--num-rollout', ROLLOUTS, '--rollout-batch-size', 4, '--n', 4]
    const trainer = python<Report>('slime_buffer_client', [...flags, ...data, ...size])
    for await (const { rollout } of trainer.lines)
      if (rollout !== ROLLOUTS - 1) {
        if (rollout !== undefined) await answerNoted(server.url)
        await server.kill()
        server = await start(port)
      }
    const reports = await trainer.done
    await server.kill()
    const trained = reports.flatMap(({ groups = [] }) =>
      groups.map(([first]) => first?.index ?? -1),
    )
    expect(trained.sort((a, b) => a - b)).toEqual(
      Array.from({ length: 2 * TASKS }, (_, index) => index),
    )
  } finally {
    await simulator.close()
    rmSync(folder, { recursive: true })
  }
}, 300_000)
