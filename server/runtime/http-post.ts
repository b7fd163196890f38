// One HTTP POST, its reply as bytes: undici's dispatch without the streams that its request() puts around a body.
import type { Dispatcher } from 'undici'
import type { HttpReply } from '../../rollout/request.ts'
import type { Patience } from './patience.ts'

/** Rejects with undici's error, or with an error of its own as soon as patience ends. */
export function post(
  pool: Dispatcher,
  path: string,
  headers: Record<string, string>,
  body: Uint8Array,
  patience: Patience,
): Promise<HttpReply> {
  return new Promise((resolve, reject) => {
    let controller: Dispatcher.DispatchController | null = null
    let status = 0
    let replyHeaders: Record<string, string> = {}
    const chunks: Uint8Array[] = []
    const giveUp = () => {
      const reason = new Error('the request is no longer waited for')
      controller?.abort(reason)
      reject(reason)
    }
    if (patience.ended()) return giveUp()
    patience.onEnd(giveUp)
    pool.dispatch(
      { path, method: 'POST', headers, body },
      {
        onRequestStart(started) {
          controller = started
          if (patience.ended()) giveUp()
        },
        onResponseStart(_, statusCode, received) {
          status = statusCode
          replyHeaders = flatHeaders(received)
        },
        onResponseData(_, chunk) {
          chunks.push(chunk)
        },
        onResponseEnd() {
          patience.onEnd(null)
          resolve({ status, headers: replyHeaders, body: joined(chunks) })
        },
        onResponseError(_, error) {
          patience.onEnd(null)
          reject(error)
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
