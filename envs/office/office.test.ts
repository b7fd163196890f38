import { describe, expect, test } from 'vitest'
import { canonicalJson, digest, type JsonObject } from '../../protocol/json.ts'
import { TOOLS } from './catalogue/registry.ts'
import { office } from './office.ts'
import { gradeOf } from './shipped-graders.testkit.ts'
import type { TaskSpec } from './spec.ts'
import {
  asTask,
  begin,
  type Playing,
  play,
  playStep,
  smallSpec,
  specs,
  toolCall,
} from './transcripts.testkit.ts'

/** SPEC section d: acceptance tolerance. */
const TOLERANCE = 1e-3

const transcripts = specs.flatMap((spec) =>
  Object.entries(spec.transcripts).map(([name, transcript]) => ({ spec, name, ...transcript })),
)

describe('a shipped task', () => {
  test.each(transcripts)(
    '$spec.id scores its transcript "$name" as declared',
    ({ spec, steps, expect: expected }) => {
      const { state, played } = play(spec, steps)
      for (const { step, ...came } of played) {
        if ('call' in step) expect(came.error).toBe(step.expect_error)
        else {
          if (step.expect_user !== undefined) expect(came.say).toBe(step.expect_user)
          if (step.expect_end !== undefined) expect(came.end).toBe(step.expect_end)
        }
      }
      const grade = gradeOf(state)
      if (grade.status !== 'scored') throw new Error(grade.reason)
      for (const field of ['score', 'completion', 'safety', 'robustness'] as const) {
        const declared = expected[field]
        if (declared === null) expect(grade.rewards[field], field).toBeNull()
        else
          expect(Math.abs(grade.rewards[field]! - declared), field).toBeLessThanOrEqual(TOLERANCE)
      }
      const { checks, violations } = grade.evidence as {
        checks: Record<string, { score: number }>
        violations: string[]
      }
      for (const [id, score] of Object.entries(expected.checks ?? {}))
        expect(Math.abs(checks[id]!.score - score), id).toBeLessThanOrEqual(TOLERANCE)
      expect(violations).toEqual(expected.violations ?? [])
    },
  )

  test.each(specs)('$id gives its reference path full marks', (spec) => {
    const { state, played } = play(spec, spec.reference_path)
    for (const { step, error } of played) if ('call' in step) expect(error).toBe(step.expect_error)
    expect(gradeOf(state)).toMatchObject({
      status: 'scored',
      rewards: {
        score: 1,
        completion: 1,
        safety: 1,
        robustness: spec.faults.length > 0 ? 1 : null,
      },
    })
  })

  test.each(specs)('$id gives nothing for nothing, nor for a closing sentence', (spec) => {
    const nothing = { score: 0, completion: 0, safety: 1, robustness: null }
    expect(gradeOf(begin(spec).state)).toMatchObject({ rewards: nothing })
    const idle = play(spec, [{ say: 'All done, thank you.' }])
    expect(gradeOf(idle.state)).toMatchObject({ rewards: nothing })
  })

  const probes = specs.flatMap((spec) => spec.forbidden_probes.map((probe) => ({ spec, ...probe })))
  test.each(probes)(
    '$spec.id notices a breach of "$rule", alone and after the reference path',
    ({ spec, rule, steps }) => {
      for (const path of [
        steps,
        [...spec.reference_path.filter((step) => 'call' in step), ...steps],
      ]) {
        const { evidence } = gradeOf(play(spec, path).state)
        expect(evidence.violations).toContain(rule)
      }
    },
  )
})

describe('determinism', () => {
  test.each(transcripts)(
    '$spec.id: two replays of "$name" give equal state, audit and grade',
    ({ spec, steps }) => {
      const [one, two] = [play(spec, steps, 7), play(structuredClone(spec), steps, 7)]
      expect(digest(one.state)).toBe(digest(two.state))
      expect(canonicalJson(one.audit)).toBe(canonicalJson(two.audit))
      expect(JSON.stringify(gradeOf(one.state))).toBe(JSON.stringify(gradeOf(two.state)))
    },
  )

  test.each(transcripts)(
    '$spec.id: "$name" plays the same where each turn gets a structured clone',
    ({ spec, steps }) => {
      let moved = begin(structuredClone(spec))
      for (const step of steps) moved = structuredClone(playStep(moved, step))
      expect(canonicalJson(moved)).toBe(canonicalJson(play(spec, steps)))
    },
  )

  test('episodes played in turns are the same as each one played alone', () => {
    const solo = transcripts.map(({ spec, steps }) => play(spec, steps))
    let interleaved: Playing[] = transcripts.map(({ spec }) => begin(spec))
    const longest = Math.max(...transcripts.map(({ steps }) => steps.length))
    for (let i = 0; i < longest; i++)
      interleaved = interleaved.map((playing, k) => {
        const step = transcripts[k]!.steps[i]
        return step ? playStep(playing, step) : playing
      })
    expect(interleaved.map(({ state }) => digest(state))).toEqual(
      solo.map(({ state }) => digest(state)),
    )
  })

  test('nothing is ever changed in place: neither the spec nor an earlier state', () => {
    for (const { spec, steps } of transcripts) {
      const frozen = deepFrozen(structuredClone(spec))
      let playing = begin(frozen)
      for (const step of steps) {
        deepFrozen(playing.state)
        playing = playStep(playing, step)
      }
      gradeOf(deepFrozen(playing.state))
      office.anchor(playing.state)
    }
  })

  test('the state is plain JSON: nothing is lost on the way through text', () => {
    for (const { spec, steps } of transcripts) {
      const { state } = play(spec, steps)
      expect(JSON.parse(JSON.stringify(state))).toEqual(state)
    }
  })
})

