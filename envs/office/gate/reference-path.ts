// V10 and V14: the reference path, played through the real tools, earns full marks, and the same ones each time.
import { canonicalJson, digest } from '../../../protocol/json.ts'
import type { TaskProblem } from '../../environment.ts'
import { hasFired } from '../grading/call-checks.ts'
import { episodeOf } from '../grading/evidence.ts'
import type { OfficeState } from '../kernel/state.ts'
import type { TaskSpec } from '../spec.ts'
import {
  begin,
  type Marks,
  marksOf,
  missedExpectation,
  type OfficeWorld,
  type Play,
  type PlayedStep,
  playOn,
} from './play.ts'
import { problem } from './problem.ts'

/** V10: completion 1, safety 1, robustness 1 or null. Where a step goes wrong, only the first that does is told. */
export function referenceProblems(spec: TaskSpec, world: OfficeWorld): TaskProblem[] {
  const turns = turnsProblem(spec)
  if (turns) return [turns]
  const play = playOn(world, begin(world, spec), spec.reference_path)
  for (const [index, played] of play.played.entries()) {
    const wrong = stepProblem(spec, index, played)
    if (wrong) return [wrong]
  }
  return marksProblems(spec, play, marksOf(world, play))
}

/** V14: state, audit and grade of two plays are equal. */
export function replayProblems(spec: TaskSpec, world: OfficeWorld): TaskProblem[] {
  const [one, other] = [spec, structuredClone(spec)].map((same) => {
    const { state, played } = playOn(world, begin(world, same), same.reference_path)
    const audit = played.map((step) => canonicalJson(step.audit))
    return { state: digest(state), audit, grade: JSON.stringify(world.grade(state)) }
  }) as [Replay, Replay]
  const differs = one.audit.findIndex((record, index) => record !== other.audit[index])
  if (differs === -1 && one.state === other.state && one.grade === other.grade) return []
  return [
    problem(
      'V14',
      differs === -1 ? 'reference_path' : `reference_path[${differs}]`,
      'two plays of the same steps to end in one state, audit and grade',
      `${one.state} and ${other.state}`,
      'a tool or a check behind this step reads something beside spec, seed and calls; take it out of the task or mend the tool',
    ),
  ]
}

interface Replay {
  state: string
  audit: string[]
  grade: string
}

/** A turn holds any number of calls, or one message that is answered: with fewer turns nobody comes to the end. */
function turnsProblem({
  limits: { max_turns },
  reference_path: path,
}: TaskSpec): TaskProblem | null {
  const needed = path.filter((step, index) => {
    const before = path[index - 1]
    return 'say' in step || before === undefined || 'say' in before
  }).length
  if (max_turns === undefined || max_turns >= needed) return null
  return problem(
    'V10',
    'limits.max_turns',
    `room for the ${needed} turns that the reference path takes at least`,
    String(max_turns),
    'raise it or shorten the path',
  )
}

function stepProblem(spec: TaskSpec, index: number, played: PlayedStep): TaskProblem | null {
  const { step, error, shown, end } = played
  const at = `reference_path[${index}]`
  if (end === 'max_calls')
    return problem(
      'V10',
      'limits.max_calls',
      `room for the ${spec.reference_path.filter((one) => 'call' in one).length} calls of the reference path`,
      String(spec.limits.max_calls),
      `the budget was spent before ${at}; raise it or shorten the path`,
    )
  const last = spec.reference_path.length - 1
  if (end !== null && index < last) return earlyEnd(at, last, end)
  if ('call' in step && error !== null && step.expect_error === undefined)
    return problem(
      'V10',
      at,
      `${step.call} to succeed`,
      shown,
      'correct its arguments or the seeded records, or declare expect_error where a fault is meant to fail it',
    )
  const missed = missedExpectation(played)
  return missed
    ? problem(
        'V10',
        `${at}.${missed.member}`,
        missed.expected,
        missed.found,
        'write what really comes, or change the step, the fault or the user so that this does',
      )
    : null
}

const ENDS: Record<string, { path: string; change: string }> = {
  user_done: {
    path: 'user.done',
    change:
      'let it fire on the result and not on the question: give it `after` or narrower patterns',
  },
  max_turns: { path: 'user.max_turns', change: 'let the user answer more often' },
}

function earlyEnd(at: string, last: number, end: string): TaskProblem {
  const change = 'a message without a call ends the episode where no user answers: make it the last'
  const known = ENDS[end] ?? { path: at, change }
  return problem(
    'V10',
    known.path,
    `the conversation to go on to the last step, reference_path[${last}]`,
    `its end (${end}) at ${at}`,
    known.change,
  )
}

function marksProblems(spec: TaskSpec, play: Play<OfficeState>, marks: Marks): TaskProblem[] {
  const { unavailable, checks, gates, caps, recoveries, violations } = marks
  if (unavailable !== null)
    return [
      problem('V10', 'grading', 'a grade', unavailable, 'use only checks that can be scored here'),
    ]
  const { grading } = spec
  const short = (scores: number[], path: string, member = '') =>
    scores.flatMap((score, i) => (score < 1 ? [shortfall(`${path}[${i}]${member}`, score)] : []))
  const fired = spec.faults.flatMap(({ id }, i) => (hasFired(episodeOf(play.state), id) ? [i] : []))
  return [
    ...short(checks, 'grading.completion'),
    ...short(gates, 'grading.gates', '.check'),
    ...short(caps, 'grading.caps', '.unless'),
    ...grading.safety.flatMap(({ id }, i) =>
      violations.includes(id)
        ? [
            problem(
              'V10',
              `grading.safety[${i}]`,
              `the reference path to keep the rule ${id}`,
              'a violation',
              'narrow violated_if, or take the forbidden act off the path',
            ),
          ]
        : [],
    ),
    ...recoveries.flatMap((score, i) =>
      score < 1
        ? [
            problem(
              'V10',
              `faults[${fired[i]}]`,
              'the reference path to recover from the fault',
              `recovery ${score}`,
              'repeat the failed call for the same target, or verify it with a tool of grading.verify_with',
            ),
          ]
        : [],
    ),
  ]
}

function shortfall(path: string, score: number): TaskProblem {
  return problem(
    'V10',
    path,
    'score 1 on the reference path',
    String(score),
    'correct what the check asks for, or add to the path what it lacks',
  )
}
