// The end of an episode: trajectory, tape and grade sealed into bytes.
import { createHash } from 'node:crypto'
import type { ShapingStep } from '../protocol/group.ts'
import type { JsonObject } from '../protocol/json.ts'
import type { EpisodeOutcome } from '../protocol/outcomes.ts'
import {
  type EpisodeHeader,
  type SealedEpisode,
  sealBlob,
  type TapeSample,
} from '../protocol/sealed.ts'
import { tapeSamples } from './chat/tape.ts'
import type { EpisodeState, TurnRecord } from './episode.ts'
import { outcomeEvent, type TurnEvent } from './turn-events.ts'

/** Version of the trajectory's JSON. It grows when a field changes its meaning or goes. */
const TRAJECTORY_VERSION = 1

/** How much of the first answer is its opening: some 64 tokens. */
const OPENING_CHARACTERS = 256

/** How an episode ends. Only a scored outcome has rewards; a grade that failed is told all the same. */
export interface Ending {
  outcome: EpisodeOutcome
  reason: string
  reward: number | null
  rewards: Record<string, number | null> | null
  /** From the rewards to the reward; none where there is none. */
  shaping?: ShapingStep[]
  grade: JsonObject | null
  /** What each check of the grade counts for, by its id; left out by environments without checks. */
  weights?: Record<string, number> | undefined
  /** Kind of what broke the contract, where it was a field of the rewards. */
  kind?: string | undefined
}

/** The bytes are a function of plan (its attempt left out) and replies: no wall time, no endpoint. */
export function seal(
  state: EpisodeState,
  ending: Ending,
): { sealed: SealedEpisode; events: TurnEvent[] } {
  const samples = tapeSamples(state.tape)
  const { blob, rowBytes } = sealBlob(ending.grade, samples, trajectory(state, ending))
  const header: EpisodeHeader = {
    outcome: ending.outcome,
    reason: ending.outcome === 'ok' ? null : ending.reason,
    violation: violationOf(ending),
    reward: ending.reward,
    rewards: ending.rewards,
    shaping: ending.shaping ?? [],
    turns: state.headers,
    prompt_tokens: sum(state.turns, (turn) => turn.prompt_tokens),
    completion_tokens: sum(state.turns, (turn) => turn.completion_tokens) + state.droppedTokens,
    asked: state.asked,
    completion_digest: completionDigest(state),
    opening_digest: digestOf(state.turns[0]?.text.slice(0, OPENING_CHARACTERS) ?? ''),
    mean_logprob: meanLogprob(samples),
    ...versionRange(state.turns, samples),
    parse_errors: turnsWith(state.turns, (turn) => turn.errors.map(({ code }) => code)),
    parse_flags: turnsWith(state.turns, (turn) => turn.flags),
    parse_leniencies: turnsWith(state.turns, (turn) => turn.leniencies),
    control_tokens: sum(
      state.turns,
      (turn) => turn.observations.filter((seen) => seen.control_token !== undefined).length,
    ),
    text_mismatches: state.turns.filter((turn) => turn.text_differs).length,
    drift: state.drift,
    row_bytes: rowBytes,
  }
  return { sealed: { header, blob }, events: [outcomeEvent(state.plan, header)] }
}

/** What a person reads, and what a replay is compared with. */
function trajectory(state: EpisodeState, ending: Ending): JsonObject {
  const { plan } = state
  return {
    schema_version: TRAJECTORY_VERSION,
    id: plan.episode,
    batch: plan.batch,
    group: plan.group,
    index: plan.index,
    task: plan.task.id,
    environment: plan.task.environment,
    seed: plan.seed,
    ...(plan.task.user && { user: plan.task.user }),
    state_hash: state.resetHash,
    on_parse_error: plan.onParseError,
    policy: {
      backend: plan.policy.backend,
      model: plan.policy.model,
      mode: plan.policy.mode,
      tool_format: plan.policy.toolFormat,
      thinking: plan.policy.thinking,
      leniencies: [...plan.policy.leniencies],
      control_tokens: plan.policy.controlTokens,
      sampling: { ...plan.policy.sampling },
    },
    outcome: ending.outcome,
    reason: ending.reason,
    reward: ending.reward,
    rewards: ending.rewards,
    ...(ending.shaping?.length && { shaping: ending.shaping as unknown as JsonObject[] }),
    grade: ending.grade,
    ...(ending.weights && { weights: ending.weights }),
    messages: state.messages as unknown as JsonObject[],
    turns: state.turns.map((turn, index) => ({
      ...turn,
      ...state.headers[index],
    })) as unknown as JsonObject[],
    ...(Object.keys(state.asked).length > 0 && { asked: askedOf(state) }),
    drift: state.drift,
    dropped_tokens: state.droppedTokens,
  }
}

/** Whom the episode asked beside its policy, with model and sampling. What was kept is not told: the bytes would differ. */
function askedOf({ plan, asked }: EpisodeState): JsonObject {
  const { user, judge } = plan.asked ?? {}
  const known = { user, judge }
  return Object.fromEntries(
    Object.keys(asked).map((kind) => {
      const { model, sampling } = known[kind as keyof typeof known] ?? {}
      return [kind, { ...(model !== undefined && { model, sampling: { ...sampling } }) }]
    }),
  )
}

/** Equal for two episodes of which every turn sampled the same: the same ids, or where there are none the same text. */
function completionDigest({ turns, headers, tape }: EpisodeState): string {
  const said = turns.map(({ text }, index) => {
    const { sample = null, start = 0, end = 0 } = headers[index] ?? {}
    return sample === null ? text : [...(tape.samples[sample]?.ids.subarray(start, end) ?? [])]
  })
  return digestOf(JSON.stringify(said))
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32)
}

/** A reason of this outcome begins with the field that broke the contract. */
function violationOf({ outcome, reason, kind }: Ending): EpisodeHeader['violation'] {
  if (outcome !== 'contract_violation') return null
  return { field: reason?.split(':', 1)[0] ?? '', kind: kind ?? null }
}

function meanLogprob(samples: readonly TapeSample[]): number | null {
  let total = 0
  let count = 0
  for (const { mask, logprobs } of samples)
    for (const [at, sampled] of mask.entries())
      if (sampled === 1) {
        total += logprobs[at] as number
        count++
      }
  return count === 0 ? null : total / count
}

/** Of all that was sampled: the weights may have changed within a turn. */
function versionRange(
  turns: readonly TurnRecord[],
  samples: readonly TapeSample[],
): Pick<EpisodeHeader, 'version_min' | 'version_max'> {
  const spans = samples.flatMap((sample) => sample.versions)
  const known = [...turns, ...spans].flatMap(({ version }) => version ?? [])
  if (known.length === 0) return { version_min: null, version_max: null }
  return { version_min: Math.min(...known), version_max: Math.max(...known) }
}

/** In how many turns each name occurs; a turn with two broken calls of one kind counts once. */
function turnsWith<Name extends string>(
  turns: readonly TurnRecord[],
  names: (turn: TurnRecord) => readonly Name[],
): Partial<Record<Name, number>> {
  const counted: Partial<Record<Name, number>> = {}
  for (const turn of turns)
    for (const name of new Set(names(turn))) counted[name] = (counted[name] ?? 0) + 1
  return counted
}

function sum<T>(items: readonly T[], value: (item: T) => number): number {
  return items.reduce((total, item) => total + value(item), 0)
}
