// Which groups of a batch may start: one alone until its graders are seen to work, and none once too much is wasted.
import type { AdmissionPause } from '../protocol/batch.ts'
import type { GroupVerdict } from '../protocol/outcomes.ts'

/** A group and what it is played with: contract, graders, environment and backend in one key. */
export interface Candidate {
  group: string
  combination: string
}

/** What a finished group came to. `records`: rewards that graders wrote, `broken`: those that broke the contract. */
export interface GroupEnd {
  verdict: GroupVerdict
  scored: number
  records: number
  broken: number
  /** Episodes whose grader failed. */
  ungraded: number
  /** The first failure's own words. */
  reason: string | null
}

interface BatchAdmission {
  /** Groups that have not been let start, in their order. */
  waiting: readonly Candidate[]
  /** The canary of each combination: the one group of it that plays. */
  canaries: ReadonlyMap<string, string>
  pause: AdmissionPause | null
}

interface Tally {
  valid: boolean
  records: number
  broken: number
}

export interface AdmissionState {
  /** Combinations that have scored a group, and no batch was paused over them since. */
  proven: ReadonlySet<string>
  /** The newest groups of each combination, of all batches. */
  windows: ReadonlyMap<string, readonly Tally[]>
  batches: ReadonlyMap<string, BatchAdmission>
}

export type AdmissionEvent =
  | { type: 'arrive'; batch: string; candidates: readonly Candidate[] }
  | ({ type: 'end'; batch: string } & Candidate & GroupEnd)
  /** It was paused before a restart: to be told before anything of it arrives. */
  | { type: 'pause'; batch: string; pause: AdmissionPause }
  | { type: 'resume'; batch: string }
  | { type: 'leave'; batch: string }

export const noAdmission: AdmissionState = {
  proven: new Set(),
  windows: new Map(),
  batches: new Map(),
}

const NEW_BATCH: BatchAdmission = { waiting: [], canaries: new Map(), pause: null }

/** Shares mean something from so many groups on. */
const MIN_GROUPS = 50
/** Groups that are looked back on. */
const WINDOW = 100
const MIN_VALID_SHARE = 0.05
const MAX_BROKEN_SHARE = 0.01

/**
 * `started` are the groups that may start now. The first group of a combination that no batch has proven is its
 * canary: it plays alone. One that is lost to the contract, or whose graders score nothing, pauses its batch; one that says
 * nothing of the graders (a backend that is down) hands over to the next group. Later, a batch pauses when more than 1 %
 * of records break the contract (from the first group that is lost to it on), or fewer than 5 % of 50 groups or more
 * are valid. A paused batch starts nothing until it is resumed; what has started ends by itself. Limits: NeMo Gym's
 * max_mask_fraction, generalised.
 */
export function admissionReducer(
  state: AdmissionState,
  event: AdmissionEvent,
): { state: AdmissionState; started: string[] } {
  switch (event.type) {
    case 'arrive': {
      const batch = state.batches.get(event.batch) ?? NEW_BATCH
      const waiting = [...batch.waiting, ...event.candidates]
      return release(withBatch(state, event.batch, { ...batch, waiting }), event.batch)
    }
    case 'end':
      return ended(state, event)
    case 'pause': {
      const batch = { ...NEW_BATCH, pause: event.pause }
      return { state: withBatch(state, event.batch, batch), started: [] }
    }
    case 'resume':
      return resumed(state, event.batch)
    case 'leave': {
      const batches = new Map(state.batches)
      batches.delete(event.batch)
      return { state: { ...state, batches }, started: [] }
    }
  }
}

function ended(
  state: AdmissionState,
  event: Extract<AdmissionEvent, { type: 'end' }>,
): ReturnType<typeof admissionReducer> {
  const { batch: id, combination, group } = event
  const batch = state.batches.get(id)
  if (!batch) return { state, started: [] }
  const canaries = new Map(batch.canaries)
  const isCanary = canaries.get(combination) === group
  if (isCanary) canaries.delete(combination)
  const window = [...(state.windows.get(combination) ?? []), tallyOf(event)].slice(-WINDOW)
  const told = isCanary ? canaryProblem(event) : null
  const problem = told ?? wasteProblem(event, window)
  const proven = new Set(state.proven)
  if (problem) proven.delete(combination)
  else if (event.scored > 0) proven.add(combination)
  // What has paused a batch has been told: from here on it is measured anew.
  const windows = new Map(state.windows).set(combination, problem ? [] : window)
  const next = { ...batch, canaries, pause: batch.pause ?? problem }
  return release(withBatch({ ...state, proven, windows }, id, next), id)
}

function resumed(state: AdmissionState, id: string): ReturnType<typeof admissionReducer> {
  const batch = state.batches.get(id)
  if (!batch?.pause) return { state, started: [] }
  return release(withBatch(state, id, { ...batch, pause: null }), id)
}

/** Lets start what may: all of a proven combination, one canary of every other. */
function release(state: AdmissionState, id: string): ReturnType<typeof admissionReducer> {
  const batch = state.batches.get(id)
  if (!batch || batch.pause || batch.waiting.length === 0) return { state, started: [] }
  const started: string[] = []
  const canaries = new Map(batch.canaries)
  const waiting = batch.waiting.filter(({ group, combination }) => {
    if (!state.proven.has(combination)) {
      if (canaries.has(combination)) return true
      canaries.set(combination, group)
    }
    started.push(group)
    return false
  })
  return { state: withBatch(state, id, { ...batch, waiting, canaries }), started }
}

function tallyOf({ verdict, records, broken }: GroupEnd): Tally {
  return { valid: verdict === 'valid' || verdict === 'partial', records, broken }
}

function canaryProblem(end: Candidate & GroupEnd): AdmissionPause | null {
  const { group, verdict, scored, ungraded } = end
  if (verdict === 'contract_violation')
    return paused('contract', end, `the first group (${group}) broke the contract`)
  if (scored === 0 && ungraded > 0)
    return paused('waste', end, `no episode of the first group (${group}) could be graded`)
  return null
}

function wasteProblem(end: Candidate & GroupEnd, window: readonly Tally[]): AdmissionPause | null {
  const records = window.reduce((total, tally) => total + tally.records, 0)
  const broken = window.reduce((total, tally) => total + tally.broken, 0)
  const lost = end.verdict === 'contract_violation' && end.broken > 0
  const looked = window.length >= MIN_GROUPS
  const many = broken > MAX_BROKEN_SHARE * records
  if ((lost && end.scored === 0) || (many && (lost || (looked && end.broken > 0))))
    return paused('contract', end, `${broken} of the last ${records} records broke the contract`)
  const valid = window.filter((tally) => tally.valid).length
  if (looked && valid < MIN_VALID_SHARE * window.length)
    return paused('waste', end, `${valid} of the last ${window.length} groups were valid`)
  return null
}

function paused(
  reason: AdmissionPause['reason'],
  { group, reason: words }: Candidate & GroupEnd,
  what: string,
): AdmissionPause {
  const first = words === null ? '' : `: ${words}`
  return {
    reason,
    group,
    message: `${what}${first}; mend the cause, then resume or cancel the batch`,
  }
}

function withBatch(state: AdmissionState, id: string, batch: BatchAdmission): AdmissionState {
  return { ...state, batches: new Map(state.batches).set(id, batch) }
}
