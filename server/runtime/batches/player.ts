// Plays one attempt of one episode: turns in the pool, requests to policy and others, and a deadline on every wait.
import { PaddockError } from '../../../protocol/errors.ts'
import type { EpisodeSeconds } from '../../../protocol/group.ts'
import type { EpisodeOutcome } from '../../../protocol/outcomes.ts'
import type { SealedEpisode } from '../../../protocol/sealed.ts'
import type { EpisodePlan } from '../../../rollout/episode.ts'
import type { AskKind, EpisodeRequest, PolicyRequest } from '../../../rollout/request.ts'
import type { TurnEvent } from '../../../rollout/turn-events.ts'
import { StoreFailed } from '../../ledger/store.ts'
import type { Beside, BesideRequest } from '../asking/beside.ts'
import type { Seat } from '../policy/endpoints.ts'
import type { PolicyClient } from '../policy/policy-client.ts'
import type { PolicyAnswer } from '../policy/policy-try.ts'
import type { TurnJobResult } from '../threads/jobs.ts'
import { openPatience, type Patience } from '../threads/patience.ts'
import { GivenUp, type Pool } from '../threads/pool.ts'
import type { KeptState } from '../threads/state-cache.ts'
import { JournalMismatch, journalEntry, journaledReply } from './journal.ts'

/**
 * When an attempt must be over, in milliseconds of `performance.now()`, and how long one turn may take: from its first
 * request, over every abort, until its answer is played. The reset that goes before the first turn has as long for itself.
 */
export interface Deadlines {
  turnMs: number
  episodeAt: number
  groupAt: number
}

export interface PlayedAttempt {
  /** Null only where not even the failure could be sealed: then `outcome` and `reason` are all there is. */
  sealed: SealedEpisode | null
  outcome: EpisodeOutcome
  reason: string | null
  /** Seconds from start to seal, what they consist of, and those of them spent waiting for the policy. */
  seconds: number
  phases: Omit<EpisodeSeconds, 'queued'>
  policySeconds: number
  /** Seconds of waiting beside the policy's, by whom was asked. */
  askedSeconds: Partial<Record<AskKind, number>>
}

export interface PlayerWorld {
  pool: Pool
  client: PolicyClient
  beside: Beside
  /** Keeps an entry of the attempt's journal; awaited before the next request of the episode goes out. */
  keepTurn(plan: EpisodePlan, entry: Uint8Array): Promise<void>
  onEvents(events: readonly TurnEvent[]): void
}

/** A backend that breaks a turn off is given a little time before the turn goes on. */
const ABORT_PAUSE_MS = 50
const LONGEST_ABORT_PAUSE_MS = 2000
/** A failure may wait so long for its seal. A timeout is told within a second of its limit, sealed or not. */
const SEAL_MS = 30_000
const SEAL_AFTER_TIMEOUT_MS = 900

/**
 * Whatever happens becomes an outcome; rejects only where the ledger has failed, or where `journal` does not fit. `signal`
 * withdraws the attempt (cancel, shutdown). `journal` has the replies that the attempt has had before a restart: they are
 * played again, in order, and nobody is asked for them.
 */
export async function playAttempt(
  plan: EpisodePlan,
  deadlines: Deadlines,
  world: PlayerWorld,
  signal: AbortSignal,
  journal: readonly Uint8Array[] = [],
): Promise<PlayedAttempt> {
  const started = performance.now()
  const watch: Watch = { waited: {}, reset: null, answered: null }
  const played = await playTurns(plan, deadlines, world, signal, watch, journal)
  const { policy = 0, ...askedSeconds } = watch.waited
  const ended = performance.now()
  const phases = phasesOf(started, watch, ended)
  return {
    ...played,
    seconds: (ended - started) / 1000,
    phases,
    policySeconds: policy,
    askedSeconds,
  }
}

