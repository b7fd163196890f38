// The gate: everything that is wrong with a spec, first what is seen without playing it, then what its own steps show.
import type { JsonObject } from '../../../protocol/json.ts'
import type { TaskProblem } from '../../environment.ts'
import { type GraderBook, noGraders } from '../../graded.ts'
import type { TaskSpec } from '../spec.ts'
import { idleProblems } from './idle.ts'
import { mutationProblems } from './mutations.ts'
import { type OfficeWorld, officeWorldWith } from './play.ts'
import { probeProblems } from './probes.ts'
import { inOrderOfRules } from './problem.ts'
import { problemsOf } from './problems.ts'
import { referenceProblems, replayProblems } from './reference-path.ts'

/**
 * V01 to V17 (SPEC d.1), in the order of the rules; an empty list lets the task pass. A spec with a problem of V01 to V09
 * is not played. `mutations` adds V13 and V15 to V17, which play every wrong variant of the reference path (some 40 of a
 * usual task, 20 ms) and say something only of a path that passes V10.
 */
export function gate(
  spec: JsonObject,
  { mutations, graders = noGraders }: { mutations: boolean; graders?: GraderBook },
  world: OfficeWorld = officeWorldWith(graders),
): TaskProblem[] {
  const unplayed = problemsOf(spec, graders.names)
  if (unplayed.length > 0) return unplayed
  const task = spec as unknown as TaskSpec
  const reference = referenceProblems(task, world)
  return inOrderOfRules([
    ...reference,
    ...idleProblems(task, world),
    ...probeProblems(task, world),
    ...replayProblems(task, world),
    ...(mutations && reference.length === 0 ? mutationProblems(task, world) : []),
  ])
}
