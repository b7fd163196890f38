// The answers of the native API as schemas, for the OpenAPI document. The types in protocol/ are what is really sent.
import { z } from 'zod'
import { type BatchProgress, PAUSE_REASONS } from '../../protocol/batch.ts'
import { ERROR_CODES, type ErrorCode, type Problem } from '../../protocol/errors.ts'
import { ACK_RESULTS, type DeliveredGroup, LOGPROBS_MODES } from '../../protocol/group.ts'
import { EPISODE_OUTCOMES, GROUP_VERDICTS, LEVELS, SETTLEMENTS } from '../../protocol/outcomes.ts'
import { LENIENCIES, PARSE_ERRORS, PARSE_FLAGS } from '../../protocol/parse-codes.ts'
import { DRIFT_CAUSES, type TurnCounts } from '../../protocol/turn-counts.ts'
import type { EpisodeTokens } from '../runtime/threads/episode-tokens.ts'
import type { GroupPage, TaskSummary } from '../service.ts'

const jsonObject = z.record(z.string(), z.json())
const count = z.int().min(0)
const asked = z.object({
  requests: count,
  kept: count,
  prompt_tokens: count,
  completion_tokens: count,
  seconds: z.number(),
})
const cost = z.object({
  prompt_tokens: count,
  completion_tokens: count,
  seconds: z.number(),
  /** Beside the policy, by whom was asked. */
  asked: z.partialRecord(z.enum(['user', 'judge', 'grade', 'reward']), asked).optional(),
})

const countsSchema = z
  .object({
    parse_errors: z
      .partialRecord(z.enum(PARSE_ERRORS), count)
      .describe('In how many turns each code occurred; so with flags and lenient readings.'),
    parse_flags: z.partialRecord(z.enum(PARSE_FLAGS), count),
    parse_leniencies: z.partialRecord(z.enum(LENIENCIES), count),
    control_tokens: count.describe('Observations that spelled out a control token.'),
    text_mismatches: count.describe(
      'Turns whose text, as the backend gave it, is not what the sampled ids decode to.',
    ),
    drift: z
      .partialRecord(z.enum(DRIFT_CAUSES), count)
      .describe('Token chains cut since a prompt did not extend them, by cause.'),
  })
  .meta({ id: 'TurnCounts' }) satisfies z.ZodType<TurnCounts>

export const problemSchema = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    code: z.enum(Object.keys(ERROR_CODES) as [ErrorCode, ...ErrorCode[]]),
    retryable: z.boolean(),
    detail: z.string(),
    path: z.string(),
  })
  .meta({ id: 'Problem' }) satisfies z.ZodType<Problem>

export const progressSchema = z
  .object({
    id: z.string(),
    mode: z.enum(['train', 'eval']),
    state: z.enum(['running', 'finished', 'cancelled']),
    admission: z
      .enum(['open', 'held', 'paused'])
      .describe(
        'held: too many finished groups wait to be leased, or the ledger has no room; paused: the backend is, or see pause.',
      ),
    pause: z
      .object({ reason: z.enum(PAUSE_REASONS), group: z.string(), message: z.string() })
      .nullable()
      .describe('Why the batch starts no further group until it is resumed.'),
    no_tokens_since: z
      .number()
      .optional()
      .describe('Unix seconds; there while the latest requests to the backend brought no token.'),
    group_size: count,
    episodes: z.object({
      total: count,
      started: count,
      finished: count,
      in_flight: count,
      outcomes: z.partialRecord(z.enum(EPISODE_OUTCOMES), count),
      retried: z.partialRecord(z.enum(EPISODE_OUTCOMES), count),
      mean_reward: z.number().nullable().describe('Over scored episodes, one each.'),
    }),
    groups: z.object({
      total: count,
      started: count,
      finished: count,
      in_flight: count,
      ready: count,
      leased: count,
      verdicts: z.partialRecord(z.enum(GROUP_VERDICTS), count),
      settled: z.partialRecord(z.enum(SETTLEMENTS), count),
      greedy_suspect: z
        .array(z.string())
        .describe('Groups whose scored completions are identical at a temperature above 0.'),
      costs: z
        .object({ delivered: cost, replaced: cost, dropped: cost, retried: cost })
        .describe(
          'Of the groups that are over; delivered: ready for the trainer or taken by it; retried is a part of the other three.',
        ),
      mean_group_reward: z
        .number()
        .nullable()
        .describe('Mean of the means of the groups that are over, whatever their scored members.'),
      mean_seconds: z
        .object({ delivered: z.number().nullable(), dropped: z.number().nullable() })
        .describe('From first attempt to verdict: where the two differ, fast tasks are preferred.'),
      dropped: z.array(
        z.object({
          id: z.string(),
          task: z.string(),
          verdict: z.enum(GROUP_VERDICTS),
          reason: z.string().nullable(),
          cost,
        }),
      ),
    }),
    tokens: z.object({ prompt: count, completion: count }),
    counts: countsSchema,
    seconds: z.number(),
    done: z.boolean(),
  })
  .meta({ id: 'BatchProgress' }) satisfies z.ZodType<BatchProgress>

