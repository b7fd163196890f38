// Plays one attempt of one episode: turns in the pool, requests to the policy, and a deadline on every wait.
import { setTimeout as delay } from 'node:timers/promises'
import { PaddockError } from '../../protocol/errors.ts'
import type { EpisodeOutcome } from '../../protocol/outcomes.ts'
import type { SealedEpisode } from '../../protocol/sealed.ts'
import type { EpisodePlan } from '../../rollout/episode.ts'
import type { PolicyRequest } from '../../rollout/turn.ts'
import type { TurnEvent } from '../../rollout/turn-events.ts'
import type { TurnJobResult } from './jobs.ts'
import type { PolicyAnswer, PolicyClient } from './policy-client.ts'
import type { Pool } from './pool.ts'
import type { KeptState } from './state-cache.ts'

/** When an attempt must be over, in milliseconds of `performance.now()`, and how long one turn may take. */
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
  /** Seconds from start to seal, and those of them spent waiting for the policy. */
  seconds: number
  policySeconds: number
}

export interface PlayerWorld {
  pool: Pool
  client: PolicyClient
  /** Awaited before the next request of the episode goes out. */
  keepTurn(plan: EpisodePlan, reply: Uint8Array): Promise<void>
  onEvents(events: readonly TurnEvent[]): void
}

/** A backend that breaks a turn off is given a little time before the turn goes on. */
const ABORT_PAUSE_MS = 50
const LONGEST_ABORT_PAUSE_MS = 2000

/** Never rejects: whatever happens becomes an outcome. `signal` withdraws the attempt (cancel, shutdown). */
export async function playAttempt(
  plan: EpisodePlan,
  deadlines: Deadlines,
  world: PlayerWorld,
  signal: AbortSignal,
): Promise<PlayedAttempt> {
  const started = performance.now()
  const waited = { seconds: 0 }
  const played = await playTurns(plan, deadlines, world, signal, waited)
  return { ...played, seconds: (performance.now() - started) / 1000, policySeconds: waited.seconds }
}

type Ending = Pick<PlayedAttempt, 'sealed' | 'outcome' | 'reason'>

async function playTurns(
  plan: EpisodePlan,
  deadlines: Deadlines,
  world: PlayerWorld,
  signal: AbortSignal,
  waited: { seconds: number },
): Promise<Ending> {
  let state: KeptState | null = null
  try {
    let result: TurnJobResult = await world.pool.run('begin', plan)
    for (;;) {
      world.onEvents(result.events)
      if (result.kind === 'end') return ending(result.sealed)
      state = result.state
      const asked = performance.now()
      const answer = await ask(result.request, deadlines, world, signal)
      waited.seconds += (performance.now() - asked) / 1000
      if (answer.kind === 'failure')
        return await giveUp(plan, state, answer.outcome, answer.reason, world)
      await world.keepTurn(plan, answer.body)
      const { status, headers, body } = answer
      result = await world.pool.run('advance', { state, reply: { status, headers, body } })
    }
  } catch (error) {
    // A PaddockError is the thread's own answer: the task cannot be played. Anything else is the machinery's fault.
    const outcome = error instanceof PaddockError ? 'infra_env' : 'infra_worker'
    return giveUp(plan, state, outcome, (error as Error).message, world)
  }
}

/** One policy request under the nearest of the three deadlines, whose name a timeout then carries. */
async function ask(
  request: PolicyRequest,
  deadlines: Deadlines,
  { client }: PlayerWorld,
  signal: AbortSignal,
): Promise<PolicyAnswer> {
  if (request.aborts > 0)
    await delay(abortPause(request.aborts), undefined, { signal }).catch(() => {})
  const limits = [
    { name: 'turn_timeout_s', at: performance.now() + deadlines.turnMs },
    { name: 'episode_timeout_s', at: deadlines.episodeAt },
    { name: 'group_timeout_s', at: deadlines.groupAt },
  ]
  const nearest = limits.reduce((a, b) => (b.at < a.at ? b : a))
  const answer = await client.ask(request, nearest.at, signal)
  if (answer.kind !== 'failure' || answer.outcome !== 'timeout') return answer
  const reason = `${nearest.name} ran out while backend ${request.backend} was asked for turn ${request.turn}`
  return { ...answer, reason }
}

function abortPause(aborts: number): number {
  return Math.min(ABORT_PAUSE_MS * 2 ** (aborts - 1), LONGEST_ABORT_PAUSE_MS)
}

/** Seals what there is of a failed attempt; where even that fails, the outcome alone is reported. */
async function giveUp(
  plan: EpisodePlan,
  state: KeptState | null,
  outcome: EpisodeOutcome,
  reason: string,
  world: PlayerWorld,
): Promise<Ending> {
  try {
    const result = await world.pool.run('conclude', { state, plan, outcome, reason })
    if (result.kind !== 'end') throw new Error('conclude did not end the episode')
    world.onEvents(result.events)
    return ending(result.sealed)
  } catch {
    return { sealed: null, outcome, reason }
  }
}

function ending(sealed: SealedEpisode): Ending {
  return { sealed, outcome: sealed.header.outcome, reason: sealed.header.reason }
}
