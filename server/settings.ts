// The form of paddock.yaml: every setting, its range and its default.
import { availableParallelism } from 'node:os'
import { z } from 'zod'
import { LOGPROBS_MODES } from '../protocol/group.ts'
import { idSchema } from '../protocol/ids.ts'
import { MAX_BODY_BYTES } from '../protocol/limits.ts'
import { THINKING_MODES, TOOL_FORMATS } from '../protocol/parse-codes.ts'
import { dialectsSchema } from './dialects/settings.ts'

/** What a token may do. `submit`: batches, policy, heartbeat; `lease`: groups and streams; both read. `admin`: all. */
const ROLES = ['submit', 'lease', 'metrics', 'admin'] as const
export type Role = (typeof ROLES)[number]

const tokenSchema = z
  .strictObject({
    token: z.string().min(1).optional(),
    /** Name of the environment variable that holds the token. */
    token_env: z.string().min(1).optional(),
    roles: z.array(z.enum(ROLES)).min(1).default(['admin']),
  })
  .refine((entry) => (entry.token === undefined) !== (entry.token_env === undefined), {
    message: 'give exactly one of token and token_env',
  })

const endpointSchema = z.url({ protocol: /^https?$/, error: 'expected an http or https URL' })

const backendSchema = z
  .strictObject({
    /** `vllm-generate`: vLLM asked at /inference/v1/generate, which it has with --tokens-only or --enable-scale-out. */
    dialect: z.enum(['vllm', 'vllm-generate', 'sglang']),
    url: endpointSchema.optional(),
    /** Several endpoints that serve the same model. */
    urls: z.array(endpointSchema).min(1).max(1024).optional(),
    model: z.string().min(1),
    /** Folder with tokenizer.json and tokenizer_config.json. */
    model_dir: z.string().min(1).optional(),
    api_key: z.string().min(1).optional(),
    /** Name of the environment variable that holds the key. */
    api_key_env: z.string().min(1).optional(),
    tool_format: z.enum(TOOL_FORMATS).optional(),
    thinking: z.enum(THINKING_MODES).optional(),
    /** Mode tokens: who renders the first prompt, the template of `model_dir` or the backend's /tokenize (vLLM). */
    first_prompt: z.enum(['template', 'tokenize']).default('template'),
    /** Asks for replies as streams: then the time to the first token and the gaps are measured and may be limited. */
    stream: z.boolean().default(false),
    first_token_timeout_s: z.number().gt(0).max(86_400).optional(),
    token_gap_timeout_s: z.number().gt(0).max(86_400).optional(),
    /** Asks vLLM's /weight_info before and after each request, where its replies name no version. */
    weight_info: z.boolean().default(false),
    /** Keeps vLLM's prefix cache of one announced version apart from the next one's. */
    cache_salt: z.boolean().default(true),
    /** What its log-probabilities are of; recorded with every group. `paddock doctor` finds it out. */
    logprobs_mode: z.enum(LOGPROBS_MODES).default('unknown'),
  })
  .refine(({ dialect, first_prompt }) => dialect !== 'sglang' || first_prompt === 'template', {
    message: 'tokenize is vLLM’s: SGLang renders no prompt for others',
    path: ['first_prompt'],
  })
  .refine(({ dialect, weight_info }) => dialect !== 'sglang' || !weight_info, {
    message: 'weight_info is vLLM’s: the replies of SGLang name their version',
    path: ['weight_info'],
  })
  .refine(({ url, urls }) => (url ?? urls) !== undefined, {
    message: 'expected url or urls, found nothing',
    path: ['url'],
  })
  .refine(({ url, urls }) => url === undefined || urls === undefined, {
    message: 'give url or urls, not both',
    path: ['urls'],
  })
  .refine(
    ({ stream, first_token_timeout_s, token_gap_timeout_s }) =>
      stream || (first_token_timeout_s ?? token_gap_timeout_s) === undefined,
    { message: 'the limits of a stream need stream: true', path: ['stream'] },
  )
  .refine((backend) => backend.api_key === undefined || backend.api_key_env === undefined, {
    message: 'give at most one of api_key and api_key_env',
  })

/** A model beside the policy, at one of the backends. */
const askedModelSchema = (temperature: number) =>
  z.strictObject({
    backend: idSchema,
    /** Default: the backend's own. */
    model: z.string().min(1).optional(),
    sampling: z
      .strictObject({
        temperature: z.number().min(0).max(5).default(temperature),
        top_p: z.number().gt(0).max(1).default(1),
        max_tokens: z.int().min(1).max(100_000).default(512),
      })
      .prefault({}),
    /** Requests for one answer at most: what cannot be used is asked for again. */
    attempts: z.int().min(1).max(10).default(3),
    /** Of one request, with its retries. */
    timeout_s: z.number().gt(0).max(3600).default(60),
  })

const serverSchema = z.strictObject({
  host: z.string().min(1).default('127.0.0.1'),
  port: z.int().min(0).max(65_535).default(8420),
  /** Short for one entry of `tokens` with every right. */
  token: z.string().min(1).optional(),
  tokens: z.array(tokenSchema).default([]),
  /** Names beside the loopback ones that a request's Host may have; empty: any, where a token guards the port. */
  allowed_hosts: z.array(z.string().min(1)).default([]),
  /** Origins of web pages that may call, as `https://ops.example`. */
  allowed_origins: z.array(z.string().min(1)).default([]),
  /** How long SIGTERM waits for what runs. */
  drain_timeout_s: z.number().min(0).max(3600).default(30),
  /** A stream on which nothing comes says so after so long: shorter than the idle limit of the proxies before it (60 s is common). */
  heartbeat_s: z.number().min(0.01).max(300).default(15),
})

