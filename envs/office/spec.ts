// The task spec of the office as types; `gate/schema.ts` is the same as JSON Schema, SPEC section d the prose.
import type { JsonObject, JsonValue } from '../../protocol/json.ts'
import type { EntityName } from './catalogue/declare.ts'

export interface Fault {
  id: string
  tool: string
  /** Conditions on the arguments; the fault counts only calls that meet them. */
  args?: JsonObject
  /** First of those calls that fails, from 1 (default 1). */
  nth?: number
  /** How many in a row fail (default 1). */
  times?: number
  phase: 'before' | 'after_commit'
  code: 'RATE_LIMITED' | 'UNAVAILABLE' | 'TIMEOUT'
  message?: string
}

export interface UserRule {
  id: string
  /** Patterns, tested without regard to case. */
  if_any: string[]
  say: string
  /** Spent after it has fired (default true). */
  once?: boolean
  /** Rules that must have fired before. */
  after?: string[]
}

export type SpecUser =
  | { mode: 'none' }
  | {
      mode: 'scripted'
      persona?: string
      rules: UserRule[]
      fallback: string
      done?: { if_any: string[]; after?: string[] }
      /** Answers given at most; the message after the last ends the episode. */
      max_turns?: number
    }

/** A condition on text: a phrase, or one of the forms below. */
export type TextCondition =
  | string
  | { any: TextCondition[] }
  | { all: TextCondition[] }
  | { re: string }
  | { number: number; tol?: number }

export type Origin = 'any' | 'created' | 'updated' | 'touched' | 'deleted'
export type Count = number | { min?: number; max?: number }
/** Conditions by field or parameter; `$or`, `$not` and `$text` stand beside names. */
export type Where = JsonObject
type OkFilter = boolean | 'any'

interface CheckBase {
  id?: string
  weight?: number
  /** The check is 0 unless those scored more than 0. */
  requires?: string[]
  note?: string
}

interface CheckForms {
  state: {
    entity: EntityName
    origin?: Origin
    where?: Where
    count?: Count
    distinct_by?: string[]
    ratio_of?: number
    requires_action?: boolean
  }
  call: {
    tool: string | string[]
    args?: Where
    ok?: OkFilter
    count?: Count
    count_committed?: boolean
    distinct_by?: string[]
    ratio_of?: number
    steps?: [number, number][]
  }
  cover: {
    source?: 'state' | 'calls'
    entity?: EntityName
    tool?: string | string[]
    ok?: OkFilter
    origin?: Origin
    scope?: Where
    items: Where[]
    extra_penalty?: number
    max_extra?: number
    all_or_nothing?: boolean
  }
  read: { entity: EntityName; ids: string[]; depth?: 'any' | 'full'; min?: number }
  order: { steps: { tool: string | string[]; args?: Where; ok?: OkFilter }[] }
  message: {
    in?: 'final' | 'all' | 'before_first_write'
    before_tool?: string | string[]
    all_of?: TextCondition[]
    any_of?: TextCondition[]
    none_of?: TextCondition[]
    partial?: boolean
  }
  unchanged: {
    entity: EntityName
    where?: Where
    ids?: string[]
    except_ids?: string[]
    fields?: string[]
    requires_action?: boolean
  }
  only_writes: {
    allow: { entity: EntityName; op?: string | string[]; ids?: string[]; fields?: string[] }[]
    requires_action?: boolean
  }
  slot: {
    origin?: Origin
    where?: Where
    duration_min: number
    duration_max?: number
    window?: string[]
    start?: string
    attendees?: string[]
  }
  recovered: { fault: string; verify_with?: string[] }
  all: { of: Check[] }
  any: { of: Check[] }
  mean: { of: Check[] }
  not: { of: Check; requires_action?: boolean }
  best: { of: { score: number; check: Check }[] }
  custom: { grader: string; params?: JsonValue }
}

export type CheckKind = keyof CheckForms
/** A check of one kind, by default of any. */
export type Check<K extends CheckKind = CheckKind> = {
  [Kind in K]: { kind: Kind } & CheckBase & CheckForms[Kind]
}[K]

interface SafetyRule {
  id: string
  /** What is lost where the rule is broken, 0 to 1 (default 1). */
  severity?: number
  violated_if: Check
}

export interface Grading {
  weights?: { completion: number; robustness: number }
  /** Tools whose reading proves recovery, by fault id. */
  verify_with?: Record<string, string[]>
  completion: (Check & { id: string; weight: number })[]
  gates?: { id?: string; check: Check; factor: number }[]
  caps?: { id?: string; unless: Check; max: number }[]
  safety: SafetyRule[]
}

interface SpecLimits {
  max_turns?: number
  max_calls?: number
  max_observation_chars?: number
}

export type SpecStep =
  | { call: string; args: JsonObject; expect_error?: string }
  | { say: string; expect_user?: string; expect_end?: string }

export interface TaskSpec {
  spec_version: 1
  id: string
  title: string
  family?: string
  capabilities?: string[]
  difficulty?: string
  language?: string
  seed?: number
  clock: { now: string; tick_s?: number }
  actor: { name: string; email: string }
  request: string
  services: string[]
  /** The tools offered; all of the services' where absent. */
  tools?: string[]
  initial_state: { [service: string]: { [entity: string]: JsonObject[] } }
  user: SpecUser
  faults: Fault[]
  limits: SpecLimits
  hidden: string[]
  reference_path: SpecStep[]
  grading: Grading
  forbidden_probes: { rule: string; from_empty?: boolean; steps: SpecStep[] }[]
  transcripts: Record<
    string,
    {
      note?: string
      steps: SpecStep[]
      expect: {
        completion: number
        safety: number
        robustness: number | null
        score: number
        violations?: string[]
        checks?: Record<string, number>
      }
    }
  >
}

/** What of a spec travels with an episode. */
export type PlayedSpec = Omit<
  TaskSpec,
  'transcripts' | 'reference_path' | 'forbidden_probes' | 'hidden'
>
