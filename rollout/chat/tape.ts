// The tape: an episode's token ids with their loss mask, log-probabilities and version spans. It only grows.
import { PaddockError } from '../../protocol/errors.ts'
import type { Sample, VersionSpan } from '../../protocol/group.ts'
import type { DriftCause } from '../../protocol/turn-counts.ts'
import { classifyCut } from './cut-cause.ts'

export type TapeSample = Sample<Int32Array, Uint8Array, Float32Array>

/** Plain data: structured clone and v8.serialize keep it. One sample for each unbroken token chain, in order. */
export interface Tape {
  samples: TapeSample[]
}

/** Sampled ids in a row that one policy version made; null where the backend says none. */
export interface VersionRun {
  version: number | null
  count: number
  /** True where the version was not told with the ids but asked around the call. */
  approximate?: boolean
}

/** What one policy turn adds. */
export interface SampledTurn {
  /** The whole prompt that was answered, from the first id of the conversation. */
  promptIds: Int32Array
  /** The sampled ids, and one finite log-probability for each. */
  ids: Int32Array
  logprobs: Float32Array
  /** Which versions made `ids`, in order; the counts sum to their number. */
  versions: readonly VersionRun[]
}

/** Where a turn's sampled ids lie: `[start, end)` of sample number `sample`. */
export interface TapeTurn {
  sample: number
  start: number
  end: number
}

export function emptyTape(): Tape {
  return { samples: [] }
}

/** The samples as a trainer gets them: `ids`, `mask` and `logprobs` of one length, mask 1 exactly on sampled ids. */
export function tapeSamples(tape: Tape): TapeSample[] {
  return tape.samples
}

/**
 * The tape with one more turn. Where `promptIds` extends the chain so far exactly, its new ids are appended with mask
 * 0 and the sampled ones with mask 1; else a new sample begins and `cut` says why (classified by `decode`, if given).
 * The given tape stays as it is; arrays are copied once a turn.
 * Throws PaddockError `internal` where ids and log-probabilities or version runs do not fit: no backend's reply gets that far.
 */
export function extendTape(
  tape: Tape,
  turn: SampledTurn,
  decode: ((ids: Int32Array) => string) | null = null,
): { tape: Tape; turn: TapeTurn; cut: DriftCause | null } {
  checkTurn(turn)
  const last = tape.samples.at(-1)
  const extended = last !== undefined && startsWith(turn.promptIds, last.ids)
  const chain = extended ? last : EMPTY_SAMPLE
  const kept = extended ? tape.samples.slice(0, -1) : tape.samples
  const cut = last === undefined || extended ? null : classifyCut(last, turn.promptIds, decode)
  const start = turn.promptIds.length
  return {
    tape: { samples: [...kept, appendTurn(chain, turn)] },
    turn: { sample: kept.length, start, end: start + turn.ids.length },
    cut,
  }
}

const EMPTY_SAMPLE: TapeSample = {
  ids: new Int32Array(0),
  mask: new Uint8Array(0),
  logprobs: new Float32Array(0),
  prompt_length: 0,
  versions: [],
}

/** `turn.promptIds` begins with the chain's ids, so the new ids are it and what was sampled. */
function appendTurn(chain: TapeSample, turn: SampledTurn): TapeSample {
  const start = turn.promptIds.length
  const length = start + turn.ids.length
  const ids = new Int32Array(length)
  ids.set(turn.promptIds)
  ids.set(turn.ids, start)
  const mask = new Uint8Array(length)
  mask.set(chain.mask)
  mask.fill(1, start)
  const logprobs = new Float32Array(length)
  logprobs.set(chain.logprobs)
  logprobs.set(turn.logprobs, start)
  const sampledBefore = chain.versions.length > 0
  return {
    ids,
    mask,
    logprobs,
    prompt_length: sampledBefore ? chain.prompt_length : start,
    versions: appendSpans(chain.versions, turn),
  }
}

/** Spans cover exactly the sampled ids: neighbours of one version are one span, a prompt between them parts them. */
function appendSpans(spans: readonly VersionSpan[], turn: SampledTurn): VersionSpan[] {
  const merged = spans.map((span) => ({ ...span }))
  let at = turn.promptIds.length
  for (const { version, count, approximate = false } of turn.versions) {
    if (count === 0) continue
    const previous = merged.at(-1)
    const joins =
      previous?.version === version &&
      previous.end === at &&
      (previous.approximate ?? false) === approximate
    if (joins) previous.end += count
    else merged.push({ version, start: at, end: at + count, ...(approximate && { approximate }) })
    at += count
  }
  return merged
}

function checkTurn({ ids, logprobs, versions }: SampledTurn): void {
  if (ids.length !== logprobs.length) {
    throw misfit(`${ids.length} sampled ids came with ${logprobs.length} log-probabilities`)
  }
  const index = logprobs.findIndex((value) => !Number.isFinite(value))
  if (index >= 0) throw misfit(`the log-probability of sampled id ${index} is ${logprobs[index]}`)
  const counted = versions.reduce((sum, run) => sum + run.count, 0)
  if (counted !== ids.length || versions.some(({ count }) => count < 0))
    throw misfit(`version runs count ${counted} of ${ids.length} sampled ids`)
}

function misfit(what: string): PaddockError {
  return new PaddockError(
    'internal',
    `${what}: a turn must be checked by its dialect before it goes on the tape`,
  )
}

function startsWith(ids: Int32Array, prefix: Int32Array): boolean {
  if (prefix.length > ids.length) return false
  for (let index = 0; index < prefix.length; index++) {
    if (ids[index] !== prefix[index]) return false
  }
  return true
}
