// One HTTP POST, its reply as bytes: undici's dispatch without the streams that its request() puts around a body.
import type { Dispatcher } from 'undici'
import type { HttpReply } from '../../../rollout/request.ts'
import type { Patience } from '../threads/patience.ts'
import type { Stopwatch } from './stopwatch.ts'

/** A reply that broke off after its headers, with undici's code. */
export class BrokenOff extends Error {
  readonly code: string | undefined

  constructor({ message, code }: Error & { code?: string }) {
    super(message)
    this.code = code
  }
}

/** Codes of a connection that ended, whoever ended it. */
export const CONNECTION_LOST = ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']

/**
 * Rejects with undici's error, with `BrokenOff`, with the stopwatch's, or with an error of its own as soon as patience
 * ends.
 */
export function post(
  pool: Dispatcher,
  path: string,
  headers: Record<string, string>,
  body: Uint8Array,
  patience: Patience,
  stopwatch: Stopwatch | null = null,
): Promise<HttpReply> {
  return new Promise((resolve, reject) => {
    let controller: Dispatcher.DispatchController | null = null
    let status = 0
    let replyHeaders: Record<string, string> = {}
    const chunks: Uint8Array[] = []
    const settle = () => {
      patience.onEnd(null)
      stopwatch?.stop()
    }
    const giveUp = (reason: Error) => {
      settle()
      controller?.abort(reason)
      reject(reason)
    }
    const unwanted = () => giveUp(new Error('the request is no longer waited for'))
    if (patience.ended()) return unwanted()
    patience.onEnd(unwanted)
    stopwatch?.start(giveUp)
    pool.dispatch(
      { path, method: 'POST', headers, body },
      {
        onRequestStart(started) {
          controller = started
          if (patience.ended()) unwanted()
        },
        onResponseStart(_, statusCode, received) {
          status = statusCode
          replyHeaders = flatHeaders(received)
        },
        onResponseData(_, chunk) {
          stopwatch?.piece()
          chunks.push(chunk)
        },
        onResponseEnd() {
          settle()
          resolve({ status, headers: replyHeaders, body: joined(chunks) })
        },
        onResponseError(_, error) {
          settle()
          const { code } = error as Error & { code?: string }
          const lost = CONNECTION_LOST.includes(code ?? '')
          reject(status > 0 && lost ? new BrokenOff(error) : error)
        },
      },
    )
  })
}

/** In a buffer of its own: a chunk is a view of what the socket read, and would cross to a thread with all of it. */
function joined(chunks: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0))
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.length
  }
  return bytes
}

function flatHeaders(
  headers: Record<string, string | string[] | undefined>,
): Record<string, string> {
  const flat: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) flat[name] = String(value ?? '')
  return flat
}
