// One finding about a spec, as the gate reports it.
import type { TaskProblem } from '../../environment.ts'
import { shown } from '../kernel/values.ts'

/** `found` is shown as JSON unless it is text already made to be read; `change` says how it could be mended. */
export function problem(
  rule: string,
  path: string,
  expected: string,
  found: string,
  change?: string,
): TaskProblem {
  const what = `${rule} ${path || 'spec'}: expected ${expected}, found ${found}`
  return { rule, path, expected, found, message: change ? `${what}; ${change}` : what }
}

/** V01 first; within a rule as they were found. */
export const inOrderOfRules = (problems: readonly TaskProblem[]): TaskProblem[] =>
  problems.toSorted((a, b) => (a.rule < b.rule ? -1 : a.rule > b.rule ? 1 : 0))

/** Values that occur more than once, with the place of each repetition. */
export function repeated(values: readonly string[]): { value: string; index: number }[] {
  return values.flatMap((value, index) => (values.indexOf(value) < index ? [{ value, index }] : []))
}

/** A problem for each of these names that is not among the known ones. */
export function unknownNames(
  rule: string,
  names: readonly string[],
  known: readonly string[],
  pathOf: (index: number) => string,
  noun: string,
): TaskProblem[] {
  return names.flatMap((name, index) =>
    known.includes(name)
      ? []
      : [
          problem(
            rule,
            pathOf(index),
            `${noun} (${known.join(', ') || 'there is none'})`,
            shown(name),
          ),
        ],
  )
}
