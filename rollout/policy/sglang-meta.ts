// SGLang's meta_info, which its native and its chat replies share: what was sampled, by which weights, and how it ended.
import { isPlainObject } from '../../protocol/json.ts'
import type { VersionRun } from '../chat/tape.ts'
import type { Completion, Expectation, PolicyFinish } from './dialect.ts'
import {
  approximateRun,
  checkCompletion,
  describe,
  type FieldNames,
  isContextLength,
  readArray,
  readCount,
  readIds,
  readLogprobs,
  readObject,
  readVersion,
  refuse,
} from './reply.ts'

type JsonRecord = Record<string, unknown>

const LOGPROBS = 'meta_info.output_token_logprobs'
const FIELDS: FieldNames = {
  promptIds: 'prompt_token_ids',
  ids: 'output_ids',
  logprobs: LOGPROBS,
  promptTokens: 'meta_info.prompt_tokens',
  completionTokens: 'meta_info.completion_tokens',
}

/** The completion of one prompt; `promptIds` null where the reply brought none. */
export function readSampled(
  meta: JsonRecord,
  {
    text,
    outputIds,
    promptIds,
  }: { text: string; outputIds: unknown; promptIds: Int32Array | null },
  expect: Expectation,
): Completion {
  const finish = readFinish(meta.finish_reason)
  const usage = {
    promptTokens: readCount(meta.prompt_tokens, FIELDS.promptTokens),
    completionTokens: readCount(meta.completion_tokens, FIELDS.completionTokens),
  }
  // A request that was aborted before its first token carries no list at all.
  const untouched = finish === 'abort' && usage.completionTokens === 0
  const listed = untouched ? (meta.output_token_logprobs ?? []) : meta.output_token_logprobs
  const pairs = readArray(listed, LOGPROBS, 'log-probabilities were asked for').map(readPair)
  const paired = readIds(
    pairs.map(([, id]) => id),
    LOGPROBS,
  )
  const ids = (outputIds ?? null) === null ? paired : readOutputIds(outputIds, paired)
  const draft = {
    finish,
    content: text,
    promptIds,
    ids,
    logprobs: readLogprobs(
      pairs.map(([logprob]) => logprob),
      LOGPROBS,
    ),
    usage,
    version: readVersion(meta.weight_version),
    versions: readVersions(meta, ids.length),
  }
  return checkCompletion(draft, expect, FIELDS)
}

function readPair(pair: unknown, index: number): [unknown, unknown] {
  if (Array.isArray(pair) && pair.length >= 2) {
    const [logprob, id] = pair as unknown[]
    if (id === null)
      refuse(
        'contract_violation',
        FIELDS.ids,
        `expected a token id at ${index}, got null`,
        'absent',
      )
    return [logprob, id]
  }
  const form = `expected [log-probability, id, text] at ${index}`
  return refuse('contract_violation', LOGPROBS, form)
}

function readOutputIds(value: unknown, paired: Int32Array): Int32Array {
  const ids = readIds(readArray(value, FIELDS.ids, 'ids were asked for'), FIELDS.ids)
  if (ids.length !== paired.length)
    refuse(
      'contract_violation',
      FIELDS.ids,
      `${ids.length} ids came with ${paired.length} log-probabilities`,
      'length',
    )
  const index = ids.findIndex((id, position) => id !== paired[position])
  if (index >= 0)
    refuse(
      'contract_violation',
      FIELDS.ids,
      `id ${ids[index]} at ${index}, but its log-probability is of ${paired[index]}`,
    )
  return ids
}

/** `weight_versions` tells which version made which ids; older releases have the scalar alone, stamped at the end. */
function readVersions(meta: JsonRecord, count: number): VersionRun[] {
  const field = 'meta_info.weight_versions'
  if (!Array.isArray(meta.weight_versions) || meta.weight_versions.length === 0)
    return [approximateRun(meta.weight_version, count)]
  let covered = 0
  const runs = meta.weight_versions.map((span: unknown) => {
    const { version, start, end } = readObject(span, field)
    const last = readCount(end, field) ?? 0
    if (start !== covered || last < covered)
      refuse('contract_violation', field, `the spans must follow each other from 0 to ${count}`)
    const run = { version: readVersion(version), count: last - covered }
    covered = last
    return run
  })
  if (covered !== count)
    refuse(
      'contract_violation',
      field,
      `the spans cover ${covered} of ${count} sampled ids`,
      'length',
    )
  return runs
}

function readFinish(reason: unknown): PolicyFinish {
  const field = 'finish_reason'
  if (reason === undefined || reason === null)
    return refuse('infra_backend', field, 'the reply ended without a finish reason')
  const { type, message, status_code: status } = isPlainObject(reason) ? reason : { type: reason }
  const said = typeof message === 'string' ? message.slice(0, 200) : ''
  // An abort with a status is a request that the engine refused or lost, not a pause to go on after.
  if (type === 'abort' && typeof status === 'number' && status >= 400)
    return refuse(
      status === 400 && isContextLength(said) ? 'context_length' : 'infra_backend',
      field,
      `the engine aborted with status ${status}: ${said}`,
    )
  if (type === 'stop' || type === 'length' || type === 'abort') return type
  const known = 'expected type stop, length or abort'
  return refuse('contract_violation', field, `${known}, got ${describe(type)}`)
}
