// What a trainer asks for: a batch of tasks, a policy, a contract and limits; and what it hears of its progress.
import { z } from 'zod'
import { rewardContractSchema } from './contract.ts'
import { idSchema, taskIdSchema } from './ids.ts'
import { isPlainObject, type JsonObject } from './json.ts'
import { MAX_TURN_TOKENS } from './limits.ts'
import type { EpisodeOutcome, GroupVerdict, Settlement } from './outcomes.ts'
import { LENIENCIES, THINKING_MODES, TOOL_FORMATS } from './parse-codes.ts'
import type { AskedCost, AskedCosts } from './sealed.ts'
import type { TurnCounts } from './turn-counts.ts'

/** Any JSON object: what was read as JSON needs no second look, which for a large spec takes seconds. */
const jsonObjectSchema = z
  .custom<JsonObject>(isPlainObject, 'expected an object')
  .meta({ type: 'object' })

/** How much of the gate a spec goes through. */
const GATES = ['load', 'full'] as const
export type Gate = (typeof GATES)[number]

const taskRequestSchema = z
  .strictObject({
    task: taskIdSchema.optional(),
    /** An inline task, as a pack would hold it; `environment` says whose (default: office). */
    spec: jsonObjectSchema.optional(),
    environment: idSchema.optional(),
    seed: z.int().min(0).optional(),
    metadata: jsonObjectSchema.default({}),
  })
  .refine((task) => (task.task === undefined) !== (task.spec === undefined), {
    message: 'give exactly one of task (an id) and spec (an inline task)',
  })

const samplingSchema = z.strictObject({
  temperature: z.number().min(0).max(5).default(1),
  top_p: z.number().gt(0).max(1).default(1),
  max_tokens: z.int().min(1).max(MAX_TURN_TOKENS).default(1024),
  seed: z.int().min(0).optional(),
})
export type Sampling = z.output<typeof samplingSchema>

export const policySchema = z.strictObject({
  backend: idSchema.default('main'),
  /** An engine that is asked instead of the backend's own: another address of the same model and wire form. */
  url: z.url({ protocol: /^https?$/, error: 'expected an http or https URL' }).optional(),
  model: z.string().min(1).optional(),
  /** `chat`: the backend renders the conversation; `tokens`: Paddock does and sends token ids. */
  mode: z.enum(['chat', 'tokens']).default('chat'),
  /** Default: the backend's own, else hermes. */
  tool_format: z.enum(TOOL_FORMATS).optional(),
  /** Default: the backend's own, else none. */
  thinking: z.enum(THINKING_MODES).optional(),
  /** Readings of calls that the grammar does not have; each turn in which one made a difference is counted. */
  leniencies: z.array(z.enum(LENIENCIES)).default([]),
  sampling: samplingSchema.prefault({}),
  /** The version of the weights that the trainer believes to be asked, where the backend does not tell. */
  version: z.int().min(0).optional(),
  chat_template_kwargs: jsonObjectSchema.default({}),
  /**
   * What becomes of an observation that spells out a control token: `refuse` withholds it and says so; `plain` shows it
   * as plain text, which only mode `tokens` can promise.
   */
  control_tokens: z.enum(['refuse', 'plain']).default('refuse'),
  /** Groups whose oldest tokens are more versions behind than this are not leased: they settle as `stale`. */
  max_staleness: z.int().min(0).nullable().default(null),
})

const limitsSchema = z.strictObject({
  max_turns: z.int().min(1).max(1000).default(20),
  /** Sampled tokens of one episode over all its turns. */
  max_tokens: z.int().min(1).max(10_000_000).default(16_384),
  turn_timeout_s: z.number().gt(0).max(86_400).default(120),
  episode_timeout_s: z.number().gt(0).max(86_400).default(900),
  group_timeout_s: z.number().gt(0).max(86_400).default(1800),
})

const groupPolicySchema = z.strictObject({
  /** Tries at each episode, the first included; `close` and `drop` take the first failure as final. */
  attempts: z.int().min(1).max(100).default(3),
  /** Scored episodes that a group needs for a verdict of its rewards; default: the group size. */
  min_scored: z.int().min(1).optional(),
  on_short: z.enum(['retry', 'top_up', 'close', 'drop']).default('retry'),
  /** `replace`: by a fresh group of the same task, `replace_next`: of the batch's next one; at most three times in a place. */
  zero_variance: z.enum(['deliver', 'drop', 'replace', 'replace_next']).default('deliver'),
  /** Withdraws what still plays of a group that is lost: too few of its episodes can still be scored. */
  stop_early: z.boolean().default(false),
  /** Scored episodes that are enough: once so many are in, the others are withdrawn. */
  enough: z.int().min(1).optional(),
  /** False where a timeout is final: the time was the episode's whole budget. */
  retry_timeouts: z.boolean().default(true),
})

/** Where finished groups are posted, as the body of a lease; 2xx acknowledges. */
const callbackSchema = z.strictObject({
  url: z.url({ protocol: /^https?$/, error: 'expected an http or https URL' }).max(2048),
  encoding: z.enum(['json', 'msgpack']).default('json'),
  /** How long a group is tried before it is delivered again, from when it has one of the four places of its host and port. */
  lease_s: z.number().min(1).max(86_400).default(600),
})
export type BatchCallback = z.output<typeof callbackSchema>

