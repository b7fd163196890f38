// How the groups of a batch are played: attempts in order through the scheduler, each told to the ledger as it begins and ends.
import type { EpisodePlan } from '../../../rollout/episode.ts'
import { groupReducer, isFinished, type Member, waitingMembers } from '../../../rollout/group.ts'
import type { BatchEvent, EpisodePlace } from '../../../rollout/ports.ts'
import type { TurnEvent } from '../../../rollout/turn-events.ts'
import { askedTotals } from '../asking/asked-cost.ts'
import type { BatchPlan } from './batch-plan.ts'
import type { Settling } from './batch-settling.ts'
import type { UnderWay } from './batch-world.ts'
import { applyEvent, episodeId, type GroupRun } from './group-run.ts'
import { type Deadlines, type PlayedAttempt, type PlayerWorld, playAttempt } from './player.ts'

export interface Attempts {
  /** The group's clock runs from its first attempt on, restarts left out. */
  open(group: GroupRun): void
  /** Queues every member that waits. */
  enqueue(group: GroupRun): void
  /** The cancellation is kept for the whole batch, so that here it is only seen. */
  cancel(group: GroupRun): Promise<void>
}

/** From so many starts without a reply between them on an attempt is a suspect: ordinary restarts cost nothing. */
const SUSPECT_LIVES = 3
/** A process that died so often while a thread played this attempt alone has died of it (OPS R5). */
const MAX_DEATHS = 3
/** What ends the process while no thread plays it is not watched: so many restarts without a reply end the attempt too. */
const MAX_LIVES = 20

type Told = Extract<BatchEvent, { type: 'start' | 'end' | 'close' }>