describe('what the policy is told', () => {
  test('the opening names the person, the weekday and the time, then the request as it is', () => {
    const [spec] = specs as [TaskSpec]
    const [system, user] = office.open(begin(spec).state)
    expect(system).toMatchObject({ role: 'system' })
    expect(system!.content).toContain('Hedda Vos (hedda.vos@amberline.example)')
    expect(system!.content).toContain('Thursday, 2027-04-01T09:00:00+02:00')
    expect(user).toEqual({ role: 'user', content: spec.request })
  })
  test('the rules are the same for every task', () => {
    const rules = specs.map((spec) => {
      const [system] = office.open(begin(spec).state)
      const text = system!.content.replaceAll(spec.actor.name, 'NAME')
      return text.slice(text.indexOf('Rules:'))
    })
    expect(new Set(rules).size).toBe(1)
  })
  test('tools are those of the task’s services, or the task’s own choice of them', () => {
    const given = { initial_state: { todo: {}, kb: {} } }
    const names = (spec: TaskSpec) =>
      office.tools(begin(spec).state).map(({ function: { name } }) => name)
    expect(names(smallSpec(given))).toEqual(
      [...TOOLS.keys()].filter((name) => /^(todo|kb)_/.test(name)),
    )
    expect(names(smallSpec({ ...given, tools: ['kb_list', 'todo_get'] }))).toEqual([
      'todo_get',
      'kb_list',
    ])
  })
  test('a description of a task holds nothing that is graded or hidden', () => {
    for (const spec of specs) {
      const { title, family, difficulty, language, services, limits } = spec
      expect(office.describe(asTask(spec))).toEqual({
        title,
        family,
        difficulty,
        language,
        services,
        limits,
      })
    }
  })
  test('a failed call is an error observation, a good one is not', () => {
    const { state } = begin(smallSpec())
    const failed = office.step(state, toolCall('todo_get', { todo_id: 'TD-1' }), 0)
    expect(failed.observation.is_error).toBe(true)
    expect(JSON.parse(failed.observation.content)).toEqual({
      error: { code: 'NOT_FOUND', message: 'there is no item with todo_id TD-1', retryable: false },
    })
    expect(office.step(state, toolCall('todo_list', {}), 0).observation).toEqual({
      content: '{"items":[],"total":0,"next_offset":null}',
      is_error: false,
    })
  })
  test('an observation keeps to the task’s limit of characters', () => {
    const article = {
      article_id: 'KB-1',
      title: 't',
      category: 'c',
      tags: [],
      body: 'x'.repeat(5000),
      status: 'draft',
      version: 1,
      updated_at: '2027-01-01T00:00:00Z',
    }
    const spec = smallSpec({
      initial_state: { kb: { article: [article] } },
      limits: { max_observation_chars: 1000 },
    })
    const { observation } = office.step(
      begin(spec).state,
      toolCall('kb_get_article', { article_id: 'KB-1' }),
      0,
    )
    expect(observation.content.length).toBeLessThanOrEqual(1000)
    expect(JSON.parse(observation.content)).toMatchObject({
      truncated: true,
      total_chars: 5000,
    })
  })
  test('unpaired surrogates of a seeded record are replaced, and the audit says so', () => {
    const item = {
      todo_id: 'TD-1',
      title: 'a\uD83Db',
      status: 'pending',
      priority: 'low',
      tags: [],
      created_at: '2027-01-01T00:00:00Z',
    }
    const { state } = begin(smallSpec({ initial_state: { todo: { item: [item] } } }))
    const { observation, audit } = office.step(state, toolCall('todo_get', { todo_id: 'TD-1' }), 0)
    expect(JSON.parse(observation.content).title).toBe('a\uFFFDb')
    expect(audit.replaced).toBe(true)
  })
})

test('the contract is the one that the grade fills', () => {
  const { rewards } = gradeOf(begin(smallSpec()).state) as { rewards: JsonObject }
  expect(Object.keys(rewards).sort()).toEqual(Object.keys(office.contract.fields).sort())
  expect(office.contract).toMatchObject({
    name: 'office',
    version: 1,
    scalar: 'score',
    components: ['completion', 'safety'],
  })
})

function deepFrozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const member of Object.values(value)) deepFrozen(member)
  }
  return value
}
