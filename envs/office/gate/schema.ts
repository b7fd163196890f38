// The form of a task spec as JSON Schema (2020-12); names of services, entities and tools come from the catalogue.
import type { JsonObject } from '../../../protocol/json.ts'
import { ENTITIES, TOOLS } from '../catalogue/registry.ts'
import { SERVICES } from '../catalogue/services.ts'

const string = { type: 'string' }
const integer = { type: 'integer' }
const number = { type: 'number' }
const boolean = { type: 'boolean' }
const anyObject = { type: 'object' }
const listOf = (items: JsonObject): JsonObject => ({ type: 'array', items })
const strings = listOf(string)
const mapOf = (additionalProperties: JsonObject): JsonObject => ({
  type: 'object',
  additionalProperties,
})

/** An object of these members and no others. */
const strict = (properties: JsonObject, required: string[] = []): JsonObject => ({
  type: 'object',
  ...(required.length > 0 && { required }),
  properties,
  additionalProperties: false,
})

const service = { enum: SERVICES.map(({ name }) => name) }
const tool = { enum: [...TOOLS.keys()] }
const entity = { enum: [...ENTITIES.keys()] }
const tools = { anyOf: [tool, listOf(tool)] }
const check = { $ref: '#/$defs/check' }
const step = { $ref: '#/$defs/step' }
const text = { $ref: '#/$defs/text' }
const ok = { enum: [true, false, 'any'] }
const origin = { enum: ['any', 'created', 'updated', 'touched', 'deleted'] }
const count = { anyOf: [integer, strict({ min: integer, max: integer })] }
const weight = { type: 'number', exclusiveMinimum: 0, maximum: 1 }
const atLeastOne = { type: 'integer', minimum: 1 }

const checkOf = (kind: string, properties: JsonObject, required: string[] = []): JsonObject =>
  strict(
    { kind: { const: kind }, id: string, weight, requires: strings, note: string, ...properties },
    ['kind', ...required],
  )

const CHECKS: JsonObject[] = [
  checkOf(
    'state',
    {
      entity,
      origin,
      where: anyObject,
      count,
      distinct_by: strings,
      ratio_of: integer,
      requires_action: boolean,
    },
    ['entity'],
  ),
  checkOf(
    'call',
    {
      tool: tools,
      args: anyObject,
      ok,
      count,
      count_committed: boolean,
      distinct_by: strings,
      ratio_of: integer,
      steps: listOf({ type: 'array' }),
    },
    ['tool'],
  ),
  checkOf(
    'cover',
    {
      source: { enum: ['state', 'calls'] },
      entity,
      tool: tools,
      ok,
      origin,
      scope: anyObject,
      items: listOf(anyObject),
      extra_penalty: number,
      max_extra: integer,
      all_or_nothing: boolean,
    },
    ['items'],
  ),
  checkOf('read', { entity, ids: strings, depth: { enum: ['any', 'full'] }, min: integer }, [
    'entity',
    'ids',
  ]),
  checkOf('order', { steps: listOf(strict({ tool: tools, args: anyObject, ok }, ['tool'])) }, [
    'steps',
  ]),
  checkOf('message', {
    in: { enum: ['final', 'all', 'before_first_write'] },
    before_tool: tools,
    all_of: listOf(text),
    any_of: listOf(text),
    none_of: listOf(text),
    partial: boolean,
  }),
  checkOf(
    'unchanged',
    {
      entity,
      where: anyObject,
      ids: strings,
      except_ids: strings,
      fields: strings,
      requires_action: boolean,
    },
    ['entity'],
  ),
  checkOf(
    'only_writes',
    {
      allow: listOf(strict({ entity, op: {}, ids: strings, fields: strings }, ['entity'])),
      requires_action: boolean,
    },
    ['allow'],
  ),
  checkOf(
    'slot',
    {
      origin,
      where: anyObject,
      duration_min: number,
      duration_max: number,
      window: strings,
      start: string,
      attendees: strings,
    },
    ['duration_min'],
  ),
  checkOf('recovered', { fault: string, verify_with: strings }, ['fault']),
  checkOf('all', { of: listOf(check) }, ['of']),
  checkOf('any', { of: listOf(check) }, ['of']),
  checkOf('mean', { of: listOf(check) }, ['of']),
  checkOf('not', { of: check, requires_action: boolean }, ['of']),
  checkOf('best', { of: listOf(strict({ score: number, check }, ['score', 'check'])) }, ['of']),
  checkOf('custom', { grader: string, params: {} }, ['grader']),
]

