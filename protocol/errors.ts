// The one error type and its closed list of codes; on the wire an RFC 9457 problem document.

/** Every code, the HTTP status it is sent with, and whether the same request may succeed later. */
export const ERROR_CODES = {
  invalid_request: { status: 400, retryable: false, title: 'The request does not fit its schema' },
  malformed_json: { status: 400, retryable: false, title: 'The body is no JSON' },
  unauthorized: { status: 401, retryable: false, title: 'A bearer token is required' },
  forbidden: { status: 403, retryable: false, title: 'Not for this caller' },
  not_found: { status: 404, retryable: false, title: 'No such thing' },
  method_not_allowed: { status: 405, retryable: false, title: 'Another method is served here' },
  conflict: { status: 409, retryable: false, title: 'The id is taken by a different request' },
  gone: { status: 410, retryable: false, title: 'It was here and is no more' },
  body_too_large: { status: 413, retryable: false, title: 'The body is larger than the limit' },
  unsupported_media_type: {
    status: 415,
    retryable: false,
    title: 'The content type is not served',
  },
  upgrade_required: { status: 426, retryable: false, title: 'Another protocol is spoken here' },
  contract_mismatch: {
    status: 422,
    retryable: false,
    title: 'The reward contract cannot serve this',
  },
  invalid_task: { status: 422, retryable: false, title: 'The task cannot be played' },
  environment_fault: {
    status: 500,
    retryable: false,
    title: 'An environment broke its contract',
  },
  invalid_config: { status: 500, retryable: false, title: 'The configuration is not valid' },
  queue_full: { status: 429, retryable: true, title: 'The server has all the work it takes' },
  too_many_requests: {
    status: 429,
    retryable: true,
    title: 'This address or token takes more than its share',
  },
  not_graded: { status: 503, retryable: true, title: 'The reward cannot be had now' },
  draining: { status: 503, retryable: true, title: 'The server is stopping' },
  store_failed: { status: 503, retryable: true, title: 'The ledger cannot be written' },
  internal: { status: 500, retryable: false, title: 'A fault of the server' },
} as const satisfies Record<string, { status: number; retryable: boolean; title: string }>

export type ErrorCode = keyof typeof ERROR_CODES

/**
 * Which bound refuses: batches that are played, finished groups that wait, their bytes, the ledger or its disk. Not on the
 * wire, where the sentence names the setting.
 */
export type Bound = 'queue_full' | 'ready_full' | 'bytes_full' | 'disk_full'

/** An RFC 9457 problem document: what a client gets with every status of 400 and above. */
export interface Problem {
  type: string
  title: string
  status: number
  code: ErrorCode
  retryable: boolean
  detail: string
  /** JSON path of the offending value, as `tasks[0].seed`; empty where the whole request is meant. */
  path: string
}

/**
 * The error of every room. `message` says what was expected, what came and what to do; `path` points at the value.
 * A caller's mistake and a fault use it alike; an expected outcome is a value and no error.
 */
export class PaddockError extends Error {
  readonly code: ErrorCode
  readonly path: string
  /** Of a `queue_full`. */
  readonly bound: Bound

  constructor(
    code: ErrorCode,
    message: string,
    options: { path?: string; cause?: unknown; bound?: Bound } = {},
  ) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.name = 'PaddockError'
    this.code = code
    this.path = options.path ?? ''
    this.bound = options.bound ?? 'queue_full'
  }

  /** The same as a problem document. */
  toProblem(): Problem {
    const { status, retryable, title } = ERROR_CODES[this.code]
    const type = `urn:paddock:problem:${this.code}`
    return {
      type,
      title,
      status,
      code: this.code,
      retryable,
      detail: this.message,
      path: this.path,
    }
  }
}
