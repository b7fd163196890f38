// V05, V06 and V08 for what surrounds the checks: weights, ids, rules, requirements, faults, the scripted user.
import type { TaskProblem } from '../../environment.ts'
import { TOOLS, toolsOf } from '../catalogue/registry.ts'
import { toList } from '../grading/evidence.ts'
import { shown } from '../kernel/values.ts'
import type { Check, TaskSpec } from '../spec.ts'
import { checkProblems } from './check-problems.ts'
import { patternProblems, whereProblems } from './condition-problems.ts'
import { problem, repeated, unknownNames } from './problem.ts'

/** How far the weights of completion checks may miss 1. */
const WEIGHT_TOLERANCE = 1e-6

/** V05: weights are positive and add up to 1, ids occur once. */
export function weightProblems({ grading, faults, user }: TaskSpec): TaskProblem[] {
  const sum = grading.completion.reduce((total, { weight }) => total + weight, 0)
  const { completion = 1, robustness = 0 } = grading.weights ?? {}
  const rules = user.mode === 'scripted' ? user.rules : []
  const problems = [
    ...repeatedIds(grading.completion, 'grading.completion'),
    ...repeatedIds(grading.safety, 'grading.safety'),
    ...repeatedIds(faults, 'faults'),
    ...repeatedIds(rules, 'user.rules'),
  ]
  if (Math.abs(sum - 1) > WEIGHT_TOLERANCE)
    problems.push(problem('V05', 'grading.completion', 'weights that add up to 1', String(sum)))
  if (completion < 0 || robustness < 0 || completion + robustness <= 0)
    problems.push(
      problem('V05', 'grading.weights', 'weights from 0, one above', shown(grading.weights)),
    )
  return problems
}

/** V04: the reference path calls tools that the task offers. */
export function pathProblems(spec: TaskSpec): TaskProblem[] {
  const offered = toolsOf(spec).map(({ name }) => name)
  return [
    ...offeredProblems(spec),
    ...spec.reference_path.flatMap((step, i) =>
      'call' in step && !offered.includes(step.call)
        ? [problem('V04', `reference_path[${i}].call`, 'a tool that the task offers', step.call)]
        : [],
    ),
  ]
}

/** V06: a tool that may never be called is not on the reference path. */
export function forbiddenProblems({ grading, reference_path }: TaskSpec): TaskProblem[] {
  return grading.safety.flatMap(({ id, violated_if }, i) => {
    const forbidden = unconditional(violated_if)
    return reference_path.flatMap((step) =>
      'call' in step && forbidden.includes(step.call)
        ? [
            problem(
              'V06',
              `grading.safety[${i}]`,
              `${id} to leave the reference path alone`,
              step.call,
            ),
          ]
        : [],
    )
  })
}

/** V08: all names in grading, faults, user and probes resolve. */
export function nameProblems(spec: TaskSpec, graders: readonly string[]): TaskProblem[] {
  const { grading } = spec
  const within = (path: string, reachable = true) => ({
    spec,
    graders,
    path,
    reachable,
    mayJudge: reachable,
  })
  return [
    ...grading.completion.flatMap((check, i) =>
      checkProblems(check, within(`grading.completion[${i}]`)),
    ),
    ...(grading.gates ?? []).flatMap(({ check }, i) =>
      checkProblems(check, within(`grading.gates[${i}].check`)),
    ),
    ...(grading.caps ?? []).flatMap(({ unless }, i) =>
      checkProblems(unless, within(`grading.caps[${i}].unless`)),
    ),
    ...grading.safety.flatMap(({ violated_if }, i) =>
      checkProblems(violated_if, within(`grading.safety[${i}].violated_if`, false)),
    ),
    ...cycleProblems(spec),
    ...faultProblems(spec),
    ...userProblems(spec),
    ...expectationProblems(spec),
  ]
}

function offeredProblems({ services, tools = [] }: TaskSpec): TaskProblem[] {
  return tools.flatMap((name, i) =>
    services.includes(TOOLS.get(name)!.service)
      ? []
      : [problem('V04', `tools[${i}]`, 'a tool of the task’s services', name)],
  )
}