export function createAttempts(batch: UnderWay, settling: Settling): Attempts {
  const { plan, world, events } = batch
  const { ledger, scheduler, metrics } = world
  const { mode, limits } = plan.request

  function open(group: GroupRun): void {
    metrics.groupStarted(group.known.task.environment, mode)
    const left = limits.group_timeout_s - (ledger.now() - (group.startedAt ?? ledger.now()))
    group.deadline = setTimeout(
      () => settling.guarded(closeByDeadline(group), group),
      Math.max(0, left) * 1000,
    )
    group.deadline.unref()
  }

  function enqueue(group: GroupRun, { index }: Member): void {
    const place = group.startedAt === null ? 'last' : 'first'
    const since = performance.now()
    scheduler.enqueue(
      plan.id,
      {
        opensGroup: () => group.startedAt === null,
        run: () => settling.guarded(play(group, index, since), group),
      },
      place,
    )
  }

  /**
   * Keeps an event and then lets it be seen. Events of a group come one after another, so that the ledger has them in the
   * order in which they were applied. False where the event fits no more once it is its turn.
   */
  function tell(group: GroupRun, event: Told, keep: () => Promise<void>): Promise<boolean> {
    const told = group.last.then(async () => {
      if (group.settled || !fits(group, event)) return false
      await keep()
      applyEvent(group, event, ledger.now())
      return true
    })
    group.last = told.then(
      () => {},
      () => {},
    )
    return told
  }

  /** `since`: when it began to wait for a place. */
  async function play(group: GroupRun, index: number, since: number): Promise<void> {
    const queued = (performance.now() - since) / 1000
    const member = group.state.members[index]
    if (member?.phase !== 'waiting' || batch.halted) return
    const { attempt } = member
    const place = placeOf(group, index)
    const goesOn = group.begun.get(index)?.attempt === attempt
    const journal = goesOn ? ledger.journal(place.episode, attempt) : []
    const isFirst = group.startedAt === null
    const start = {
      type: 'start' as const,
      group: group.index,
      index,
      attempt,
      turns: journal.length,
    }
    if (!(await tell(group, start, () => ledger.tell(plan.id, start)))) return
    if (isFirst && group.deadline === null) open(group)
    const begun = group.begun.get(index)
    /** The end of an attempt is told once it is kept. */
    const held: TurnEvent[] = []
    const { lives = 1, deaths = 0, at = ledger.now() } = begun ?? {}
    const played =
      deaths >= MAX_DEATHS || lives > MAX_LIVES
        ? poisoned(deaths >= MAX_DEATHS ? deaths : lives - 1)
        : await playAttempt(
            episodePlan(plan, group, index, attempt),
            deadlines(group, at),
            playerWorld(place, held, lives < SUSPECT_LIVES ? world.pool : watched(group, start)),
            group.controller.signal,
            journal,
          )
    if (!batch.halted) await end(group, index, attempt, { ...played, queued }, held)
  }

  async function end(
    group: GroupRun,
    index: number,
    attempt: number,
    played: PlayedAttempt & { queued: number },
    held: readonly TurnEvent[],
  ): Promise<void> {
    const { sealed, outcome, reason, seconds, policySeconds, askedSeconds, phases, queued } = played
    const header = sealed?.header ?? null
    const besides = askedTotals(header?.asked ?? {}, askedSeconds)
    const cost = {
      prompt_tokens: header?.prompt_tokens ?? 0,
      completion_tokens: header?.completion_tokens ?? 0,
      seconds: policySeconds,
      ...(besides && { asked: besides }),
    }
    const event = {
      type: 'end' as const,
      group: group.index,
      index,
      attempt,
      end: { outcome, reason, header, cost, seconds: { queued, ...phases } },
    }
    const known = group.state.members.length
    // The group may have been given up while this attempt was played.
    if (!(await tell(group, event, () => ledger.end(placeOf(group, index), event, sealed)))) return
    for (const { type, json } of held) events.append(type, json, world.now())
    const env = group.known.task.environment
    const asked = Object.values(askedSeconds).reduce((sum, one) => sum + one, policySeconds)
    const ended = {
      env,
      mode,
      outcome,
      header,
      seconds,
      playedSeconds: Math.max(0, seconds - asked),
      backend: plan.policy.backend,
      group: group.id,
      episode: episodeId(group, index),
    }
    metrics.attemptEnded(ended)
    const member = group.state.members[index]
    if (member?.phase === 'waiting') {
      metrics.episodeRetried(env, outcome)
      enqueue(group, member)
    } else metrics.episodeFinished(ended)
    for (const added of group.state.members.slice(known)) enqueue(group, added)
    if (group.state.closing === 'short' || group.state.closing === 'enough')
      group.controller.abort()
    if (isFinished(group.state)) await settling.finish(group)
  }

  async function closeByDeadline(group: GroupRun): Promise<void> {
    const event = { type: 'close' as const, group: group.index }
    if (!(await tell(group, event, () => ledger.tell(plan.id, event)))) return
    if (isFinished(group.state)) await settling.finish(group)
  }

  async function closeByCancel(group: GroupRun): Promise<void> {
    await group.last
    if (isFinished(group.state)) return
    group.state = groupReducer(group.state, { type: 'close', why: 'cancel' })
    group.controller.abort()
    if (isFinished(group.state)) await settling.finish(group)
  }

  function placeOf(group: GroupRun, index: number): EpisodePlace {
    return { batch: plan.id, group: group.id, episode: episodeId(group, index) }
  }

  /** `begunAt`: of the attempt, on the ledger's clock, which stands still while no server runs. */
  function deadlines(group: GroupRun, begunAt: number): Deadlines {
    const at = (begin: number, seconds: number) =>
      performance.now() + (begin + seconds - ledger.now()) * 1000
    return {
      turnMs: limits.turn_timeout_s * 1000,
      episodeAt: at(begunAt, limits.episode_timeout_s),
      groupAt: at(group.startedAt ?? begunAt, limits.group_timeout_s),
    }
  }

  /** The pool of a suspect. */
  function watched(
    group: GroupRun,
    { index, attempt }: { index: number; attempt: number },
  ): PlayerWorld['pool'] {
    return world.suspects.watched(world.pool, async (plays) => {
      const event = { type: 'play' as const, group: group.index, index, attempt, plays }
      await ledger.tell(plan.id, event)
      applyEvent(group, event, ledger.now())
    })
  }

  function playerWorld(
    place: EpisodePlace,
    held: TurnEvent[],
    pool: PlayerWorld['pool'],
  ): PlayerWorld {
    return {
      pool,
      client: world.client,
      beside: world.beside,
      keepTurn: ({ attempt }, entry) => ledger.turn(place, attempt, entry),
      onEvents(told) {
        for (const event of told)
          if (event.type === 'outcome') held.push(event)
          else events.append(event.type, event.json, world.now())
      },
    }
  }

  return {
    open,
    enqueue(group) {
      for (const member of waitingMembers(group.state)) enqueue(group, member)
    },
    cancel: (group) => settling.guarded(closeByCancel(group), group),
  }
}

function episodePlan(
  plan: BatchPlan,
  group: GroupRun,
  index: number,
  attempt: number,
): EpisodePlan {
  const { description, task } = group.known
  const { user, reward, limits } = plan.request
  return {
    episode: episodeId(group, index),
    batch: plan.id,
    group: group.id,
    groupIndex: group.index,
    index,
    attempt,
    task: user === 'model' ? { ...task, user } : task,
    seed: group.seed,
    policy: plan.policy,
    ...(plan.asked && { asked: plan.asked }),
    ...(plan.asked?.reward && { metadata: group.metadata }),
    progress: reward.progress,
    contract: plan.contract,
    limits: {
      maxTurns: Math.min(limits.max_turns, description.limits.max_turns ?? limits.max_turns),
      maxTokens: limits.max_tokens,
    },
    onParseError: description.on_parse_error ?? 'feedback',
  }
}

function fits({ state }: GroupRun, event: Told): boolean {
  if (event.type === 'close') return state.closing === null && !isFinished(state)
  const member = state.members[event.index]
  return (
    member?.attempt === event.attempt &&
    member.phase === (event.type === 'start' ? 'waiting' : 'running')
  )
}

function poisoned(times: number): PlayedAttempt {
  const reason = `the server ended ${times} times while this attempt was played, without a reply between them`
  return {
    sealed: null,
    outcome: 'infra_worker',
    reason,
    seconds: 0,
    phases: { reset: 0, turns: 0, grading: 0 },
    policySeconds: 0,
    askedSeconds: {},
  }
}