const sampleSchema = z
  .object({
    ids: z
      .array(z.int())
      .describe('Token ids of an unbroken chain: prompt, sampled turns, what stands between.'),
    mask: z.array(z.int()).describe('1 exactly where the policy sampled the id.'),
    logprobs: z.array(z.number()).describe('Log-probability at sampling, as the backend gave it.'),
    prompt_length: count.describe('Ids before the first that was sampled.'),
    versions: z.array(
      z.object({
        version: z.int().nullable().describe('Policy version that sampled [start, end).'),
        start: count,
        end: count,
        approximate: z.boolean().optional(),
      }),
    ),
  })
  .meta({
    id: 'Sample',
    description:
      "One training row. ids, mask and logprobs have one length; logprobs is 0 where mask is 0. In MessagePack they are little-endian bin of the group's dtypes.",
  })

export const tokensSchema = z
  .object({
    samples: z.array(
      z.object({
        ...sampleSchema.shape,
        texts: z
          .array(z.string())
          .nullable()
          .describe(
            "One for each id; of a character of several ids the first has the text. Null where the model's tokenizer is not at hand.",
          ),
      }),
    ),
  })
  .meta({ id: 'EpisodeTokens' }) satisfies z.ZodType<EpisodeTokens>

const episodeSeconds = z
  .object({ queued: z.number(), reset: z.number(), turns: z.number(), grading: z.number() })
  .describe(
    'Of the attempt that counts: waiting for a place, its reset, its turns until the last answer, and playing and grading that.',
  )

export const groupPageSchema = z
  .object({
    total: count.describe('Groups of the batch, replacements included.'),
    groups: z.array(
      z.object({
        id: z.string(),
        task: z.string(),
        seed: z.int(),
        state: z.enum(['waiting', 'running', 'finished']),
        verdict: z.enum(GROUP_VERDICTS).nullable(),
        level: z.enum(LEVELS).nullable(),
        reason: z.string().nullable().describe('Of the first member that failed.'),
        delivered: z.boolean().describe('False too while it runs.'),
        seconds: z.number().nullable().describe('From first attempt to verdict.'),
        cost,
        members: z.array(
          z.object({
            id: z.string(),
            index: count,
            attempt: count,
            phase: z.enum(['waiting', 'running', 'ended']),
            outcome: z.enum(EPISODE_OUTCOMES).nullable(),
            reason: z.string().nullable(),
            reward: z.number().nullable(),
            advantage: z
              .number()
              .nullable()
              .describe('Null without reward, and once the group is no longer kept.'),
            seconds: episodeSeconds.nullable(),
          }),
        ),
      }),
    ),
  })
  .meta({ id: 'GroupPage' }) satisfies z.ZodType<GroupPage>