const TEXT: JsonObject = {
  anyOf: [
    string,
    strict({ any: listOf(text) }, ['any']),
    strict({ all: listOf(text) }, ['all']),
    strict({ re: string }, ['re']),
    strict({ number, tol: number }, ['number']),
  ],
}

const STEP: JsonObject = {
  oneOf: [
    strict({ call: tool, args: anyObject, expect_error: string }, ['call', 'args']),
    strict(
      {
        say: string,
        expect_user: string,
        expect_end: { enum: ['final', 'user_done', 'max_turns'] },
      },
      ['say'],
    ),
  ],
}

const USERS: JsonObject[] = [
  strict({ mode: { const: 'none' } }, ['mode']),
  strict(
    {
      mode: { const: 'scripted' },
      persona: string,
      max_turns: integer,
      fallback: string,
      rules: listOf(
        strict({ id: string, if_any: strings, say: string, once: boolean, after: strings }, [
          'id',
          'if_any',
          'say',
        ]),
      ),
      done: strict({ if_any: strings, after: strings }, ['if_any']),
    },
    ['mode', 'rules', 'fallback'],
  ),
]

const FAULT = strict(
  {
    id: string,
    tool,
    args: anyObject,
    nth: atLeastOne,
    times: atLeastOne,
    phase: { enum: ['before', 'after_commit'] },
    code: { enum: ['RATE_LIMITED', 'UNAVAILABLE', 'TIMEOUT'] },
    message: string,
  },
  ['id', 'tool', 'phase', 'code'],
)

const GRADING = strict(
  {
    weights: strict({ completion: number, robustness: number }, ['completion', 'robustness']),
    verify_with: mapOf(listOf(tool)),
    completion: {
      type: 'array',
      minItems: 1,
      items: { allOf: [check, { required: ['id', 'weight'] }] },
    },
    gates: listOf(strict({ id: string, check, factor: number }, ['check', 'factor'])),
    caps: listOf(strict({ id: string, unless: check, max: number }, ['unless', 'max'])),
    safety: listOf(
      strict({ id: string, severity: weight, violated_if: check }, ['id', 'violated_if']),
    ),
  },
  ['completion', 'safety'],
)

const EXPECT = strict(
  {
    completion: number,
    safety: number,
    robustness: { type: ['number', 'null'] },
    score: number,
    violations: strings,
    checks: mapOf(number),
  },
  ['completion', 'safety', 'robustness', 'score'],
)

/** Every key of a spec that may be there, and what it holds. What the names refer to is left to the other rules. */
export const TASK_SPEC_SCHEMA: JsonObject = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  $id: 'task-spec.v1',
  title: 'Task spec',
  ...strict(
    {
      spec_version: { const: 1 },
      id: { type: 'string', pattern: '^[a-z0-9-]+$' },
      title: string,
      family: string,
      capabilities: strings,
      difficulty: { enum: ['easy', 'medium', 'hard', 'expert'] },
      language: string,
      seed: integer,
      clock: strict(
        { now: { type: 'string', pattern: '(Z|[+-]\\d\\d:\\d\\d)$' }, tick_s: number },
        ['now'],
      ),
      actor: strict({ name: string, email: { type: 'string', format: 'email' } }, [
        'name',
        'email',
      ]),
      request: { type: 'string', minLength: 20 },
      services: { type: 'array', items: service, uniqueItems: true, minItems: 1 },
      tools: listOf(tool),
      initial_state: { ...mapOf(mapOf(listOf(anyObject))), propertyNames: service },
      user: { oneOf: USERS },
      faults: listOf(FAULT),
      limits: strict({ max_turns: integer, max_calls: integer, max_observation_chars: integer }),
      hidden: strings,
      reference_path: listOf(step),
      grading: GRADING,
      forbidden_probes: listOf(
        strict({ rule: string, from_empty: boolean, steps: listOf(step) }, ['rule', 'steps']),
      ),
      transcripts: mapOf(
        strict({ note: string, steps: listOf(step), expect: EXPECT }, ['steps', 'expect']),
      ),
    },
    [
      'spec_version',
      'id',
      'title',
      'clock',
      'actor',
      'request',
      'services',
      'initial_state',
      'user',
      'faults',
      'limits',
      'hidden',
      'reference_path',
      'grading',
      'forbidden_probes',
      'transcripts',
    ],
  ),
  $defs: { text: TEXT, step: STEP, check: { oneOf: CHECKS } },
}
