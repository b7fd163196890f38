// V08 for checks: every tool, entity, field, parameter, id and pattern that a check names must resolve.
import type { TaskProblem } from '../../environment.ts'
import type { Fields } from '../catalogue/derive.ts'
import { entityNamed, TOOLS, toolsOf } from '../catalogue/registry.ts'
import { JUDGE, rubricOf } from '../grading/custom-check.ts'
import { toList } from '../grading/evidence.ts'
import { instantOf } from '../kernel/instant.ts'
import { shown } from '../kernel/values.ts'
import type { Check, CheckKind, TaskSpec, Where } from '../spec.ts'
import { textProblems, whereProblems } from './condition-problems.ts'
import { problem, unknownNames } from './problem.ts'
import { GENERATED_ID, seededIds } from './seeds.ts'

const RULE = 'V08'

interface Place {
  spec: TaskSpec
  path: string
  /** Whether what the check names must be within the task's reach; what a safety rule forbids need not. */
  reachable: boolean
  /** Names of the registered custom graders. */
  graders: readonly string[]
  /** Whether the judge may decide here: its best word must be what earns most, as the gate takes it. */
  mayJudge: boolean
}

/** What of a check, and of those within it, does not resolve. */
export function checkProblems(check: Check, place: Place): TaskProblem[] {
  const ids = place.spec.grading.completion.map(({ id }) => id)
  const { path } = place
  return [
    ...unknownNames(
      RULE,
      check.requires ?? [],
      ids,
      (i) => `${path}.requires[${i}]`,
      'the id of a completion check',
    ),
    ...(KINDS[check.kind] as (check: Check, place: Place) => TaskProblem[])(check, place),
  ]
}

const KINDS: { [K in CheckKind]: (check: Check<K>, place: Place) => TaskProblem[] } = {
  state: ({ entity, where, distinct_by }, place) => [
    ...entityProblems(entity, place),
    ...onEntity(entity, where, place, 'where'),
    ...namesProblems(distinct_by, entityNamed(entity).fields, place, 'distinct_by'),
  ],
  call: ({ tool, args, distinct_by, steps = [] }, place) => [
    ...toolProblems(tool, place),
    ...onTools(tool, args, place, 'args'),
    ...toList(tool).flatMap((name) =>
      namesProblems(distinct_by, TOOLS.get(name)!.params, place, 'distinct_by'),
    ),
    ...steps.flatMap((step, i) =>
      step.length === 2 && step.every(Number.isFinite)
        ? []
        : [
            problem(
              RULE,
              `${place.path}.steps[${i}]`,
              'a number of calls and a score',
              shown(step),
            ),
          ],
    ),
  ],
  cover: coverProblems,
  read: ({ entity, ids }, place) => [
    ...entityProblems(entity, place),
    ...idProblems(entity, ids, place, 'ids'),
    ...nonEmpty(ids, place, 'ids'),
  ],
  order: ({ steps }, place) => [
    ...nonEmpty(steps, place, 'steps'),
    ...steps.flatMap(({ tool, args }, i) => {
      const at = { ...place, path: `${place.path}.steps[${i}]` }
      return [...toolProblems(tool, at), ...onTools(tool, args, at, 'args')]
    }),
  ],
  message: ({ all_of = [], any_of = [], none_of = [] }, { path }) => [
    ...textProblems(all_of, `${path}.all_of`),
    ...textProblems(any_of, `${path}.any_of`),
    ...textProblems(none_of, `${path}.none_of`),
  ],
  unchanged: ({ entity, where, ids, except_ids, fields }, place) => [
    ...entityProblems(entity, place),
    ...onEntity(entity, where, place, 'where'),
    ...idProblems(entity, ids, place, 'ids'),
    ...idProblems(entity, except_ids, place, 'except_ids'),
    ...namesProblems(fields, entityNamed(entity).fields, place, 'fields'),
  ],
  only_writes: ({ allow }, place) =>
    allow.flatMap(({ entity, op, ids, fields }, i) => {
      const at = { ...place, path: `${place.path}.allow[${i}]` }
      return [
        ...entityProblems(entity, at),
        ...unknownNames(
          RULE,
          op === undefined ? [] : toList(op),
          ['create', 'update', 'delete'],
          () => `${at.path}.op`,
          'a kind of write',
        ),
        ...idProblems(entity, ids, at, 'ids'),
        ...namesProblems(fields, entityNamed(entity).fields, at, 'fields'),
      ]
    }),
  slot: ({ where, window, start }, place) => [
    ...entityProblems('calendar.event', place),
    ...onEntity('calendar.event', where, place, 'where'),
    ...(window && window.length !== 2
      ? [problem(RULE, `${place.path}.window`, 'a beginning and an end', shown(window))]
      : []),
    ...[...(window ?? []), ...(start === undefined ? [] : [start])]
      .filter((text) => instantOf(text, 0) === null)
      .map((text) => problem(RULE, place.path, 'date-times with offset', shown(text))),
  ],
  recovered: ({ fault, verify_with = [] }, { spec, path }) => [
    ...unknownNames(
      RULE,
      [fault],
      spec.faults.map(({ id }) => id),
      () => `${path}.fault`,
      'a fault of the task',
    ),
    ...verify_with
      .filter((name) => !TOOLS.has(name))
      .map((name) => problem(RULE, `${path}.verify_with`, 'tools of the catalogue', shown(name))),
  ],
  all: severalProblems,
  any: severalProblems,
  mean: severalProblems,
  not: ({ of }, place) =>
    checkProblems(of, { ...place, path: `${place.path}.of`, mayJudge: false }),
  best: ({ of }, place) => [
    ...nonEmpty(of, place, 'of'),
    ...of.flatMap(({ check }, i) =>
      checkProblems(check, { ...place, path: `${place.path}.of[${i}].check` }),
    ),
  ],
  custom: ({ grader, params }, place) =>
    grader === JUDGE
      ? judgeProblems(params, place)
      : unknownNames(
          RULE,
          [grader],
          [...place.graders, JUDGE],
          () => `${place.path}.grader`,
          'a custom grader of a loaded pack',
        ),
}