/** An episode that ended in its reset was all reset; one that was never answered had no turns. */
function phasesOf(started: number, watch: Watch, ended: number): PlayedAttempt['phases'] {
  const reset = watch.reset ?? ended
  const answered = watch.answered ?? reset
  return {
    reset: (reset - started) / 1000,
    turns: (answered - reset) / 1000,
    grading: (ended - answered) / 1000,
  }
}

type Ending = Pick<PlayedAttempt, 'sealed' | 'outcome' | 'reason'>
/** What is measured of an attempt while it is played. */
interface Watch {
  /** Seconds of waiting, by whom was asked. */
  waited: Partial<Record<EpisodeRequest['kind'], number>>
  /** When it was reset, and when policy or user answered last (or failed to), in milliseconds of `performance.now()`. */
  reset: number | null
  answered: number | null
}

async function playTurns(
  plan: EpisodePlan,
  deadlines: Deadlines,
  world: PlayerWorld,
  signal: AbortSignal,
  watch: Watch,
  journal: readonly Uint8Array[],
): Promise<Ending> {
  const kept = journal.values()
  let state: KeptState | null = null
  const seat: Seat = { endpoint: null }
  let limit = openLimit('the reset', deadlines, signal)
  const renewLimit = (request: EpisodeRequest) => {
    limit.patience.close()
    limit = openLimit(whatOf(request), deadlines, signal)
  }
  try {
    let result: TurnJobResult = await world.pool.run('begin', plan, limit.patience)
    watch.reset = performance.now()
    for (;;) {
      world.onEvents(result.events)
      if (result.kind === 'end') {
        if (!kept.next().done) throw new JournalMismatch('the end')
        if (isUnusable(result.sealed)) world.client.blame(seat)
        return ending(result.sealed)
      }
      state = result.state
      const { request } = result
      if (request.kind === 'policy' && request.aborts === 0) {
        limit.patience.close()
        // A pause costs no turn its time.
        limit = openLimit('a pause', { ...deadlines, turnMs: Infinity }, signal)
        await world.client.resumed(request.backend, limit.patience)
        renewLimit(request)
      }
      const before = kept.next()
      if (!before.done) {
        const reply = journaledReply(before.value, request)
        result = await world.pool.run('advance', { state, reply }, limit.patience)
        continue
      }
      const asked = performance.now()
      const answer =
        request.kind === 'policy'
          ? await ask(request, limit, world, signal, seat)
          : await askBeside(request, deadlines, world, signal)
      note(watch, request.kind, asked)
      if (answer.kind === 'failure')
        return await giveUp(plan, state, answer.outcome, answer.reason, world)
      // Who was asked beside the policy had a limit of its own: playing the answer has one anew.
      if (request.kind !== 'policy') renewLimit(request)
      const { kind: _, ...reply } = answer
      await world.keepTurn(plan, journalEntry(request, reply))
      result = await world.pool.run('advance', { state, reply }, limit.patience)
    }
  } catch (error) {
    if (error instanceof JournalMismatch || error instanceof StoreFailed) throw error
    const { outcome, reason } = failureOf(error as Error, limit, signal)
    return giveUp(plan, state, outcome, reason, world)
  } finally {
    limit.patience.close()
  }
}

/** A wait that began at `asked` is over. */
function note(watch: Watch, kind: EpisodeRequest['kind'], asked: number): void {
  const now = performance.now()
  watch.waited[kind] = (watch.waited[kind] ?? 0) + (now - asked) / 1000
  if (kind === 'policy' || kind === 'user') watch.answered = now
}

/** The nearest of the three deadlines, whose name a timeout carries, and the wait for it. */
interface Limit {
  name: string
  /** What it bounds, as `turn 3`. */
  what: string
  at: number
  patience: Patience
}

function openLimit(what: string, deadlines: Deadlines, signal: AbortSignal): Limit {
  const limits = [
    { name: 'turn_timeout_s', at: performance.now() + deadlines.turnMs },
    { name: 'episode_timeout_s', at: deadlines.episodeAt },
    { name: 'group_timeout_s', at: deadlines.groupAt },
  ]
  const nearest = limits.reduce((a, b) => (b.at < a.at ? b : a))
  return { ...nearest, what, patience: openPatience(nearest.at, signal) }
}

