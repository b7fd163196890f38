// A group under way as a reducer: which members wait, run or have ended, and when the group is finished.

import type { GroupPolicy } from '../protocol/batch.ts'
import { type EpisodeOutcome, isScored } from '../protocol/outcomes.ts'

export interface GroupRules {
  size: number
  attempts: number
  minScored: number
  onShort: GroupPolicy['on_short']
  /** Scored members that are enough; undefined: all are wanted. */
  enough?: number
  /** True where a group that is lost stops. */
  stopEarly?: boolean
  /** False where a timeout is final. */
  retryTimeouts?: boolean
}

export interface Member {
  index: number
  /** The try that waits, runs or ended last; from 1. */
  attempt: number
  phase: 'waiting' | 'running' | 'ended'
  /** Set once the member has ended for good. */
  outcome: EpisodeOutcome | null
  /** Its attempt had begun when the server ended: it waits to go on. */
  interrupted: boolean
}

export interface GroupState {
  rules: GroupRules
  members: Member[]
  /** Why no further attempt starts: a caller, a deadline, too few votes left, or enough of them. */
  closing: 'cancel' | 'deadline' | 'short' | 'enough' | null
}

export type GroupEvent =
  | { type: 'start'; index: number }
  | { type: 'end'; index: number; outcome: EpisodeOutcome }
  | { type: 'interrupt'; index: number }
  | { type: 'close'; why: 'cancel' | 'deadline' }

/** Failures after which another attempt may do better. A caller's abort and what the model wrote are final. */
const RETRYABLE: ReadonlySet<EpisodeOutcome> = new Set([
  'infra_backend',
  'infra_worker',
  'infra_env',
  'infra_tool',
  'infra_store',
  'timeout',
  'contract_violation',
  'verifier_error',
])

export function newGroup(rules: GroupRules): GroupState {
  const members = Array.from({ length: rules.size }, (_, index) => newMember(index))
  return { rules, members, closing: null }
}

/**
 * The transition table. `retry` tries a failed member again up to `attempts` tries; `top_up` does so and then puts a
 * fresh member in its place (as many as the group has members); `close` and `drop` take a first failure as final, and
 * `drop` stops the group as soon as it cannot have `min_scored` votes any more.
 */
export function groupReducer(state: GroupState, event: GroupEvent): GroupState {
  switch (event.type) {
    case 'start':
      return withMember(state, event.index, 'waiting', (member) => ({
        ...member,
        phase: 'running',
        interrupted: false,
      }))
    case 'interrupt':
      return withMember(state, event.index, 'running', (member) =>
        state.closing
          ? { ...member, phase: 'ended', outcome: outcomeOf(state.closing) }
          : { ...member, phase: 'waiting', interrupted: true },
      )
    case 'end':
      return afterEnd(
        withMember(state, event.index, 'running', (member) =>
          endAttempt(state, member, event.outcome),
        ),
        event.index,
      )
    case 'close':
      return state.closing ? state : closed(state, event.why)
  }
}

/** Members whose next attempt may start. */
export function waitingMembers(state: GroupState): Member[] {
  return state.members.filter((member) => member.phase === 'waiting')
}

export function isFinished(state: GroupState): boolean {
  return state.members.every((member) => member.phase === 'ended')
}

/** True once any attempt has started; a group that was closed before that has started and finished at once. */
export function hasStarted(state: GroupState): boolean {
  return state.members.some(memberStarted)
}

export function memberStarted(member: Member): boolean {
  return member.phase !== 'waiting' || member.attempt > 1 || member.interrupted
}

/** The members that are delivered: with `top_up` the scored ones first, up to the group's size, in their order. */
export function deliveredMembers(state: GroupState): Member[] {
  if (state.members.length === state.rules.size) return state.members
  const scored = state.members.filter((member) => member.outcome && isScored(member.outcome))
  const others = state.members.filter((member) => !scored.includes(member))
  return [...scored, ...others].slice(0, state.rules.size).sort((a, b) => a.index - b.index)
}

/** Every member that has not ended yet ends as `outcome`: for a group that cannot go on. */
export function allEnded(state: GroupState, outcome: EpisodeOutcome): GroupState {
  const members = state.members.map((member) =>
    member.phase === 'ended' ? member : { ...member, phase: 'ended' as const, outcome },
  )
  return { ...state, members, closing: state.closing ?? 'short' }
}

function newMember(index: number): Member {
  return { index, attempt: 1, phase: 'waiting', outcome: null, interrupted: false }
}

function withMember(
  state: GroupState,
  index: number,
  expected: Member['phase'],
  change: (member: Member) => Member,
): GroupState {
  const member = state.members[index]
  if (member?.phase !== expected)
    throw new Error(`member ${index} is ${member?.phase ?? 'absent'}, expected ${expected}`)
  return { ...state, members: state.members.with(index, change(member)) }
}

function endAttempt(state: GroupState, member: Member, outcome: EpisodeOutcome): Member {
  const { attempts, onShort, retryTimeouts = true } = state.rules
  const again =
    RETRYABLE.has(outcome) &&
    (retryTimeouts || outcome !== 'timeout') &&
    state.closing === null &&
    (onShort === 'retry' || onShort === 'top_up') &&
    member.attempt < attempts
  return again
    ? { ...member, phase: 'waiting', attempt: member.attempt + 1 }
    : { ...member, phase: 'ended', outcome }
}

/** A member that failed for good may be replaced, or may decide the group; a scored one may be the last that is wanted. */
function afterEnd(state: GroupState, index: number): GroupState {
  const { size, minScored, onShort, stopEarly, enough = Number.POSITIVE_INFINITY } = state.rules
  const member = state.members[index]
  if (member?.phase !== 'ended' || !member.outcome || state.closing) return state
  if (isScored(member.outcome)) {
    const scored = state.members.filter((one) => one.outcome && isScored(one.outcome)).length
    return scored >= enough ? closed(state, 'enough') : state
  }
  if (onShort === 'top_up' && RETRYABLE.has(member.outcome) && state.members.length < 2 * size)
    return { ...state, members: [...state.members, newMember(state.members.length)] }
  const possible = state.members.filter((one) => !one.outcome || isScored(one.outcome)).length
  // Two votes make a partial group, where partial ones are taken.
  const needed = onShort === 'close' ? Math.min(2, minScored) : minScored
  const stops = onShort === 'drop' || stopEarly === true
  return stops && possible < needed ? closed(state, 'short') : state
}

/** Members that wait end at once; those that run are ended by whoever runs them. */
function closed(state: GroupState, why: NonNullable<GroupState['closing']>): GroupState {
  const outcome = outcomeOf(why)
  const members = state.members.map((member) =>
    member.phase === 'waiting' ? { ...member, phase: 'ended' as const, outcome } : member,
  ) as Member[]
  return { ...state, members, closing: why }
}

function outcomeOf(closing: NonNullable<GroupState['closing']>): EpisodeOutcome {
  return closing === 'deadline' ? 'timeout' : 'aborted'
}