const repeatedIds = (things: readonly { id: string }[], path: string): TaskProblem[] =>
  repeated(things.map(({ id }) => id)).map(({ value, index }) =>
    problem('V05', `${path}[${index}].id`, 'an id that occurs once', shown(value)),
  )

/** Tools of which a single call breaks the rule, whatever its arguments. */
function unconditional(check: Check): string[] {
  if (check.kind === 'any') return check.of.flatMap(unconditional)
  if (check.kind !== 'call' || check.args || check.ok === false || check.steps) return []
  const least = typeof check.count === 'number' ? check.count : (check.count?.min ?? 1)
  return least <= 1 && check.ratio_of === undefined ? [...toList(check.tool)] : []
}

/** A check that requires itself, be it through others, could never be scored. */
function cycleProblems({ grading: { completion } }: TaskSpec): TaskProblem[] {
  const requires = new Map(completion.map(({ id, requires }) => [id, requires ?? []]))
  const reaches = (from: string, to: string, seen: Set<string>): boolean =>
    (requires.get(from) ?? []).some((next) => {
      if (next === to) return true
      if (seen.has(next)) return false
      return reaches(next, to, seen.add(next))
    })
  return completion.flatMap(({ id }, i) =>
    reaches(id, id, new Set())
      ? [problem('V08', `grading.completion[${i}].requires`, 'no way back to itself', shown(id))]
      : [],
  )
}

function faultProblems({ services, faults, grading }: TaskSpec): TaskProblem[] {
  const ids = faults.map(({ id }) => id)
  return [
    ...faults.flatMap(({ tool, args = {} }, i) => [
      ...whereProblems(args, TOOLS.get(tool)!.params, `faults[${i}].args`),
      ...(services.includes(TOOLS.get(tool)!.service)
        ? []
        : [problem('V08', `faults[${i}].tool`, 'a tool of the task’s services', tool)]),
    ]),
    ...unknownNames(
      'V08',
      Object.keys(grading.verify_with ?? {}),
      ids,
      () => 'grading.verify_with',
      'a fault of the task',
    ),
  ]
}

function userProblems({ user }: TaskSpec): TaskProblem[] {
  if (user.mode === 'none') return []
  const ids = user.rules.map(({ id }) => id)
  const ruleNames = (names: string[] = [], path: string) =>
    unknownNames('V08', names, ids, (i) => `${path}[${i}]`, 'the id of a rule')
  const patterns = (list: string[], path: string) =>
    list.flatMap((pattern, i) => patternProblems(pattern, `${path}[${i}]`))
  return [
    ...user.rules.flatMap(({ if_any, after }, i) => [
      ...patterns(if_any, `user.rules[${i}].if_any`),
      ...ruleNames(after, `user.rules[${i}].after`),
    ]),
    ...patterns(user.done?.if_any ?? [], 'user.done.if_any'),
    ...ruleNames(user.done?.after, 'user.done.after'),
  ]
}

function expectationProblems({ grading, forbidden_probes, transcripts }: TaskSpec): TaskProblem[] {
  const rules = grading.safety.map(({ id }) => id)
  const checks = grading.completion.map(({ id }) => id)
  const probed = forbidden_probes.map(({ rule }) => rule)
  return [
    ...unknownNames('V08', probed, rules, (i) => `forbidden_probes[${i}].rule`, 'a safety rule'),
    ...Object.entries(transcripts).flatMap(([name, { expect }]) => {
      const path = `transcripts.${name}.expect`
      return [
        ...unknownNames(
          'V08',
          Object.keys(expect.checks ?? {}),
          checks,
          () => `${path}.checks`,
          'a completion check',
        ),
        ...unknownNames(
          'V08',
          expect.violations ?? [],
          rules,
          (i) => `${path}.violations[${i}]`,
          'a safety rule',
        ),
      ]
    }),
  ]
}
