// What is wrong with a spec, found without playing it (SPEC d.1, rules V01 to V09).
import type { JsonObject } from '../../../protocol/json.ts'
import type { TaskProblem } from '../../environment.ts'
import type { TaskSpec } from '../spec.ts'
import { formProblems } from './form.ts'
import {
  forbiddenProblems,
  nameProblems,
  pathProblems,
  weightProblems,
} from './grading-problems.ts'
import { leakProblems } from './leaks.ts'
import { inOrderOfRules } from './problem.ts'
import { seedProblems } from './seeds.ts'

/**
 * Every problem of a spec, in the order of the rules; none where the list is empty. A spec that does not have the form of
 * one (V01) is not looked into further. `graders` are the registered custom ones.
 */
export function problemsOf(spec: JsonObject, graders: readonly string[] = []): TaskProblem[] {
  const misshapen = formProblems(spec)
  if (misshapen.length > 0) return misshapen
  const task = spec as unknown as TaskSpec
  return inOrderOfRules([
    ...seedProblems(task),
    ...pathProblems(task),
    ...weightProblems(task),
    ...forbiddenProblems(task),
    ...leakProblems(task),
    ...nameProblems(task, graders),
  ])
}
