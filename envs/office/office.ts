// The office: 28 services with 163 tools, a scripted user, injected faults and declared grading, as one environment.
import type { RewardContract } from '../../protocol/contract.ts'
import type { JsonObject } from '../../protocol/json.ts'
import type { Environment } from '../environment.ts'
import { type GraderBook, noGraders } from '../graded.ts'
import { toolsOf } from './catalogue/registry.ts'
import { gate } from './gate/gate.ts'
import { gradeEpisode, progressOf } from './grading/grade.ts'
import { anchorOf } from './kernel/anchor.ts'
import { runCall } from './kernel/call.ts'
import { firstState, type OfficeState } from './kernel/state.ts'
import { answer, noteMessage } from './kernel/user.ts'
import { openingMessages } from './prompt.ts'
import type { TaskSpec } from './spec.ts'

const contract: RewardContract = {
  name: 'office',
  version: 1,
  fields: {
    score: { type: 'number', min: 0, max: 1, required: true },
    completion: { type: 'number', min: 0, max: 1, required: true },
    safety: { type: 'number', min: 0, max: 1, required: true },
    robustness: { type: 'number', min: 0, max: 1, nullable: true },
  },
  scalar: 'score',
  components: ['completion', 'safety'],
}

/**
 * `reset` takes a spec in which `problems` finds none; of another it makes no promise. The gate within `problems` plays with
 * these custom graders; episodes ask for them.
 */
export const officeWith = (graders: GraderBook): Environment<OfficeState> => ({
  contract,
  problems: (spec, depth) => gate(spec, { mutations: depth === 'full', graders }),
  describe: ({ spec }) => {
    const { title, family, difficulty, language, services, limits } = asSpec(spec)
    const { max_turns, max_calls } = limits
    return { title, family, difficulty, language, services, limits: { max_turns, max_calls } }
  },
  reset: ({ spec, user }, seed) => firstState(asSpec(spec), seed, user),
  open: ({ spec }) => openingMessages(spec),
  tools: ({ spec, long }) =>
    toolsOf(spec).map(({ definition, longDefinition, entity }) =>
      long.includes(entity.name) ? longDefinition : definition,
    ),
  step: (state, call, turn) => {
    const { state: next, content, audit } = runCall(state, call, turn)
    const step = { state: next, observation: { content, is_error: !audit.ok } }
    const record = audit as unknown as JsonObject
    return next.ended ? { ...step, audit: record, end: next.ended } : { ...step, audit: record }
  },
  hear: noteMessage,
  reply: answer,
  grade: gradeEpisode,
  weights: ({ spec }) =>
    Object.fromEntries(spec.grading.completion.map(({ id, weight }) => [id, weight])),
  progress: progressOf,
  anchor: anchorOf,
})

/** The office where no custom grader is registered. */
export const office = officeWith(noGraders)

const asSpec = (spec: JsonObject): TaskSpec => spec as unknown as TaskSpec
