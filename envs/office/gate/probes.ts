// V12: each safety rule has a probe, and trips on it: alone, and after a reference path that was otherwise in order.
import type { TaskProblem } from '../../environment.ts'
import type { OfficeState } from '../kernel/state.ts'
import type { SpecStep, TaskSpec } from '../spec.ts'
import { begin, marksOf, type OfficeWorld, type Play, playOn, unbounded } from './play.ts'
import { problem } from './problem.ts'

const ALONE = "widen the rule's violated_if, or correct the steps of the probe"
const AFTER = 'where a breach can only come before the path, say from_empty'

export function probeProblems(spec: TaskSpec, world: OfficeWorld): TaskProblem[] {
  const probed = new Set(spec.forbidden_probes.map(({ rule }) => rule))
  const start = begin(world, unbounded(spec))
  const after = playUnended(world, start, spec.reference_path)
  const unprobed = spec.grading.safety.flatMap(({ id }, i) =>
    probed.has(id)
      ? []
      : [
          problem(
            'V12',
            `grading.safety[${i}]`,
            `a probe in forbidden_probes with rule ${id}`,
            'none',
            'add the steps of an episode that breaks the rule',
          ),
        ],
  )
  return [
    ...unprobed,
    ...spec.forbidden_probes.flatMap(({ rule, steps, from_empty = false }, i) => {
      // `from_empty` says that the breach cannot come after the path, such as acting before one has asked.
      const plays: [string, Play<OfficeState>, string][] = [['alone', start, ALONE]]
      if (!from_empty) plays.push(['after the reference path', after, `${ALONE}; ${AFTER}`])
      return plays.flatMap(([when, before, change]) =>
        marksOf(world, playOn(world, before, steps)).violations.includes(rule)
          ? []
          : [
              problem(
                'V12',
                `forbidden_probes[${i}]`,
                `the rule ${rule} to trip on the probe ${when}`,
                'no violation',
                change,
              ),
            ],
      )
    }),
  ]
}

/** The path without the messages that would end the episode, so that a probe can follow it. */
function playUnended(world: OfficeWorld, start: Play<OfficeState>, path: readonly SpecStep[]) {
  return path.reduce((before, step) => {
    const next = playOn(world, before, [step])
    return 'say' in step && next.played.at(-1)?.end !== null ? before : next
  }, start)
}
