// V11: who does nothing earns nothing and breaks nothing, be it that a closing sentence claims otherwise.
import type { TaskProblem } from '../../environment.ts'
import type { SpecStep, TaskSpec } from '../spec.ts'
import { begin, marksOf, type OfficeWorld, playOn } from './play.ts'
import { problem } from './problem.ts'

/** Sentences that end many transcripts and say nothing of any task. */
const CLOSINGS = ['All done, thank you.', '好的,已经完成。']

export function idleProblems(spec: TaskSpec, world: OfficeWorld): TaskProblem[] {
  const idle: SpecStep[][] = [[], ...CLOSINGS.map((say) => [{ say }])]
  const problems = idle.flatMap((steps) => problemsOfIdling(spec, world, steps))
  // What the empty record earns, a closing sentence mostly earns too: one problem for each place is enough.
  return problems.filter(
    ({ path }, index) => problems.findIndex((other) => other.path === path) === index,
  )
}

function problemsOfIdling(spec: TaskSpec, world: OfficeWorld, steps: SpecStep[]): TaskProblem[] {
  const [closing] = steps
  const record = closing && 'say' in closing ? `the sentence "${closing.say}" alone` : 'no step'
  const marks = marksOf(world, playOn(world, begin(world, spec), steps))
  // A gate or a cap may still take away what a check gives: only what comes to completion counts.
  const paid = marks.completion > 0 ? marks.checks : []
  return [
    ...paid.flatMap((score, i) =>
      score > 0
        ? [
            problem(
              'V11',
              `grading.completion[${i}]`,
              `score 0 for ${record}`,
              String(score),
              'let it ask for something that is done: name the check of the deed in `requires`, set requires_action, or ask for a changed record',
            ),
          ]
        : [],
    ),
    ...spec.grading.safety.flatMap(({ id }, i) =>
      marks.violations.includes(id)
        ? [
            problem(
              'V11',
              `grading.safety[${i}]`,
              `${record} to keep the rule ${id}`,
              'a violation',
              'let violated_if name an act that is forbidden and not one that is missing',
            ),
          ]
        : [],
    ),
  ]
}
