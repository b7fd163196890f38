// Requests that an engine refuses, and the one form of its error replies.
import { z } from 'zod'

/** A request that is answered with an error status; `type` is vLLM's name for the kind. */
export class RefusedRequest extends Error {
  readonly status: number
  readonly type: string

  constructor(message: string, status = 400, type = 'BadRequestError') {
    super(message)
    this.status = status
    this.type = type
  }
}

/** The body of an error reply, as vLLM writes it. */
export function errorBody(status: number, type: string, message: string) {
  return { error: { message, type, param: null, code: status } }
}

export function readJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString())
  } catch (cause) {
    throw new RefusedRequest(`the body is no JSON: ${String(cause)}`)
  }
}

export function parse<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  const result = schema.safeParse(body)
  if (result.success) return result.data
  throw new RefusedRequest(z.prettifyError(result.error))
}
