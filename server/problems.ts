// How an error looks to a client: an RFC 9457 problem document, over HTTP and over WebSocket alike.
import { STATUS_CODES } from 'node:http'
import { HTTPException } from 'hono/http-exception'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { ERROR_CODES, type ErrorCode, PaddockError, type Problem } from '../protocol/errors.ts'
import type { SchemaIssue } from './schema-issues.ts'

/** Seconds after which a client may try again what is refused for now. */
export const RETRY_AFTER_S: Partial<Record<number, number>> = { 429: 5, 503: 10 }

/** More lines than these of one body help nobody. */
const MAX_ISSUES_TOLD = 10

/** The code that stands for a status which HTTP itself asks for and no code is named after. */
const CODE_OF_STATUS: Partial<Record<number, ErrorCode>> = {
  400: 'invalid_request',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  405: 'method_not_allowed',
  410: 'gone',
  413: 'body_too_large',
  415: 'unsupported_media_type',
  426: 'upgrade_required',
}

/** An error of HTTP's own (403, 405, 410, …): `detail` says what was expected, what came, what to do. */
export function httpError(status: ContentfulStatusCode, detail: string): HTTPException {
  return new HTTPException(status, { message: detail })
}

/** The refusal of a value by its schema, told by path. */
export function invalidRequest(issues: readonly SchemaIssue[]): PaddockError {
  const told = issues
    .slice(0, MAX_ISSUES_TOLD)
    .map(({ path, message }) => `${path || 'body'}: ${message}`)
  const rest = issues.length - told.length
  const more = rest > 0 ? [`and ${rest} more`] : []
  return new PaddockError('invalid_request', [...told, ...more].join('; '), {
    path: issues[0]?.path ?? '',
  })
}

/** Any error as a problem document. What is no refusal of ours tells no more than that the server failed. */
export function problemOf(error: unknown): Problem {
  if (error instanceof PaddockError && ERROR_CODES[error.code].status < 500)
    return error.toProblem()
  if (error instanceof PaddockError && ERROR_CODES[error.code].status === 503)
    return error.toProblem()
  if (error instanceof HTTPException) return httpProblem(error)
  const detail = 'the server failed at this request; its log says why'
  return new PaddockError('internal', detail).toProblem()
}

/** True for faults of the server, which belong into its log. */
export function isFault(problem: Problem): boolean {
  return problem.code === 'internal'
}

export function problemResponse(problem: Problem, headers: Record<string, string> = {}): Response {
  const retryAfter = RETRY_AFTER_S[problem.status]
  return new Response(JSON.stringify(problem), {
    status: problem.status,
    headers: {
      'content-type': 'application/problem+json',
      ...(retryAfter !== undefined && { 'retry-after': String(retryAfter) }),
      ...(problem.status === 401 && { 'www-authenticate': 'Bearer' }),
      ...headers,
    },
  })
}

function httpProblem({ status, message }: HTTPException): Problem {
  const code = CODE_OF_STATUS[status] ?? (status < 500 ? 'invalid_request' : 'internal')
  const problem = new PaddockError(code, message).toProblem()
  if (problem.status === status) return problem
  return { ...problem, status, title: STATUS_CODES[status] ?? problem.title }
}
