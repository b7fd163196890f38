// What happens to groups and episodes, as the series of the catalogue count it.
import type { GroupCost, Mode } from '../../protocol/batch.ts'
import { type EpisodeOutcome, isScored } from '../../protocol/outcomes.ts'
import type { EpisodeHeader } from '../../protocol/sealed.ts'
import { isConstant } from '../../reward/statistics.ts'
import type { Judgement } from '../../reward/verdict.ts'
import { contractField, contractKind, samplingParam } from './contract-labels.ts'
import type { LabelValue } from './labels.ts'
import type { Series } from './series.ts'

interface FinishedGroup {
  id: string
  env: string
  mode: Mode
  judgement: Judgement
  cost: GroupCost
  /** First attempt to verdict. */
  seconds: number
  temperature: number
  greedySuspect: boolean
  /** Components of the batch's contract. */
  components: readonly string[]
  /** Of the members that the verdict is over; null where not even a failure could be sealed. */
  headers: readonly (EpisodeHeader | null)[]
}

interface EndedAttempt {
  env: string
  mode: Mode
  outcome: EpisodeOutcome
  header: EpisodeHeader | null
  /** Start to seal, and those of them in which nobody was waited for. */
  seconds: number
  playedSeconds: number
  /** Who was asked for tokens. */
  backend: string
  group: string
  /** The episode's id, for exemplars. */
  episode: string
}

export interface LearningEvents {
  groupStarted(env: string, mode: Mode): void
  groupFinished(group: FinishedGroup): void
  /** Every attempt, those that are tried again too. */
  attemptEnded(attempt: EndedAttempt): void
  /** An episode's last attempt; called after `attemptEnded`. */
  episodeFinished(attempt: EndedAttempt): void
  /** A failed attempt that is tried again. */
  episodeRetried(env: string, outcome: EpisodeOutcome): void
  canaryChecked(result: LabelValue<'canary_result'>): void
}

/** Groups over which the mean of distinct openings is taken. */
const OPENINGS_WINDOW = 50

