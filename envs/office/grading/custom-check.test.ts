// Checks that others decide: what is asked, what of an answer counts, and where the gate lets the judge decide.
import { expect, test } from 'vitest'
import type { JsonObject } from '../../../protocol/json.ts'
import type { Answer } from '../../environment.ts'
import { problemsOf } from '../gate/problems.ts'
import { office } from '../office.ts'
import type { Check, TaskSpec } from '../spec.ts'
import { play, smallSpec, specs } from '../transcripts.testkit.ts'

const weighted = (check: Check, id = 'it', weight = 1) => ({ ...check, id, weight }) as never
const judged: Check = { kind: 'custom', grader: 'judge', params: { rubric: 'polite' } }
const custom: Check = { kind: 'custom', grader: 'mine', params: { n: 1 } }
const by = { grader: 'mine', version: 2, hash: 'abc' }
const say = { say: 'All is done.' }

const stateOf = (...completion: never[]) =>
  play(smallSpec({ grading: { completion, safety: [] } }), [say]).state

function asksOf(...completion: never[]) {
  const grade = office.grade(stateOf(...completion))
  if (grade.status !== 'asks') throw new Error(`expected asks, got ${grade.status}`)
  return grade.asks
}

test('a custom grader is shown calls, records, messages with their role, and the time', () => {
  const [ask] = asksOf(weighted(custom))
  expect(ask).toMatchObject({
    kind: 'grade',
    grader: 'mine',
    params: { n: 1 },
    input: {
      audit: [],
      initial: { 'todo.item': [] },
      final: { 'todo.item': [] },
      messages: [{ role: 'assistant', text: 'All is done.' }],
      now: '2027-03-10T11:00:00+01:00',
    },
  })
})

test('the judge is shown who said what, and equal checks ask once', () => {
  const asks = asksOf(weighted(judged, 'a', 0.5), weighted(judged, 'b', 0.5))
  expect(asks).toMatchObject([
    {
      kind: 'judge',
      rubric: 'polite',
      transcript: [
        { role: 'user', text: 'Please do what the test says.' },
        { role: 'assistant', text: 'All is done.' },
      ],
    },
  ])
})

test.each<[Answer, unknown]>([
  [
    { status: 'scored', rewards: { score: 0.25 }, evidence: [1], by },
    {
      status: 'scored',
      rewards: { score: 0.25 },
      evidence: { checks: { it: { score: 0.25, evidence: [1], by } } },
    },
  ],
  [
    { status: 'unknown', reason: 'no judge', by: {} },
    {
      status: 'unavailable',
      reason: 'no judge',
      evidence: { checks: { it: { status: 'unknown', score: null } } },
    },
  ],
  [
    { status: 'error', reason: 'it hung', by },
    {
      status: 'unavailable',
      reason: 'it hung',
      evidence: { checks: { it: { status: 'error', by } } },
    },
  ],
])('the answer %j is the check’s result', (answer, expected) => {
  const state = stateOf(weighted(custom))
  const [ask] = asksOf(weighted(custom))
  expect(office.grade(state, { [ask!.id]: answer })).toMatchObject(expected as object)
})

test('nobody is asked where what the check requires was not done', () => {
  const done: Check = { kind: 'call', tool: 'todo_create' }
  const grade = office.grade(
    stateOf(weighted(done, 'done', 0.5), weighted({ ...judged, requires: ['done'] }, 'it', 0.5)),
  )
  expect(grade).toMatchObject({ status: 'scored', rewards: { score: 0 } })
})

const [shipped] = specs as [TaskSpec]
const problems = (grading: Partial<TaskSpec['grading']>) =>
  problemsOf({ ...shipped, grading: { ...shipped.grading, ...grading } } as unknown as JsonObject, [
    'mine',
  ]).map(({ rule, path }) => [rule, path])

test('an unknown grader, a judge without a rubric, and a judge that decides a breach are told at load', () => {
  const gate = (check: Check) => ({ gates: [{ check, factor: 0.5 }] })
  expect(problems(gate(custom))).toEqual([])
  expect(problems(gate(judged))).toEqual([])
  expect(problems(gate({ ...custom, grader: 'mime' }))).toEqual([
    ['V08', 'grading.gates[0].check.grader'],
  ])
  expect(problems(gate({ ...judged, params: {} }))).toEqual([
    ['V08', 'grading.gates[0].check.params.rubric'],
  ])
  expect(problems(gate({ kind: 'not', of: judged }))).toEqual([
    ['V08', 'grading.gates[0].check.of.grader'],
  ])
  const safety = shipped.grading.safety.map((rule) => ({ ...rule, violated_if: judged }))
  expect(
    problems({ safety }).every(([rule, path]) => rule === 'V08' && path?.endsWith('.grader')),
  ).toBe(true)
  expect(problems({ safety })).not.toEqual([])
})
