// A custom grader's request and reply: what crosses to its thread, and what of its result is taken.
import type { Answer, GraderAsk } from '../../envs/environment.ts'
import type { RewardContract } from '../../protocol/contract.ts'
import { isPlainObject, type JsonObject } from '../../protocol/json.ts'
import { unpack } from '../../protocol/msgpack.ts'
import { type ContractKind, checkRewards } from '../../reward/contract.ts'
import type { GraderRequest, HttpReply } from '../request.ts'
import { textOf } from './chat.ts'

/** What a check's grader fills. */
const CHECK_CONTRACT: RewardContract = {
  name: 'check',
  version: 1,
  fields: { score: { type: 'number', min: 0, max: 1, required: true } },
  scalar: 'score',
  components: [],
}

/** What a grader's thread answers with, as msgpack, which keeps NaN: its result, and which grader that was. */
interface GraderReply {
  version: number
  hash: string
  result: unknown
}

/** A record that breaks its contract ends the episode, as one of the environment's own grade does. */
interface Violation {
  status: 'violation'
  kind: ContractKind
  reason: string
}

export function graderRequest({ grader, input, params }: GraderAsk, turn: number): GraderRequest {
  const body = new TextEncoder().encode(JSON.stringify({ input, params }))
  return { kind: 'grade', grader, turn, body }
}

/**
 * A result is `{status: "scored", …fields, evidence?}` with exactly the fields of the contract, or `{status: "unknown" |
 * "error", reason}`. Status 0 is a thread that crashed, hung or ran out of memory.
 */
export function readGrader(ask: GraderAsk, { status, body }: HttpReply): Answer | Violation {
  const named = `custom grader ${ask.grader}`
  if (status === 0)
    return { status: 'error', reason: `${named}: ${textOf(body)}`, by: { grader: ask.grader } }
  const { version, hash, result } = unpack(body) as GraderReply
  const by: JsonObject = { grader: ask.grader, version, hash }
  const error = (reason: string): Answer => ({ status: 'error', reason: `${named}: ${reason}`, by })
  if (!isPlainObject(result)) return error('expected an object with status, found none')
  const { status: said, evidence = [], ...fields } = result
  if (said === 'unknown' || said === 'error') {
    const { reason, ...others } = fields
    const [stranger] = Object.keys(others)
    if (stranger !== undefined)
      return violation(named, stranger, 'unknown', 'is no key of such a result')
    if (typeof reason !== 'string') return error(`said ${said} without a reason`)
    return { status: said, reason: `${named}: ${reason}`, by }
  }
  if (said !== 'scored')
    return error(`expected status scored, unknown or error, found ${JSON.stringify(said)}`)
  if (!isEvidence(evidence))
    return error('expected evidence as a list of call numbers and record ids')
  const checked = checkRewards(ask.contract ?? CHECK_CONTRACT, fields)
  if (!checked.ok) return violation(named, checked.field, checked.kind, checked.message)
  return { status: 'scored', rewards: checked.rewards, evidence, by }
}

function violation(named: string, field: string, kind: ContractKind, message: string): Violation {
  return { status: 'violation', kind, reason: `${field}: ${named}: ${message}` }
}

function isEvidence(evidence: unknown): evidence is (number | string)[] {
  return (
    Array.isArray(evidence) &&
    evidence.every((one) => typeof one === 'string' || Number.isFinite(one))
  )
}
