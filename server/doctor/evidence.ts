// What the doctor saw, as plain data: the checks judge it without asking anybody.
import type { LogprobsMode } from '../../protocol/group.ts'
import type { ThinkingMode, ToolFormat } from '../../protocol/parse-codes.ts'
import type { DriftCause } from '../../protocol/turn-counts.ts'
import type { PolicyReply } from '../../rollout/policy/dialect.ts'
import type { DialectName } from '../../rollout/policy/dialects.ts'
import type { PolicyAnswer } from '../runtime/policy/policy-try.ts'

/** Who is examined, and what will be asked of it. */
export interface Subject {
  backend: string
  dialect: DialectName
  mode: 'chat' | 'tokens'
  model: string
  toolFormat: ToolFormat
  thinking: ThinkingMode
  stream: boolean
  firstPrompt: 'template' | 'tokenize'
  /** What the settings say of the log-probabilities. */
  logprobsMode: LogprobsMode
  /** Whether the model's files are at hand. */
  modelDir: boolean
  /** Whether the engine is asked for its version around each completion. */
  weightInfo: boolean
  /** Sampled tokens of one episode at most. */
  episodeTokens: number
  /** Episodes of the batch whose cost is estimated. */
  batchEpisodes: number
}

/** One completion, read in both ways that the engine has. */
export interface Probe {
  temperature: number
  seed: number
  /** With the ids and log-probabilities that a tape needs. */
  strict: PolicyReply
  /** As text alone, of which the engine may have taken nothing. */
  loose: PolicyReply
}

/** What the engine says of itself; null where it does not. */
export interface EngineFacts {
  /** By the routes that only one of them has; null where both or none answered. */
  kind: 'vllm' | 'sglang' | null
  release: string | null
  models: string[] | null
  maxModelLen: number | null
  weightVersion: string | null
}

/** One endpoint asked for one token. */
export interface EndpointProbe {
  url: string
  /** Whether anything answers over HTTP. */
  listens: boolean
  answer: PolicyAnswer
  /** What the engine's dialect makes of it; null without an answer. */
  loose: PolicyReply | null
  /** Our clock minus the endpoint's, seconds; null where it tells no time. */
  skewSeconds: number | null
}

/** The first turn of a task, with its tools. */
export interface ToolTurn {
  task: string
  probe: Probe
  /** Calls that come out where the answer is read as each form; null where there is no answer to read. */
  calls: Partial<Record<ToolFormat, number>> | null
  /** Whether the answer holds a think tag. */
  thinks: boolean | null
  /** Tools that the prompt does not show; null where it cannot be seen. */
  missing: string[] | null
  promptTokens: number | null
  /** The same conversation without its tools. */
  bareTokens: number | null
}

/** One step of the kept conversation, and what was lost in it. */
export interface RoundTripStep {
  step: string
  difference: string | null
}

/** Whether a prompt holds what was thought in a turn before it; null where it cannot be seen. */
export interface ReasoningKept {
  beforeTool: boolean | null
  beforeUser: boolean | null
}

export interface SampleEpisode {
  task: string
  outcome: string
  reason: string | null
  scored: boolean
  turns: number
  /** Token chains; none without the model's files. */
  samples: number
  promptTokens: number
  completionTokens: number
  seconds: number
  drift: Partial<Record<DriftCause, number>>
}

export interface Evidence {
  subject: Subject
  engine: EngineFacts
  /** All of the backend's; what follows is of the first. */
  endpoints: EndpointProbe[]
  /** One prompt at temperature 1, each with a seed of its own. */
  warm: Probe[]
  /** The same prompt and seeds at half the temperature. */
  cool: Probe[]
  /** The first of `warm` again. */
  again: Probe | null
  /** At temperature 0. */
  greedy: Probe | null
  toolTurns: ToolTurn[]
  /** Null where the policy is not said to think, or the tape keeps all. */
  reasoning: ReasoningKept | null
  roundTrip: RoundTripStep[]
  pack: { name: string; tasks: number; refused: { id: string; problem: string }[] }
  contract: { label: string; reads: readonly string[]; problem: string | null }
  ledger: { path: string | null; problem: string | null; freeBytes: number; minFreeBytes: number }
  /** Null where they were not played. `wallSeconds` is that of all together. */
  episodes: { played: SampleEpisode[]; wallSeconds: number } | null
}