export const batchRequestSchema = z
  .strictObject({
    id: idSchema.optional(),
    tasks: z.array(taskRequestSchema).min(1).max(10_000),
    group_size: z.int().min(1).max(1024),
    mode: z.enum(['train', 'eval']).default('train'),
    /**
     * How inline specs are checked: `load` as tasks of packs are when they are loaded; `full` also plays wrong variants of
     * the reference path, which takes some 20 ms for a task.
     */
    gate: z.enum(GATES).default('load'),
    policy: policySchema.prefault({}),
    /** Who answers the policy's messages: the task's script, or the model that paddock.yaml names under `user`. */
    user: z.enum(['script', 'model']).default('script'),
    reward: z
      .strictObject({
        contract: z.union([z.string(), rewardContractSchema]).optional(),
        reads: z.array(z.string()).default([]),
        rename: z.record(z.string(), z.string()).default({}),
        /** Where the fields come from, if not from the environment's grader: a reward model behind HTTP. */
        source: z
          .strictObject({
            http: z.strictObject({
              url: z.url({ protocol: /^https?$/, error: 'expected an http or https URL' }),
              /** Of one try. */
              timeout_s: z.number().gt(0).max(3600).default(30),
              /** Tries after the first. */
              retries: z.int().min(0).max(10).default(2),
              /** Of all tries together. */
              budget_s: z.number().gt(0).max(86_400).default(120),
            }),
          })
          .optional(),
        /** Pay each turn for new progress, where the environment knows it; read by estimators that look at turns. */
        progress: z.boolean().default(false),
      })
      .prefault({}),
    advantage: z
      .strictObject({
        estimator: z.string().default('grpo'),
        settings: jsonObjectSchema.default({}),
        /** Groups that are whitened together, as they finish, where an estimator whitens; default: the whole batch. */
        window: z.int().min(2).max(10_000).optional(),
      })
      .prefault({}),
    limits: limitsSchema.prefault({}),
    groups: groupPolicySchema.prefault({}),
    callback: callbackSchema.optional(),
  })
  .meta({ id: 'BatchRequest' })

export type BatchRequest = z.output<typeof batchRequestSchema>
export type GroupPolicy = z.output<typeof groupPolicySchema>
export type Mode = BatchRequest['mode']

export const batchAcceptedSchema = z
  .strictObject({ id: idSchema, groups: z.int(), episodes: z.int() })
  .meta({ id: 'BatchAccepted' })
export type BatchAccepted = z.output<typeof batchAcceptedSchema>

/** Why a batch starts no further group until it is resumed (a closed list), and which group's end showed it. */
export const PAUSE_REASONS = ['contract', 'waste'] as const
export interface AdmissionPause {
  reason: (typeof PAUSE_REASONS)[number]
  group: string
  message: string
}

/** `GET /v1/batches/:id`. Counters only grow; `in_flight` is started minus finished at every observation. */
export interface BatchProgress {
  id: string
  mode: Mode
  state: 'running' | 'finished' | 'cancelled'
  /**
   * `held`: no new group starts since too many finished ones wait to be leased; `paused`: its backend is, or the
   * batch itself, and `pause` says why.
   */
  admission: 'open' | 'held' | 'paused'
  pause: AdmissionPause | null
  /** Unix seconds; present while the latest requests to the batch's backend brought no token. */
  no_tokens_since?: number
  group_size: number
  episodes: {
    total: number
    started: number
    finished: number
    in_flight: number
    outcomes: Partial<Record<EpisodeOutcome, number>>
    /** Attempts that failed and were tried again, by their outcome. */
    retried: Partial<Record<EpisodeOutcome, number>>
    /** Mean reward over scored episodes; null while there are none. */
    mean_reward: number | null
  }
  groups: {
    total: number
    started: number
    finished: number
    in_flight: number
    ready: number
    leased: number
    verdicts: Partial<Record<GroupVerdict, number>>
    settled: Partial<Record<Settlement, number>>
    /** Groups whose scored completions are all identical although the sampling should have told them apart. */
    greedy_suspect: string[]
    /** What the groups that are over have cost, by what became of them, and what failed attempts took of it. */
    costs: Record<'delivered' | 'replaced' | 'dropped' | 'retried', GroupCost>
    /** Mean over the groups that are over of their mean reward, however many members were scored; null without any. */
    mean_group_reward: number | null
    /** Mean seconds from first attempt to verdict: where the two differ, closing short prefers fast tasks. */
    mean_seconds: { delivered: number | null; dropped: number | null }
    /** Groups that were not delivered, with what they cost and why. */
    dropped: {
      id: string
      task: string
      verdict: GroupVerdict
      reason: string | null
      cost: GroupCost
    }[]
  }
  tokens: { prompt: number; completion: number }
  /** Over all attempts, those that were tried again too. */
  counts: TurnCounts
  seconds: number
  done: boolean
}

/** What was asked beside the policy: requests, tokens and seconds, apart from the policy's own. */
export interface AskedTotal extends AskedCost {
  seconds: number
}

export interface GroupCost {
  prompt_tokens: number
  completion_tokens: number
  /** Seconds of policy requests, summed over the group's attempts. */
  seconds: number
  /** By whom was asked; kinds that were not are absent. */
  asked?: Partial<Record<keyof AskedCosts, AskedTotal>>
}
