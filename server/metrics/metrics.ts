// The server's own figures for Prometheus: counted where things end, in the main thread, with closed labels only.
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { GroupCost, Mode } from '../../protocol/batch.ts'
import {
  EPISODE_OUTCOMES,
  type EpisodeOutcome,
  GROUP_VERDICTS,
  isScored,
  LEVELS,
} from '../../protocol/outcomes.ts'
import { PARSE_ERRORS, PARSE_FLAGS } from '../../protocol/parse-codes.ts'
import type { EpisodeHeader } from '../../protocol/sealed.ts'
import type { Judgement } from '../../reward/verdict.ts'
import type { CodeClass } from '../runtime/policy-client.ts'
import type { PoolStats, WorkerExit } from '../runtime/pool.ts'

export interface Metrics {
  groupStarted(env: string, mode: Mode): void
  groupFinished(
    env: string,
    mode: Mode,
    judgement: Judgement,
    cost: GroupCost,
    seconds: number,
  ): void
  /** Every attempt, those that are tried again too. */
  attemptEnded(
    env: string,
    mode: Mode,
    outcome: EpisodeOutcome,
    header: EpisodeHeader | null,
    seconds: number,
  ): void
  /** An episode's last attempt. */
  episodeFinished(
    env: string,
    mode: Mode,
    outcome: EpisodeOutcome,
    header: EpisodeHeader | null,
    seconds: number,
  ): void
  /** A failed attempt that is tried again. */
  episodeRetried(env: string, outcome: EpisodeOutcome): void
  backendTry(backend: string, code: CodeClass, seconds: number): void
  backendRetry(backend: string, reason: string): void
  workerExit(exit: WorkerExit): void
  /** A trainer's heartbeat; `at` is unix seconds. */
  heartbeat(step: number, checkpointStep: number | null, at: number): void
  policyVersion(version: number): void
  text(): Promise<{ contentType: string; text: string }>
}

/** What is read at the moment of a scrape. */
export interface MetricsSources {
  pool(): PoolStats
  queueDepth(): { episodes: number; ready: number; leased: number }
  backendInFlight(backend: string): number
}

const MODES: Mode[] = ['train', 'eval']
const CODE_CLASSES: CodeClass[] = ['2xx', '3xx', '4xx', '429', '5xx', 'timeout', 'reset', 'invalid']
const EPISODE_SECONDS = [0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1200, 2400, 3600, 7200]
const BACKEND_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640]

/**
 * One registry an application. Every closed combination stands at 0 from the start: a counter that appears with its
 * first event hides that event from `rate()`.
 */