const callbacksSchema = z.strictObject({
  /**
   * Who may be called back: hosts, addresses and networks, with a port where only that one is meant. Default: this
   * machine alone, and nobody where `server.host` is reached from other machines.
   */
  allow: z.array(z.string().min(1)).optional(),
  /** Headers for one host (`trainer.internal`, or `trainer.internal:9000`), as secrets for it. */
  headers: z
    .array(
      z
        .strictObject({
          host: z.string().min(1),
          name: z.string().regex(/^[A-Za-z0-9-]+$/, 'expected the name of a header'),
          value: z.string().min(1).optional(),
          /** Name of the environment variable that holds the value. */
          value_env: z.string().min(1).optional(),
        })
        .refine((entry) => (entry.value === undefined) !== (entry.value_env === undefined), {
          message: 'give exactly one of value and value_env',
        }),
    )
    .default([]),
})

export const settingsSchema = z
  .strictObject({
    server: serverSchema.prefault({}),
    backends: z.record(idSchema, backendSchema).default({}),
    /** Environments of your own: name to module path. */
    environments: z.record(idSchema, z.string().min(1)).default({}),
    /** Folders of task packs beside the shipped ones. */
    packs: z.array(z.string().min(1)).default([]),
    shipped_packs: z.boolean().default(true),
    /** A task of a pack that fails the gate: the server does not start (true), or starts without it (false). */
    strict_packs: z.boolean().default(false),
    runtime: z
      .strictObject({
        /** One core is left to the main thread. */
        threads: z
          .int()
          .min(1)
          .max(512)
          .default(() => Math.max(1, availableParallelism() - 1)),
        /** Longest computing of one turn before its thread is replaced. */
        max_turn_s: z.number().gt(0).max(3600).default(30),
        heap_mb: z.int().min(64).max(65_536).default(512),
        /** Episodes that are played at once. */
        max_episodes: z.int().min(1).max(100_000).default(64),
      })
      .prefault({}),
    limits: z
      .strictObject({
        /** Batches that are played at once; one more is answered 429. */
        max_batches: z.int().min(1).default(1024),
        /** Finished groups that wait for a trainer before no new group starts. */
        max_groups_ready: z.int().min(1).default(4096),
        /** Their bytes. */
        max_bytes: z
          .int()
          .min(1)
          .default(2 ** 31),
        /** Events kept of each batch; the oldest go first. */
        max_events: z.int().min(1).default(100_000),
        /** Episodes of batches that are done which stay to be looked at, some 5 KB each; the oldest batches go first, but not before whoever has
         * still to tell of them has done so. */
        keep_episodes: z.int().min(0).default(50_000),
        max_body_bytes: z.int().min(1024).default(MAX_BODY_BYTES),
        max_connections: z.int().min(1).default(12_000),
        /** Open connections, WebSockets among them, of one of `server.tokens`. */
        max_connections_per_token: z.int().min(1).default(256),
      })
      .prefault({}),
    callbacks: callbacksSchema.prefault({}),
    /** Who decides checks that ask the judge; without one they have no score. */
    judge: askedModelSchema(0).optional(),
    /** Who plays the user of batches that say `user: "model"`. */
    user: askedModelSchema(1).optional(),
    /** Reward models that batches may name. */
    reward: z
      .strictObject({
        /** Their hosts, as `rm.example:9000`; private addresses only where the address itself is listed. */
        allow: z.array(z.string().min(1)).default([]),
      })
      .prefault({}),
    /** Trainers that speak wire forms of their own, and what their requests do not say. */
    dialects: dialectsSchema.prefault({}),
    ledger: z
      .strictObject({
        /** Folder of the durable ledger; without one, batches live as long as the process. */
        path: z.string().min(1).optional(),
        /** Bytes that it may hold; from there on a new batch is answered 429. */
        max_bytes: z
          .int()
          .min(2 ** 20)
          .default(64 * 2 ** 30),
        /** Bytes of groups that have left which stay to be read and exported; the oldest go first. */
        keep_bytes: z
          .int()
          .min(0)
          .default(8 * 2 ** 30),
        /** Free bytes of its disk below which a new batch is answered 429 and no new group starts. */
        min_free_bytes: z
          .int()
          .min(0)
          .default(256 * 2 ** 20),
        /** Records of so many bytes and more lie in a file of their own: what is mapped into memory stays small. */
        file_bytes: z
          .int()
          .min(1)
          .default(256 * 2 ** 10),
      })
      .prefault({}),
    dashboard: z
      .strictObject({
        /** A Prometheus that /dash asks; without one it draws what this process remembers. */
        prometheus: endpointSchema.optional(),
        /** Seconds between two samples: how often that Prometheus scrapes, or how often this process looks; it remembers 360. */
        interval_s: z.int().min(1).max(300).default(10),
      })
      .prefault({}),
    log: z
      .strictObject({
        level: z
          .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
          .default('info'),
      })
      .prefault({}),
  })
  .meta({ id: 'Settings' })

export type Settings = z.output<typeof settingsSchema>
