// What a call comes to: a result, or a refusal with a code that the model is told.
import type { JsonObject } from '../../../protocol/json.ts'
import type { CallErrorCode } from '../catalogue/declare.ts'

export interface Refusal {
  ok: false
  code: CallErrorCode
  message: string
}
export type Outcome = { ok: true; result: JsonObject } | Refusal

export const done = (result: JsonObject): Outcome => ({ ok: true, result })

/** `message` says what was expected, what came, and where it helps what to do. */
export const refuse = (code: CallErrorCode, message: string): Refusal => ({
  ok: false,
  code,
  message,
})

/** Codes after which the same call may succeed. */
const RETRYABLE: ReadonlySet<CallErrorCode> = new Set(['RATE_LIMITED', 'UNAVAILABLE', 'TIMEOUT'])

/** A refusal as the model sees it. */
export function errorResult({ code, message }: Refusal): JsonObject {
  return { error: { code, message, retryable: RETRYABLE.has(code) } }
}