function judgeProblems(params: Check<'custom'>['params'], { path, mayJudge }: Place) {
  const rubric = rubricOf(params)
  return [
    ...(rubric === null
      ? [
          problem(
            RULE,
            `${path}.params.rubric`,
            'what deserves 1 and what 0, in words',
            shown(params),
          ),
        ]
      : []),
    ...(mayJudge
      ? []
      : [
          problem(
            RULE,
            `${path}.grader`,
            'a check that the gate can trip (the judge decides in completion, gates and caps, and not within not)',
            shown(JUDGE),
          ),
        ]),
  ]
}

function severalProblems({ of }: Check<'all' | 'any' | 'mean'>, place: Place): TaskProblem[] {
  return [
    ...nonEmpty(of, place, 'of'),
    ...of.flatMap((check, i) => checkProblems(check, { ...place, path: `${place.path}.of[${i}]` })),
  ]
}

function coverProblems(check: Check<'cover'>, place: Place): TaskProblem[] {
  const { source = 'state', entity, tool, scope, items } = check
  const conditions = [scope, ...items]
  const keyOf = (i: number) => (i === 0 ? 'scope' : `items[${i - 1}]`)
  if (source === 'calls') {
    if (!tool)
      return [problem(RULE, `${place.path}.tool`, 'the tools whose calls are meant', 'nothing')]
    return [
      ...nonEmpty(items, place, 'items'),
      ...toolProblems(tool, place),
      ...conditions.flatMap((where, i) => onTools(tool, where, place, keyOf(i))),
    ]
  }
  if (!entity) return [problem(RULE, `${place.path}.entity`, 'the entity that is meant', 'nothing')]
  return [
    ...nonEmpty(items, place, 'items'),
    ...entityProblems(entity, place),
    ...conditions.flatMap((where, i) => onEntity(entity, where, place, keyOf(i))),
  ]
}

function entityProblems(entity: string, { spec, path, reachable }: Place): TaskProblem[] {
  return !reachable || spec.services.includes(entityNamed(entity).service)
    ? []
    : [problem(RULE, `${path}.entity`, 'an entity of the task’s services', shown(entity))]
}

/** Where several tools are named, one that the task offers is enough. */
function toolProblems(tool: string | string[], { spec, path, reachable }: Place): TaskProblem[] {
  const offered = toolsOf(spec).map(({ name }) => name)
  return !reachable || toList(tool).some((name) => offered.includes(name))
    ? []
    : [problem(RULE, `${path}.tool`, 'a tool that the task offers', shown(tool))]
}

const onEntity = (entity: string, where: Where | undefined, { path }: Place, key: string) =>
  whereProblems(where ?? {}, entityNamed(entity).fields, `${path}.${key}`)

const onTools = (tool: string | string[], where: Where | undefined, { path }: Place, key: string) =>
  toList(tool).flatMap((name) =>
    whereProblems(where ?? {}, TOOLS.get(name)!.params, `${path}.${key}`),
  )

const namesProblems = (names: string[] = [], fields: Fields, { path }: Place, key: string) =>
  unknownNames(RULE, names, [...fields.keys()], (i) => `${path}.${key}[${i}]`, 'a known name')

/** Ids must be seeded, or of the form that created records get. */
function idProblems(entity: string, ids: string[] = [], { spec, path }: Place, key: string) {
  const seeded = seededIds(spec, entityNamed(entity))
  return ids.flatMap((id, i) =>
    seeded.includes(id) || GENERATED_ID.test(id)
      ? []
      : [problem(RULE, `${path}.${key}[${i}]`, `the id of a seeded ${entity}`, shown(id))],
  )
}

const nonEmpty = (members: readonly unknown[], { path }: Place, key: string): TaskProblem[] =>
  members.length > 0 ? [] : [problem(RULE, `${path}.${key}`, 'at least one', 'none')]