export function createMetrics(
  envs: readonly string[],
  backends: readonly string[],
  build: { version: string; node: string },
  sources: MetricsSources,
): Metrics {
  const registers = [new Registry()]
  const [registry] = registers as [Registry]
  collectDefaultMetrics({ register: registry })
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[] = []) =>
    new Counter({ name: `paddock_${name}`, help, labelNames, registers })
  const histogram = <Label extends string>(
    name: string,
    help: string,
    labelNames: Label[],
    buckets: number[],
  ) => new Histogram({ name: `paddock_${name}`, help, labelNames, buckets, registers })
  const gauge = <Label extends string>(
    name: string,
    help: string,
    labelNames: Label[],
    collect?: (gauge: Gauge<Label>) => void,
  ) =>
    new Gauge({
      name: `paddock_${name}`,
      help,
      labelNames,
      registers,
      ...(collect && {
        collect() {
          collect(this)
        },
      }),
    })

  gauge('build_info', 'Constant 1; build identity', ['version', 'node']).set(build, 1)
  const groupsStarted = counter('groups_started_total', 'Groups accepted for rollout', [
    'env',
    'mode',
  ])
  const groupsFinished = counter('groups_finished_total', 'Groups by verdict, exactly one each', [
    'env',
    'mode',
    'outcome',
  ])
  const groupsInFlight = gauge('groups_in_flight', 'Groups started minus finished', ['env', 'mode'])
  const zeroVariance = counter(
    'groups_zero_variance_total',
    'Zero-variance groups by where the common reward sits',
    ['env', 'mode', 'level'],
  )
  const identical = counter(
    'groups_identical_total',
    'Groups whose completions are all identical',
    ['env', 'mode'],
  )
  const groupStd = histogram(
    'group_reward_std',
    'Population std of the reward inside one group',
    ['env', 'mode'],
    [1e-8, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2],
  )
  const scoredRatio = histogram(
    'group_scored_ratio',
    'Scored episodes divided by group size',
    ['env', 'mode'],
    [0, 0.25, 0.5, 0.75, 0.9, 0.999, 1],
  )
  const groupSeconds = histogram(
    'group_duration_seconds',
    'First attempt of a group to its verdict',
    ['env', 'mode'],
    EPISODE_SECONDS,
  )
  const costTokens = counter(
    'cost_tokens_total',
    'Completion tokens charged to a group when it ends',
    ['env', 'mode', 'outcome'],
  )
  const episodes = counter(
    'episodes_finished_total',
    'Episodes by outcome; only ok and ok_truncated carry a reward',
    ['env', 'mode', 'outcome'],
  )
  const retries = counter('episode_retries_total', 'Attempts that failed and were tried again', [
    'env',
    'outcome',
  ])
  const episodeTurns = histogram(
    'episode_turns',
    'Policy turns per finished episode',
    ['env', 'mode'],
    [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64],
  )
  const episodeSeconds = histogram(
    'episode_duration_seconds',
    "Start to end of an episode's last attempt",
    ['env', 'mode'],
    EPISODE_SECONDS,
  )
  const reward = histogram(
    'reward',
    'Scalar reward of scored episodes only; do not rate() its _sum, which is not monotonic',
    ['env', 'mode'],
    [-1, -0.5, -0.25, -0.1, 0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.999, 1, 2],
  )
  const rewardPositive = counter('reward_positive_sum_total', 'Sum of max(reward, 0)', [
    'env',
    'mode',
  ])
  const rewardNegative = counter('reward_negative_sum_total', 'Sum of max(-reward, 0)', [
    'env',
    'mode',
  ])
  const rewardSquares = counter('reward_squares_sum_total', 'Sum of reward squared', [
    'env',
    'mode',
  ])
  const parserTurns = counter('parser_turns_total', 'Turns parsed', ['env'])
  const parserErrors = counter('parser_errors_total', 'Refusals of the tool-call parser', [
    'env',
    'code',
  ])
  const parserFlags = counter(
    'parser_flags_total',
    'Facts that the tool-call parser reports of what it took',
    ['env', 'flag'],
  )
  const tokens = counter('tokens_total', 'Tokens handled', ['env', 'kind'])
  const backendRequests = counter('backend_requests_total', 'Policy requests by result class', [
    'backend',
    'code',
  ])
  const backendSeconds = histogram(
    'backend_request_duration_seconds',
    'Whole request time',
    ['backend'],
    BACKEND_SECONDS,
  )
  const backendRetries = counter('backend_retries_total', 'Retries sent', ['backend', 'reason'])
  gauge('backend_in_flight', 'Open requests', ['backend'], (self) => {
    for (const backend of backends) self.set({ backend }, sources.backendInFlight(backend))
  })
  gauge('pool_threads', 'Worker threads by state', ['pool', 'state'], (self) => {
    const { threads, busy, starting } = sources.pool()
    self.set({ pool: 'turn', state: 'busy' }, busy)
    self.set({ pool: 'turn', state: 'starting' }, starting)
    self.set({ pool: 'turn', state: 'idle' }, threads - busy - starting)
  })
  new Counter({
    name: 'paddock_pool_busy_seconds_total',
    help: 'Thread-seconds spent on jobs',
    labelNames: ['pool'],
    registers,
    collect() {
      this.reset()
      this.inc({ pool: 'turn' }, sources.pool().busySeconds)
    },
  })
  const workerExits = counter('pool_worker_exits_total', 'Worker threads that were lost', [
    'pool',
    'cause',
  ])
  gauge('queue_depth', 'Items waiting', ['queue'], (self) => {
    const { episodes, ready } = sources.queueDepth()
    self.set({ queue: 'episode' }, episodes)
    self.set({ queue: 'ready' }, ready)
  })
  gauge('leases_active', 'Groups leased to trainers and not yet acknowledged', [], (self) =>
    self.set(sources.queueDepth().leased),
  )

  const trainerStep = gauge('trainer_step', 'Step in the last trainer heartbeat', [])
  const trainerCheckpoint = gauge(
    'trainer_checkpoint_step',
    'Step of the last durable checkpoint that the trainer reported',
    [],
  )
  const trainerSeen = gauge(
    'trainer_last_seen_timestamp_seconds',
    'Last heartbeat of a trainer',
    [],
  )
  const policyVersion = gauge(
    'policy_version',
    'Newest weight version that the trainer announced',
    [],
  )

  for (const env of envs) {
    parserTurns.inc({ env }, 0)
    for (const code of PARSE_ERRORS) parserErrors.inc({ env, code }, 0)
    for (const flag of PARSE_FLAGS) parserFlags.inc({ env, flag }, 0)
    for (const outcome of EPISODE_OUTCOMES) retries.inc({ env, outcome }, 0)
    for (const kind of ['prompt', 'completion']) tokens.inc({ env, kind }, 0)
    for (const mode of MODES) {
      for (const one of [groupsStarted, identical, rewardPositive, rewardNegative, rewardSquares])
        one.inc({ env, mode }, 0)
      groupsInFlight.set({ env, mode }, 0)
      for (const one of [groupStd, scoredRatio, groupSeconds, episodeTurns, episodeSeconds, reward])
        one.zero({ env, mode })
      for (const outcome of GROUP_VERDICTS)
        for (const one of [groupsFinished, costTokens]) one.inc({ env, mode, outcome }, 0)
      for (const outcome of EPISODE_OUTCOMES) episodes.inc({ env, mode, outcome }, 0)
      for (const level of LEVELS) zeroVariance.inc({ env, mode, level }, 0)
    }
  }
  for (const backend of backends) {
    backendSeconds.zero({ backend })
    for (const code of CODE_CLASSES) backendRequests.inc({ backend, code }, 0)
    for (const reason of ['connect', '429', '5xx']) backendRetries.inc({ backend, reason }, 0)
  }
  for (const cause of ['crash', 'oom', 'hang_killed']) workerExits.inc({ pool: 'turn', cause }, 0)

  return {
    groupStarted(env, mode) {
      groupsStarted.inc({ env, mode })
      groupsInFlight.inc({ env, mode })
    },
    groupFinished(env, mode, { verdict, level, stats }, cost, seconds) {
      groupsFinished.inc({ env, mode, outcome: verdict })
      groupsInFlight.dec({ env, mode })
      costTokens.inc({ env, mode, outcome: verdict }, cost.completion_tokens)
      groupSeconds.observe({ env, mode }, seconds)
      scoredRatio.observe({ env, mode }, stats.scored / stats.n)
      if (level) zeroVariance.inc({ env, mode, level })
      if (stats.std !== null) groupStd.observe({ env, mode }, stats.std)
      if (stats.scored > 1 && stats.distinct === 1) identical.inc({ env, mode })
    },
    attemptEnded(env, _mode, _outcome, header) {
      if (!header) return
      parserTurns.inc({ env }, header.turns.length)
      tokens.inc({ env, kind: 'prompt' }, header.prompt_tokens)
      tokens.inc({ env, kind: 'completion' }, header.completion_tokens)
      for (const [code, count] of Object.entries(header.parse_errors))
        parserErrors.inc({ env, code }, count)
      for (const [flag, count] of Object.entries(header.parse_flags))
        parserFlags.inc({ env, flag }, count)
    },
    episodeFinished(env, mode, outcome, header, seconds) {
      episodes.inc({ env, mode, outcome })
      episodeSeconds.observe({ env, mode }, seconds)
      if (header) episodeTurns.observe({ env, mode }, header.turns.length)
      const value = header?.reward ?? null
      if (!isScored(outcome) || value === null) return
      reward.observe({ env, mode }, value)
      rewardPositive.inc({ env, mode }, Math.max(value, 0))
      rewardNegative.inc({ env, mode }, Math.max(-value, 0))
      // A square beyond a double would be Infinity, at which the client library throws.
      rewardSquares.inc({ env, mode }, Math.min(value * value, Number.MAX_VALUE))
    },
    episodeRetried: (env, outcome) => retries.inc({ env, outcome }),
    backendTry(backend, code, seconds) {
      backendRequests.inc({ backend, code })
      backendSeconds.observe({ backend }, seconds)
    },
    backendRetry: (backend, reason) => backendRetries.inc({ backend, reason }),
    heartbeat(step, checkpointStep, at) {
      trainerStep.set(step)
      if (checkpointStep !== null) trainerCheckpoint.set(checkpointStep)
      trainerSeen.set(at)
    },
    policyVersion: (version) => policyVersion.set(version),
    workerExit: (cause) => workerExits.inc({ pool: 'turn', cause }),
    text: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
  }
}