const episodeSchema = z
  .object({
    id: z.string(),
    index: count,
    attempt: count.describe('The try that counts, from 1; failed tries before it left no reward.'),
    outcome: z.enum(EPISODE_OUTCOMES),
    reason: z.string().nullable().describe('Why, for every outcome but ok.'),
    reward: z
      .number()
      .nullable()
      .describe('A number exactly when the outcome is ok or ok_truncated.'),
    rewards: z
      .record(z.string(), z.number().nullable())
      .nullable()
      .describe(
        'The fields of the reward contract as they were graded, under the names that the batch reads.',
      ),
    shaping: z
      .array(
        z.union([
          z.object({
            kind: z.literal('condition'),
            component: z.string(),
            requires: z.string(),
            at_least: z.number(),
            raw: z.number(),
            counted: z.number(),
          }),
          z.object({ kind: z.enum(['overlong', 'length']), length: count, penalty: z.number() }),
        ]),
      )
      .describe(
        'What was made of them on the way to reward, step by step; length in sampled tokens.',
      ),
    advantage: z
      .number()
      .nullable()
      .describe('Null for an episode without reward: it is in no mean.'),
    counts: countsSchema,
    turns: z.array(
      z.object({
        sample: z
          .int()
          .nullable()
          .describe('Which of samples holds the turn; null without token ids.'),
        start: count.describe('[start, end) of that sample are the ids that this turn sampled.'),
        end: count,
        advantage: z.number().nullable(),
        anchor: z.string().describe('Identity of the state in which the turn was taken (GiGPO).'),
      }),
    ),
    seconds: episodeSeconds.nullable().describe('Null where it was never played.'),
    grade: jsonObject.nullable(),
    samples: z.array(sampleSchema),
  })
  .meta({ id: 'Episode' })

const groupSchema = z
  .object({
    id: z.string(),
    lease: z.object({ id: z.string(), expires_in_s: z.number(), delivery: z.int().min(1) }),
    batch: z.string(),
    task: z.string(),
    seed: z.int(),
    metadata: jsonObject,
    verdict: z.enum(GROUP_VERDICTS),
    level: z
      .enum(LEVELS)
      .nullable()
      .describe("Where a zero-variance group's one reward sits in the contract's range."),
    contract: z.string().describe('name@version#hash of the reward contract.'),
    estimator: z.string(),
    loss_normalizer: z
      .object({
        kind: z.enum(['constant', 'tokens_in_sample', 'tokens_in_batch']),
        value: z.number().nullable(),
      })
      .describe("What the trainer's loss divides by; it is not in the advantages."),
    whitened: z
      .object({
        over: z.enum(['batch', 'window']),
        groups: count,
        first: z.string(),
        mean: z.number().nullable(),
        std: z.number().nullable(),
      })
      .nullable()
      .describe('The set of groups over which the advantages were whitened or scaled.'),
    policy: z.object({
      model: z.string().nullable(),
      version_min: z.int().nullable(),
      version_max: z.int().nullable(),
      logprobs_mode: z
        .enum(LOGPROBS_MODES)
        .describe(
          'Of which distribution the log-probabilities are, as the backend’s settings say.',
        ),
    }),
    stats: z.object({
      n: count,
      scored: count,
      mean: z.number().nullable(),
      std: z
        .number()
        .nullable()
        .describe('Population std of the rewards; an estimator may divide by another.'),
      distinct: count.describe('Different completions among the scored episodes, not rewards.'),
      components: z
        .record(
          z.string(),
          z.object({
            mean: z.number().nullable(),
            std: z.number().nullable(),
            flat: z.boolean(),
          }),
        )
        .describe('Of each component of the contract; flat where it says nothing in this group.'),
      shared_anchor_share: z
        .number()
        .nullable()
        .describe('Share of steps in a state that another step shares; 0: GiGPO is GRPO here.'),
    }),
    cost,
    counts: countsSchema,
    greedy_suspect: z
      .boolean()
      .describe(
        'All scored completions are identical, at a temperature above 0 and not trivially short.',
      ),
    episodes: z.array(episodeSchema),
    dtypes: z
      .record(z.string(), z.string())
      .optional()
      .describe('In MessagePack only: ids <i4, mask |u1, logprobs <f4.'),
  })
  .meta({ id: 'Group' }) satisfies z.ZodType<DeliveredGroup>

export const leaseAnswerSchema = z
  .object({ groups: z.array(groupSchema), done: z.boolean() })
  .meta({ id: 'LeaseAnswer' })

export const ackAnswerSchema = z
  .object({ groups: z.array(z.object({ id: z.string(), result: z.enum(ACK_RESULTS) })) })
  .meta({ id: 'AckAnswer' })

export const batchesSchema = z.object({ batches: z.array(progressSchema) }).meta({ id: 'Batches' })

export const tasksSchema = z
  .object({
    tasks: z.array(
      z.object({
        id: z.string(),
        pack: z.string(),
        environment: z.string(),
        title: z.string(),
        contract: z.string(),
      }) satisfies z.ZodType<TaskSummary>,
    ),
  })
  .meta({ id: 'Tasks' })

/** An object whose members are told in the documentation of its route. */
export const objectSchema = jsonObject
