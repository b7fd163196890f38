// Playing the steps of a spec through an environment: reference path, probes, transcripts and what is made from them.
import type { JsonObject } from '../../../protocol/json.ts'
import type { Answer, Environment, Graded } from '../../environment.ts'
import { type GraderBook, graded, noGraders } from '../../graded.ts'
import { gradeEpisode } from '../grading/grade.ts'
import { runCall } from '../kernel/call.ts'
import { type AuditRecord, firstState, type OfficeState } from '../kernel/state.ts'
import { answer } from '../kernel/user.ts'
import type { SpecStep, TaskSpec } from '../spec.ts'

/** What of an environment it takes to play steps. */
export type World<State> = Pick<Environment<State>, 'reset' | 'step' | 'reply'>

/** One step and what came of it. */
export interface PlayedStep {
  step: SpecStep
  /** Code of a call that failed; null where it did not, and of a message. */
  error: string | null
  /** What the policy would have read: the observation, or the user's answer. */
  shown: string
  /** The word with which the episode ended here. */
  end: string | null
  audit: JsonObject | null
}

export interface Play<State> {
  state: State
  played: readonly PlayedStep[]
}

/** Plays steps after what has been played, one turn each. */
export function playOn<State>(
  world: World<State>,
  play: Play<State>,
  steps: readonly SpecStep[],
): Play<State> {
  return steps.reduce((before, step) => playStep(world, before, step), play)
}

function playStep<State>(world: World<State>, play: Play<State>, step: SpecStep): Play<State> {
  const turn = play.played.length
  const next = (state: State, came: Partial<PlayedStep>): Play<State> => {
    const nothing = { step, error: null, shown: '', end: null, audit: null }
    return { state, played: [...play.played, { ...nothing, ...came }] }
  }
  if ('say' in step) {
    const first = world.reply(play.state, step.say, turn)
    // Where a model would play the user, the step says what it said.
    const answered =
      'ask' in first ? world.reply(first.state, step.say, turn, step.expect_user ?? '') : first
    if ('say' in answered) return next(answered.state, { shown: answered.say })
    return next(answered.state, { end: 'end' in answered ? answered.end : null })
  }
  const call = {
    id: `call_${turn}`,
    name: step.call,
    arguments: step.args,
    arguments_json: JSON.stringify(step.args),
  }
  const { state, observation, audit, end = null } = world.step(play.state, call, turn)
  const error = observation.is_error ? String(audit.error ?? 'error') : null
  return next(state, { error, shown: observation.content, end, audit })
}

/** Of what a step declares that it expects, the first that did not come. */
export function missedExpectation({
  step,
  error,
  shown,
  end,
}: PlayedStep): { member: string; expected: string; found: string } | null {
  if ('call' in step) {
    if (step.expect_error === undefined || step.expect_error === error) return null
    return { member: 'expect_error', expected: step.expect_error, found: error ?? 'success' }
  }
  const ended = end === null ? 'no end' : `the end (${end})`
  const { expect_user, expect_end } = step
  if (expect_end !== undefined && expect_end !== end)
    return { member: 'expect_end', expected: expect_end, found: ended }
  if (expect_user !== undefined && (end !== null || expect_user !== shown))
    return {
      member: 'expect_user',
      expected: JSON.stringify(expect_user),
      found: end === null ? JSON.stringify(shown) : ended,
    }
  return null
}

/** The office as the gate plays it; tests give another to see the gate notice. */
export interface OfficeWorld extends World<OfficeState> {
  grade(state: OfficeState): Graded
}

/** The judge in the gate, where none is asked: at its most generous, so that no task leans on its severity. */
const generousJudge: Answer = {
  status: 'scored',
  rewards: { score: 1 },
  evidence: [],
  by: { judge: 'none: the gate takes it at its most generous' },
}

/** The office with these custom graders. */
export const officeWorldWith = (graders: GraderBook = noGraders): OfficeWorld => ({
  reset: ({ spec }, seed) => firstState(spec as unknown as TaskSpec, seed),
  step(state, call, turn) {
    const { state: next, content, audit } = runCall(state, call, turn)
    const observation = { content, is_error: !audit.ok }
    const step = { state: next, observation, audit: audit as unknown as JsonObject }
    return next.ended ? { ...step, end: next.ended } : step
  },
  reply: answer,
  grade: (state) =>
    graded({ grade: gradeEpisode }, state, (ask) =>
      ask.kind === 'judge' ? generousJudge : graders.answer(ask),
    ),
})

/** An episode of a spec before its first step. */
export function begin(world: OfficeWorld, spec: TaskSpec): Play<OfficeState> {
  const task = { id: spec.id, environment: 'office', spec: spec as unknown as JsonObject }
  return { state: world.reset(task, spec.seed ?? 0), played: [] }
}

/** The same task without a budget of calls: what a mutant does more must not be stopped before it is graded. */
export function unbounded(spec: TaskSpec): TaskSpec {
  const { max_calls: _calls, ...limits } = spec.limits
  return { ...spec, limits }
}

/** What the gate reads of a grade. */
export interface Marks {
  /** Why there are none, where the grade is unavailable. */
  unavailable: string | null
  completion: number
  safety: number
  robustness: number | null
  /** Scores of completion checks, gates and caps in their order in the spec, and of the faults that fired. */
  checks: number[]
  gates: number[]
  caps: number[]
  recoveries: number[]
  /** Ids of the safety rules that were broken. */
  violations: string[]
}

export function marksOf(world: OfficeWorld, { state }: Play<OfficeState>): Marks {
  const grade = world.grade(state)
  const { checks, gates, caps, recoveries, violations } = grade.evidence
  const scores = (results: unknown) =>
    Object.values(results as Record<string, { score: number | null }>).map(
      ({ score }) => score ?? 0,
    )
  const { completion, safety, robustness } = grade.status === 'scored' ? grade.rewards : {}
  const byId = checks as Record<string, { score: number | null }>
  return {
    unavailable: grade.status === 'scored' ? null : grade.reason,
    completion: completion ?? 0,
    safety: safety ?? 0,
    robustness: robustness ?? null,
    checks: state.spec.grading.completion.map(({ id }) => byId[id]?.score ?? 0),
    gates: scores(gates),
    caps: scores(caps),
    recoveries: scores(recoveries),
    violations: violations as string[],
  }
}

/** Records that a step wrote, be it that the answer was lost. */
export const writesOf = ({ audit }: PlayedStep): AuditRecord['writes'] =>
  (audit?.writes as unknown as AuditRecord['writes'] | undefined) ?? []