/** What a wait is for, in words. */
function whatOf(request: EpisodeRequest): string {
  if (request.kind === 'policy') return `turn ${request.turn}`
  return `the ${BESIDE[request.kind]} after turn ${request.turn}`
}

const BESIDE = { user: 'user', judge: 'judge', grade: 'custom grader', reward: 'reward model' }

/** One request beside the policy. Its own limit is an answer like any other; that of the episode or the group ends it. */
async function askBeside(
  request: BesideRequest,
  { episodeAt, groupAt }: Deadlines,
  { beside }: PlayerWorld,
  signal: AbortSignal,
): Promise<PolicyAnswer> {
  const deadline = Math.min(episodeAt, groupAt)
  const reply = await beside.ask(request, deadline, signal)
  if (signal.aborted) return { kind: 'failure', outcome: 'aborted', reason: 'withdrawn' }
  if (reply.status !== 0 || performance.now() < deadline) return { kind: 'reply', ...reply }
  const name = episodeAt < groupAt ? 'episode_timeout_s' : 'group_timeout_s'
  const reason = `${name} ran out while ${whatOf(request)} was asked`
  return { kind: 'failure', outcome: 'timeout', reason }
}

/** One policy request within the limit of its turn. */
async function ask(
  request: PolicyRequest,
  { name, what, at, patience }: Limit,
  { client }: PlayerWorld,
  signal: AbortSignal,
  seat: Seat,
): Promise<PolicyAnswer> {
  if (request.aborts > 0) await patience.wait(abortPause(request.aborts))
  const answer = await client.ask(request, at, signal, seat)
  if (answer.kind !== 'failure' || answer.outcome !== 'timeout' || answer.reason !== '')
    return answer
  const reason = `${name} ran out while backend ${request.backend} was asked for ${what}`
  return { ...answer, reason }
}

/** A PaddockError is the thread's own answer: the task cannot be played. Most else is the machinery's fault. */
function failureOf(
  error: Error,
  { name, what }: Limit,
  signal: AbortSignal,
): { outcome: EpisodeOutcome; reason: string } {
  if (error instanceof GivenUp)
    return signal.aborted
      ? { outcome: 'aborted', reason: 'withdrawn' }
      : { outcome: 'timeout', reason: `${name} ran out while ${what} was played` }
  const outcome = error instanceof PaddockError ? 'infra_env' : 'infra_worker'
  return { outcome, reason: error.message }
}

function abortPause(aborts: number): number {
  return Math.min(ABORT_PAUSE_MS * 2 ** (aborts - 1), LONGEST_ABORT_PAUSE_MS)
}

/** A reply that came and was refused. A grader's breach of contract looks alike, and costs its endpoint no more than a rank. */
function isUnusable({ header: { outcome } }: SealedEpisode): boolean {
  return outcome === 'contract_violation' || outcome === 'infra_backend'
}

/** Seals what there is of a failed attempt; where even that fails, the outcome alone is reported. */
async function giveUp(
  plan: EpisodePlan,
  state: KeptState | null,
  outcome: EpisodeOutcome,
  reason: string,
  world: PlayerWorld,
): Promise<Ending> {
  const ms = outcome === 'timeout' ? SEAL_AFTER_TIMEOUT_MS : SEAL_MS
  const patience = openPatience(performance.now() + ms, null)
  try {
    const result = await world.pool.run('conclude', { state, plan, outcome, reason }, patience)
    if (result.kind !== 'end') throw new Error('conclude did not end the episode')
    world.onEvents(result.events)
    return ending(result.sealed)
  } catch {
    return { sealed: null, outcome, reason }
  } finally {
    patience.close()
  }
}

function ending(sealed: SealedEpisode): Ending {
  return { sealed, outcome: sealed.header.outcome, reason: sealed.header.reason }
}
