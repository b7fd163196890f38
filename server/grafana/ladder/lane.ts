// One lane of the ladder: a policy simulator, the real server in a process of its own, a trainer, and Prometheus over it.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { stringify } from 'yaml'
import type { JsonObject } from '../../../protocol/json.ts'
import { fromSource } from '../../from-source.ts'
import { createApiClient } from '../../runtime/api-client.ts'
import { startSimulatorProcess } from '../../runtime/simulator-process.ts'
import { WINDOWS, type Windows } from '../rules.ts'
import { type Child, startChild } from './child.ts'
import { LAB_TASK, type Trouble, writeLab } from './lab.ts'
import { type Prometheus, startPrometheus } from './prometheus.ts'

/** The shipped rules with durations of seconds: what takes minutes in a run takes a moment here. */
const SHORT: Windows = {
  ...WINDOWS,
  short: '10s',
  long: '20s',
  hold: (minutes) => (minutes === 0 ? '0s' : '2s'),
  trainerGone: 5,
  least: { groups: 6, records: 12 },
}
export const SHORT_WINDOW = SHORT.short

export interface LanePlan {
  /** Weights of the transcripts `right` and `wrong`. */
  mix?: string
  groupSize?: number
  /** Over the lane's own settings. */
  settings?: (folder: string) => JsonObject
  batch?: JsonObject
  /** In the environment from the start. */
  trouble?: Trouble
  freeBytes?: number
  lease?: { lease_s: number; abandon: boolean }
}

export interface Lane {
  url: string
  server: Child
  simulator: { stop(): Promise<void> }
  prometheus: Prometheus
  post(path: string, body: JsonObject): Promise<void>
  setFaults(...faults: JsonObject[]): Promise<void>
  trouble: { start(trouble: Trouble): void }
  /** Aborts when the lane closes. */
  closing: AbortSignal
  /** The trainer comes no more; what it has submitted goes on. */
  dismissTrainer(): void
  close(): Promise<void>
}

const program = fileURLToPath(new URL(`../../main.${fromSource ? 'ts' : 'js'}`, import.meta.url))

export async function openLane(plan: LanePlan): Promise<Lane> {
  const folder = mkdtempSync(join(tmpdir(), 'paddock-ladder-'))
  const lab = writeLab(folder)
  if (plan.trouble) lab.start(plan.trouble)
  const simulator = await startSimulatorProcess([
    // Some ten groups a second where all is well: enough for every window, and little of the machine.
    ...['--scripts', lab.scripts, '--latency', 'fixed:200'],
    ...['--mix', plan.mix ?? 'right=1,wrong=1'],
  ])
  const backend = { dialect: 'vllm', url: simulator.url, model: simulator.model }
  const config = join(folder, 'paddock.yaml')
  const settings = {
    server: { port: 0, drain_timeout_s: 0 },
    shipped_packs: false,
    environments: { lab: lab.module },
    backends: { main: { ...backend, stream: true }, whole: backend },
    ...plan.settings?.(folder),
  }
  writeFileSync(config, stringify(settings))
  const loader = fromSource ? ['--import', 'tsx'] : []
  const server = startChild(process.execPath, [...loader, program, 'serve', config])
  const [url] = await server.says(/http:\/\/127\.0\.0\.1:\d+/)
  await answers(`${url}/readyz`)
  const windows = { ...SHORT, ...(plan.freeBytes && { freeBytes: plan.freeBytes }) }
  const prometheus = await startPrometheus(folder, new URL(url).host, windows)
  const closing = new AbortController()
  const training = new AbortController()
  const trained = train(url, plan, training.signal)
  return {
    url,
    server,
    simulator,
    prometheus,
    trouble: lab,
    async post(path, body) {
      const headers = { 'content-type': 'application/json' }
      const response = await fetch(url + path, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      })
      if (!response.ok) throw new Error(`${path}: ${await response.text()}`)
    },
    async setFaults(...faults) {
      const body = JSON.stringify({ faults })
      const response = await fetch(`${simulator.url}/simulator/faults`, { method: 'POST', body })
      if (!response.ok) throw new Error(await response.text())
    },
    closing: closing.signal,
    dismissTrainer: () => training.abort(),
    async close() {
      closing.abort()
      training.abort()
      await prometheus.stop()
      await server.stop('SIGKILL')
      await simulator.stop()
      await trained
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function answers(url: string): Promise<void> {
  for (;;) {
    const response = await fetch(url)
    await response.arrayBuffer()
    if (response.ok) return
    await wait(100)
  }
}

/** Submits batch after batch, leases and acknowledges, until it is dismissed. What the server refuses is tried again. */
async function train(url: string, plan: LanePlan, dismissed: AbortSignal): Promise<void> {
  const api = createApiClient(url)
  const { lease_s = 60, abandon = false } = plan.lease ?? {}
  const abandoned = new Set<string>()
  while (!dismissed.aborted)
    try {
      const { id } = await api.submit({
        tasks: [LAB_TASK, LAB_TASK, LAB_TASK, LAB_TASK],
        group_size: plan.groupSize ?? 4,
        ...plan.batch,
      })
      for (let done = false; !done && !dismissed.aborted; ) {
        const leased = await api.lease(id, { max: 4, lease_s, wait_s: 1 })
        done = leased.done
        const kept = leased.groups.filter((group) => !abandon || abandoned.has(group.id))
        for (const group of leased.groups) abandoned.add(group.id)
        if (kept.length > 0) await api.ack(id, kept)
      }
    } catch {
      await wait(200)
    }
}