export function createLearningEvents(
  series: Series,
  components: Readonly<Record<string, readonly string[]>>,
): LearningEvents {
  const inFlight = new Map<string, number>()
  const openings = new Map<string, number[]>()
  /** Seconds in our own threads, and waiting for them, of groups that have not ended. */
  const played = new Map<string, number>()

  function fly(env: string, mode: Mode, by: number): void {
    const key = `${env} ${mode}`
    const flying = (inFlight.get(key) ?? 0) + by
    inFlight.set(key, flying)
    series.set('groups_in_flight', { env, mode }, flying)
  }

  function countVariety(group: FinishedGroup): void {
    const { env, mode, judgement, temperature, headers, greedySuspect } = group
    const { scored, distinct } = judgement.stats
    if (scored < 2 || temperature <= 0) return
    const said = headers.filter((header) => header && isScored(header.outcome)) as EpisodeHeader[]
    series.observe('group_distinct_ratio', { env, mode }, distinct / scored)
    if (greedySuspect) series.inc('groups_identical_total', { env, mode })
    const key = `${env} ${mode}`
    const starts = new Set(said.map((header) => header.opening_digest)).size
    const latest = [...(openings.get(key) ?? []), starts / scored].slice(-OPENINGS_WINDOW)
    openings.set(key, latest)
    const mean = latest.reduce((sum, ratio) => sum + ratio, 0) / latest.length
    series.set('first_token_distinct_ratio', { env, mode }, mean)
  }

  /** A component is flat where it says the same of every scored member that has it. */
  function countFlat({ env, judgement, components, headers }: FinishedGroup): void {
    if (judgement.verdict !== 'valid' && judgement.verdict !== 'zero_variance') return
    for (const component of components) {
      const values = headers.flatMap((header) => header?.rewards?.[component] ?? [])
      if (isConstant(values)) series.inc('reward_component_flat_groups_total', { env, component })
    }
  }

  function countReward({ env, mode, header, episode }: EndedAttempt, value: number): void {
    series.observe('reward', { env, mode }, value, episode)
    series.inc('reward_positive_sum_total', { env, mode }, Math.max(value, 0))
    series.inc('reward_negative_sum_total', { env, mode }, Math.max(-value, 0))
    series.inc('reward_squares_sum_total', { env, mode }, square(value))
    const rewards = header?.rewards ?? {}
    for (const component of components[env] ?? []) {
      if (!Object.hasOwn(rewards, component)) continue
      const part = rewards[component]
      if (part === null || part === undefined) {
        series.inc('reward_component_missing_total', { env, component })
        continue
      }
      series.inc('reward_component_values_total', { env, component })
      series.inc('reward_component_positive_sum_total', { env, component }, Math.max(part, 0))
      series.inc('reward_component_negative_sum_total', { env, component }, Math.max(-part, 0))
      series.inc('reward_component_squares_sum_total', { env, component }, square(part))
    }
  }

  return {
    groupStarted(env, mode) {
      series.inc('groups_started_total', { env, mode })
      fly(env, mode, 1)
    },
    groupFinished(group) {
      const { id, env, mode, judgement, cost, seconds, headers } = group
      const { verdict, level, stats } = judgement
      series.inc('groups_finished_total', { env, mode, outcome: verdict })
      fly(env, mode, -1)
      series.inc('cost_tokens_total', { env, mode, outcome: verdict }, cost.completion_tokens)
      const charge = (resource: LabelValue<'resource'>, seconds: number) =>
        series.inc('cost_seconds_total', { env, resource, outcome: verdict }, seconds)
      charge('backend', cost.seconds)
      charge('worker', played.get(id) ?? 0)
      played.delete(id)
      series.observe('group_duration_seconds', { env, mode }, seconds)
      series.observe('group_scored_ratio', { env, mode }, stats.scored / stats.n)
      if (level) series.inc('groups_zero_variance_total', { env, mode, level })
      if (stats.std !== null) series.observe('group_reward_std', { env, mode }, stats.std)
      if (spansVersions(headers)) series.inc('mixed_version_groups_total', { mode })
      countVariety(group)
      countFlat(group)
    },
    attemptEnded({ env, mode, outcome, header, seconds, playedSeconds, group, backend }) {
      played.set(group, (played.get(group) ?? 0) + playedSeconds)
      series.inc('attempts_total', { env, mode, outcome })
      series.inc('attempt_seconds_total', { env, mode, outcome }, seconds)
      const checked = isScored(outcome) || outcome === 'contract_violation'
      if (checked) series.inc('contract_records_total', { env })
      if (!header) return
      const { violation, completion_tokens, version_max } = header
      if (version_max !== null) series.set('backend_policy_version', { backend }, version_max)
      series.inc('attempt_tokens_total', { env, mode, outcome }, completion_tokens)
      if (violation)
        series.inc('contract_violations_total', {
          env,
          field: contractField(violation),
          kind: contractKind(violation),
        })
      const param = violation && samplingParam(violation)
      if (param) series.inc('sampling_mismatch_total', { backend, param })
      series.inc('parser_turns_total', { env }, header.turns.length)
      series.inc('tokens_total', { env, kind: 'prompt' }, header.prompt_tokens)
      series.inc('tokens_total', { env, kind: 'completion' }, completion_tokens)
      for (const [code, count] of entries(header.parse_errors))
        series.inc('parser_errors_total', { env, code }, count)
      for (const [flag, count] of entries(header.parse_flags))
        series.inc('parser_flags_total', { env, flag }, count)
      for (const [leniency, count] of entries(header.parse_leniencies))
        series.inc('parser_leniencies_total', { env, leniency }, count)
      series.inc('control_tokens_total', { env }, header.control_tokens)
      series.inc('text_mismatch_total', { env }, header.text_mismatches)
      for (const [cause, count] of entries(header.drift))
        series.inc('drift_total', { env, cause }, count)
    },
    episodeFinished(attempt) {
      const { env, mode, outcome, header, seconds, episode } = attempt
      series.inc('episodes_finished_total', { env, mode, outcome })
      series.observe('episode_duration_seconds', { env, mode }, seconds, episode)
      if (!header) return
      series.observe('episode_turns', { env, mode }, header.turns.length)
      series.observe('episode_completion_tokens', { env, mode }, header.completion_tokens, episode)
      series.inc('episode_samples_total', { env, mode }, samplesOf(header))
      if (header.mean_logprob !== null)
        series.observe('sampled_logprob', { env, mode }, header.mean_logprob)
      if (isScored(outcome) && header.reward !== null) countReward(attempt, header.reward)
    },
    episodeRetried: (env, outcome) => series.inc('episode_retries_total', { env, outcome }),
    canaryChecked: (result) => series.inc('canary_checks_total', { result }),
  }
}

/** A square beyond a double would be Infinity, at which the client library throws. */
function square(value: number): number {
  return Math.min(value * value, Number.MAX_VALUE)
}

function samplesOf({ turns }: EpisodeHeader): number {
  return new Set(turns.flatMap((turn) => turn.sample ?? [])).size
}

function spansVersions(headers: readonly (EpisodeHeader | null)[]): boolean {
  const versions = headers.flatMap((header) => [
    header?.version_min ?? [],
    header?.version_max ?? [],
  ])
  return new Set(versions.flat()).size > 1
}

function entries<Name extends string>(counts: Partial<Record<Name, number>>): [Name, number][] {
  return Object.entries(counts) as [Name, number][]
}
