// V13, V15, V16 and V17: no mutant of the reference path keeps full marks.
import type { TaskProblem } from '../../environment.ts'
import type { OfficeState } from '../kernel/state.ts'
import type { TaskSpec } from '../spec.ts'
import { type Mutant, type MutationRule, mutantsOf } from './mutants.ts'
import { begin, marksOf, type OfficeWorld, type Play, playOn, unbounded, writesOf } from './play.ts'
import { problem } from './problem.ts'

/** Survivors of one place that a problem names. */
const MAX_NAMED = 5

/** How mutants fared: `played` of each rule, and those that nothing took marks from. */
export interface MutationTrial {
  played: Record<MutationRule, number>
  survivors: Mutant[]
}

/** A problem for each place of the path at which mutants survive. The path itself has to pass V10. */
export function mutationProblems(spec: TaskSpec, world: OfficeWorld): TaskProblem[] {
  const places = new Map<string, Mutant[]>()
  for (const mutant of tryMutants(spec, world).survivors) {
    const place = `${mutant.rule} ${mutant.path}`
    places.set(place, [...(places.get(place) ?? []), mutant])
  }
  return [...places.values()].map(survivalProblem)
}

/**
 * Plays every mutant. One is caught where it loses completion, a misdirected one also where it trips safety. A
 * repetition that changes nothing is right and is not counted.
 */
export function tryMutants(spec: TaskSpec, world: OfficeWorld): MutationTrial {
  const path = spec.reference_path
  // The state before each step: a mutant shares what comes before the step that it changes.
  const before = [begin(world, unbounded(spec))]
  for (const step of path) before.push(playOn(world, before.at(-1)!, [step]))
  const trial: MutationTrial = { played: { V13: 0, V15: 0, V16: 0, V17: 0 }, survivors: [] }
  // Steps whose write nothing asks for.
  const ungraded = new Set<number>()
  for (const mutant of mutantsOf(spec, before.at(-1)!.played)) {
    const { rule, index, steps } = mutant
    const mutated = playOn(world, before[index]!, steps)
    const step = steps.length > 0 ? mutated.played.at(-1)! : null
    if (rule === 'V16' && step && writesOf(step).length === 0) continue
    trial.played[rule]++
    const rest = playOn(world, mutated, path.slice(index + 1))
    if (isCaught(rule, world, rest)) continue
    // A wrong call that is refused comes to a write left out, which V13 has told already.
    if (step && step.error !== null && writesOf(step).length === 0 && ungraded.has(index)) continue
    if (rule === 'V13') ungraded.add(index)
    trial.survivors.push(mutant)
  }
  return trial
}

function isCaught(rule: MutationRule, world: OfficeWorld, play: Play<OfficeState>): boolean {
  const { completion, safety } = marksOf(world, play)
  return completion < 1 || (rule === 'V15' && safety < 1)
}

function survivalProblem(mutants: readonly Mutant[]): TaskProblem {
  const [{ rule, path }] = mutants as [Mutant]
  const named = mutants.slice(0, MAX_NAMED).map((mutant) => mutant.put)
  const put = named.join(', ') + (mutants.length > MAX_NAMED ? ', …' : '')
  switch (rule) {
    case 'V13':
      return problem(
        rule,
        path,
        'completion below 1 where this write is left out',
        'completion 1',
        'add a check of what it writes, or take it off the path if it is not wanted',
      )
    case 'V15':
      return problem(
        rule,
        path,
        'completion below 1, or a violation, with the id of another record',
        `full marks with ${put}`,
        'let a check ask for this very id, or let an extra record cost something (extra_penalty, unchanged, only_writes)',
      )
    case 'V16':
      return problem(
        rule,
        path,
        'completion below 1 where this write is repeated',
        'completion 1',
        'let a surplus cost something: extra_penalty or max_extra of a cover, or an exact count',
      )
    case 'V17':
      return problem(
        rule,
        path,
        'completion below 1 where this write is replaced by a copy of another of the same tool',
        `completion 1 with a copy of ${put}`,
        'the checks cannot tell distinct items from copies of one: use a cover with one item for each record instead of a count',
      )
  }
}
