// A stored episode as a replay needs it: what was played, what the policy said, and what came of every turn.
import { z } from 'zod'
import { LENIENCIES, ON_PARSE_ERROR, THINKING_MODES, TOOL_FORMATS } from './parse-codes.ts'

const hashSchema = z.string().nullable()

const storedTurnSchema = z.looseObject({
  turn: z.int().min(0),
  finish: z.enum(['stop', 'length']),
  text: z.string(),
  calls: z.array(z.looseObject({ name: z.string(), arguments_json: z.string() })),
  observations: z.array(z.looseObject({ content: z.string(), is_error: z.boolean() })),
  audit: z.array(z.json()),
  /** What the model that plays the user said to it. */
  user: z.string().optional(),
  state_hash: hashSchema,
})

/** `GET /v1/episodes/:id`. It holds more than this, for people to read. */
export const storedEpisodeSchema = z.looseObject({
  id: z.string(),
  task: z.string(),
  environment: z.string(),
  seed: z.int(),
  /** Who played the user, where the task was told. */
  user: z.enum(['script', 'model']).optional(),
  /** Fingerprint of the environment's state after its reset. */
  state_hash: hashSchema,
  on_parse_error: z.enum(ON_PARSE_ERROR),
  policy: z.looseObject({
    tool_format: z.enum(TOOL_FORMATS),
    thinking: z.enum(THINKING_MODES),
    leniencies: z.array(z.enum(LENIENCIES)),
    control_tokens: z.enum(['refuse', 'plain']),
  }),
  outcome: z.string(),
  grade: z.json(),
  messages: z.array(z.looseObject({ role: z.string(), content: z.string() })),
  turns: z.array(storedTurnSchema),
})

export type StoredEpisode = z.output<typeof storedEpisodeSchema>
