// For tests: the shipped specs, small specs of one's own, and playing their steps through the Environment interface.

import { readdirSync, readFileSync } from 'node:fs'
import type { ToolCall } from '../../protocol/conversation.ts'
import type { JsonObject } from '../../protocol/json.ts'
import { graded as gradedNow } from '../graded.ts'
import type { AuditRecord, OfficeState } from './kernel/state.ts'
import { office } from './office.ts'
import type { Check, SpecStep, TaskSpec } from './spec.ts'

const TASKS = new URL('../packs/office/tasks/', import.meta.url)

/** The shipped specs. */
export const specs: TaskSpec[] = readdirSync(TASKS)
  .filter((name) => name.endsWith('.json'))
  .sort()
  .map((name) => JSON.parse(readFileSync(new URL(name, TASKS), 'utf8')))

/** A task that asks for nothing much, with what a test gives it. */
export function smallSpec(given: Partial<TaskSpec> = {}): TaskSpec {
  const initial_state = given.initial_state ?? { todo: {} }
  return {
    spec_version: 1,
    id: 'small',
    title: 'Small',
    clock: { now: '2027-03-10T11:00:00+01:00' },
    actor: { name: 'Ada Berg', email: 'ada.berg@acme.example' },
    request: 'Please do what the test says.',
    services: Object.keys(initial_state),
    initial_state,
    user: { mode: 'none' },
    faults: [],
    limits: {},
    hidden: [],
    reference_path: [],
    grading: {
      completion: [{ id: 'said', weight: 1, kind: 'message', all_of: ['done'] }],
      safety: [],
    },
    forbidden_probes: [],
    transcripts: {},
    ...given,
  }
}

export const asTask = (spec: TaskSpec | JsonObject) => ({
  id: `office/${String(spec.id)}`,
  environment: 'office',
  spec: spec as unknown as JsonObject,
})

export const toolCall = (name: string, args: unknown, id = 'call'): ToolCall => ({
  id,
  name,
  arguments: args as JsonObject,
  arguments_json: JSON.stringify(args) ?? 'null',
})

/** What a step came to: `error` and `result` of a call, `say` or `end` of a message. */
interface Played {
  step: SpecStep
  error?: string
  result?: JsonObject
  say?: string
  end?: string
}

export interface Playing {
  state: OfficeState
  played: Played[]
  audit: AuditRecord[]
}

export const begin = (spec: TaskSpec | JsonObject, seed = 1): Playing => ({
  state: office.reset(asTask(spec), seed),
  played: [],
  audit: [],
})

/** One turn for each step. */
export function playStep({ state, played, audit }: Playing, step: SpecStep): Playing {
  const turn = played.length
  if ('say' in step) {
    const answer = office.reply(state, step.say, turn)
    const { state: next, ...rest } = answer
    return { state: next, played: [...played, { step, ...rest }], audit }
  }
  const stepped = office.step(state, toolCall(step.call, step.args, `call_${turn}`), turn)
  const result = JSON.parse(stepped.observation.content) as JsonObject
  const error = (result.error as JsonObject | undefined)?.code as string | undefined
  return {
    state: stepped.state,
    played: [...played, { step, result, ...(stepped.observation.is_error && { error }) }],
    audit: [...audit, stepped.audit as unknown as AuditRecord],
  }
}

/** Calls one after the other on a small spec; what the last one gave. */
export function callAll(
  given: Partial<TaskSpec>,
  ...calls: readonly (readonly [name: string, args: unknown])[]
): { error?: string; result: JsonObject; audit: AuditRecord; state: OfficeState } {
  const steps = calls.map(([call, args]) => ({ call, args: args as JsonObject }))
  const { state, played, audit } = play(smallSpec(given), steps)
  const { error, result } = played.at(-1)!
  return { result: result!, audit: audit.at(-1)!, state, ...(error !== undefined && { error }) }
}

export const play = (spec: TaskSpec | JsonObject, steps: readonly SpecStep[], seed = 1): Playing =>
  steps.reduce(playStep, begin(spec, seed))

/** Score and evidence of one check on an episode of a small spec. */
export function check(
  given: Partial<TaskSpec>,
  steps: readonly SpecStep[],
  graded: Check,
): { score: number; evidence: unknown[] } {
  const completion = [{ ...graded, id: 'it', weight: 1 }] as TaskSpec['grading']['completion']
  const { state } = play(smallSpec({ ...given, grading: { completion, safety: [] } }), steps)
  const grade = gradedNow(office, state)
  if (grade.status !== 'scored') throw new Error(grade.reason)
  const { it } = grade.evidence.checks as Record<string, { score: number; evidence: unknown[] }>
  return { score: it!.score, evidence: it!.evidence }
}
