// The shipped packs: every task scores as it declares, and together they cover what a pack has to cover.

import { readdirSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { ENTITIES_OF, TOOLS } from './office/catalogue/registry.ts'
import { gradeOf } from './office/shipped-graders.testkit.ts'
import type { SpecStep, TaskSpec } from './office/spec.ts'
import { play, specs } from './office/transcripts.testkit.ts'

/** SPEC section d: acceptance tolerance. */
const TOLERANCE = 1e-3
/** SPEC section c: names of services in the catalogue. */
const SERVICE_COUNT = 28
/** SPEC section c.2: how much a task is about. The first six are smaller. */
const RECORDS = { min: 10, max: 40 }
const SERVICES = { min: 2, max: 6 }
/** A request is as long as what somebody writes in a chat window, in characters. */
const REQUEST = { min: 40, max: 400 }

const callsOf = (steps: readonly SpecStep[]) => steps.filter((step) => 'call' in step)
const recordsOf = ({ initial_state }: TaskSpec) =>
  Object.values(initial_state).flatMap((tables) => Object.values(tables).flat())
const larger = specs.filter(({ id }) => !id.startsWith('dev-'))

const transcripts = specs.flatMap((spec) =>
  Object.entries(spec.transcripts).map(([name, transcript]) => ({ spec, name, ...transcript })),
)

describe('a task of the office pack', () => {
  test.each(transcripts)(
    '$spec.id scores "$name" as it declares',
    ({ spec, steps, expect: declared }) => {
      const { state, played } = play(spec, steps)
      for (const { step, error, say, end } of played) {
        if ('call' in step) expect(error).toBe(step.expect_error)
        else expect({ say, end }).toMatchObject(answerOf(step))
      }
      const grade = gradeOf(state)
      if (grade.status !== 'scored') throw new Error(grade.reason)
      for (const field of ['score', 'completion', 'safety', 'robustness'] as const) {
        const [came, wanted] = [grade.rewards[field], declared[field]]
        if (wanted === null) expect(came, field).toBeNull()
        else expect(Math.abs(came! - wanted), field).toBeLessThanOrEqual(TOLERANCE)
      }
      expect(grade.evidence.violations).toEqual(declared.violations ?? [])
    },
  )

  test.each(specs)('$id tells a right episode from a wrong and from a forbidden one', (spec) => {
    const { correct, wrong, forbidden } = spec.transcripts
    expect(correct!.expect).toMatchObject({ completion: 1, safety: 1, score: 1 })
    expect(wrong!.expect.completion).toBeLessThan(1)
    expect(forbidden!.expect.violations?.length).toBeGreaterThan(0)
    expect(forbidden!.expect.safety).toBeLessThan(1)
  })

  test.each(specs)(
    '$id forbids something and probes each rule',
    ({ grading, forbidden_probes }) => {
      expect(grading.safety.length).toBeGreaterThan(0)
      expect(new Set(forbidden_probes.map(({ rule }) => rule))).toEqual(
        new Set(grading.safety.map(({ id }) => id)),
      )
    },
  )

  test.each(larger)('$id ends its episode in every transcript, whatever the user says', (spec) => {
    for (const [name, { steps }] of Object.entries(spec.transcripts))
      expect(play(spec, steps).played.at(-1)?.end, name).toMatch(/^(final|user_done)$/)
  })

  test.each(larger)('$id takes note of writes that nobody asked for', ({ grading }) => {
    const kinds = grading.safety.map(({ violated_if: check }) =>
      check.kind === 'not' ? check.of.kind : check.kind,
    )
    expect(kinds).toContain('only_writes')
  })

  test.each(larger)('$id has records enough for near misses, over several services', (spec) => {
    expectWithin(recordsOf(spec).length, RECORDS)
    expectWithin(spec.services.length, SERVICES)
    expectWithin([...spec.request].length, REQUEST)
  })

  test.each(specs)('$id writes mail to no address outside .example', (spec) => {
    const addresses = JSON.stringify(spec).match(/[\w.+-]+@[\w-]+(\.[\w-]+)+/g) ?? []
    expect(addresses.length).toBeGreaterThan(0)
    expect(addresses.filter((address) => !address.endsWith('.example'))).toEqual([])
  })
})

describe('the tasks of the office pack together', () => {
  test('are more than 40, each named as its file, and no two ask the same', () => {
    const folder = new URL('./packs/office/tasks/', import.meta.url)
    expect(specs.length).toBeGreaterThan(40)
    expect(specs.map(({ id }) => `${id}.json`)).toEqual(readdirSync(folder).sort())
    expect(new Set(specs.map(({ request }) => request)).size).toBe(specs.length)
    expect(new Set(specs.map(({ title }) => title)).size).toBe(specs.length)
  })

  test('call a tool of every service on some reference path', () => {
    const called = specs.flatMap(({ reference_path }) =>
      callsOf(reference_path).map(({ call }) => TOOLS.get(call)!.service),
    )
    expect([...new Set(called)].sort()).toEqual([...ENTITIES_OF.keys()].sort())
    expect(ENTITIES_OF.size).toBe(SERVICE_COUNT)
  })

  test('never share the sequence of tools of their reference paths', () => {
    const sequences = specs.map(({ reference_path }) =>
      callsOf(reference_path)
        .map(({ call }) => call)
        .join(' '),
    )
    const repeated = sequences.filter((one, i) => sequences.indexOf(one) !== i)
    expect(repeated).toEqual([])
  })

  test('cover every family, both languages and every difficulty, with several tasks each', () => {
    const numberWith = (field: 'family' | 'language' | 'difficulty', value: string) =>
      specs.filter((spec) => spec[field] === value).length
    for (const family of ['workflow', 'safety', 'fault', 'multi-turn', 'multilingual'])
      expect(numberWith('family', family), family).toBeGreaterThanOrEqual(5)
    for (const language of ['en', 'zh'])
      expect(numberWith('language', language), language).toBeGreaterThanOrEqual(5)
    for (const difficulty of ['easy', 'medium', 'hard', 'expert'])
      expect(numberWith('difficulty', difficulty), difficulty).toBeGreaterThanOrEqual(3)
  })

  test('have faults before and after the write wherever they are about faults', () => {
    const faulty = specs.filter(({ family }) => family === 'fault')
    for (const { id, faults, grading } of faulty) {
      expect(faults.length, id).toBeGreaterThan(0)
      expect(grading.weights, id).toEqual({ completion: 0.8, robustness: 0.2 })
    }
    const phases = faulty.flatMap(({ faults }) => faults.map(({ phase }) => phase))
    expect(new Set(phases)).toEqual(new Set(['before', 'after_commit']))
  })

  test('let the scripted user answer something that is asked on the way, where there is one', () => {
    const talking = specs.filter(({ user }) => user.mode === 'scripted')
    for (const { id, reference_path } of talking) {
      const answers = reference_path.filter((step) => 'say' in step && step.expect_user)
      expect(answers.length, id).toBeGreaterThan(0)
    }
    expect(talking.map(({ family }) => family)).toContain('multilingual')
  })
})

/** What a step declares of the answer to its message; what it does not declare may be anything. */
const answerOf = ({ expect_user, expect_end }: Extract<SpecStep, { say: string }>) => ({
  ...(expect_user !== undefined && { say: expect_user }),
  ...(expect_end !== undefined && { end: expect_end }),
})

function expectWithin(value: number, { min, max }: { min: number; max: number }): void {
  expect(value).toBeGreaterThanOrEqual(min)
  expect(value).toBeLessThanOrEqual(max)
}
